//! One pass over the markdown events of a body.
//!
//! Inline events that follow each other make a run; a run minus its code, HTML
//! and link targets is searched for links and marks. Invariant: the pass keeps
//! no more than the innermost open containers.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use pulldown_cmark::{Event, LinkType, Options, Parser, Tag, TagEnd};

use super::{Raw, RawBlock, RawHeading, RawLink, RawTarget, guard};
use crate::inline;
use crate::page::BlockKind;

/// None when the parser fails, which a page must survive.
pub(super) fn walk(text: &str, range: Range<usize>) -> Option<Raw> {
    let body = text.get(range.clone())?;
    let source = guard::guarded(body);
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS;
    // Foreign code on hostile input: one page must not take others down.
    catch_unwind(AssertUnwindSafe(|| {
        let mut walker = Walker {
            text,
            ..Walker::default()
        };
        for (event, at) in Parser::new_ext(&source, options).into_offset_iter() {
            walker.take(event, range.start + at.start..range.start + at.end);
        }
        walker.raw.links.sort_by_key(|l| l.span.start);
        walker.raw
    }))
    .ok()
}

#[derive(Default)]
struct Walker<'a> {
    text: &'a str,
    raw: Raw,
    /// Open block-level tags.
    depth: usize,
    /// Kind and span of the open top-level block, and its id.
    top: Option<(BlockKind, Range<usize>, Option<String>)>,
    items: Vec<Range<usize>>,
    in_code: bool,
    /// Level and text of the open top-level heading.
    heading: Option<(u8, String)>,
    run: Option<Range<usize>>,
    /// Parts of the run that are no text, in order of their starts.
    opaque: Vec<Range<usize>>,
    /// Open links: whether the target is part of the source, end of their text.
    links: Vec<(bool, usize)>,
    found: Vec<Range<usize>>,
}

impl Walker<'_> {
    fn take(&mut self, event: Event<'_>, at: Range<usize>) {
        match event {
            Event::Start(tag) => self.start(tag, at),
            Event::End(tag) => self.end(tag, at),
            Event::Text(_) if self.in_code => {}
            Event::Text(text) => {
                self.heading_text(&text);
                self.extend(at);
            }
            Event::Code(text) => {
                self.heading_text(&text);
                self.skip(at);
            }
            Event::InlineHtml(_)
            | Event::FootnoteReference(_)
            | Event::InlineMath(_)
            | Event::DisplayMath(_) => self.skip(at),
            Event::SoftBreak | Event::HardBreak => {
                self.heading_text(" ");
                self.extend(at);
            }
            Event::Rule => {
                self.flush();
                if self.depth == 0 {
                    self.push_block(BlockKind::Rule, at, None);
                }
            }
            Event::Html(_) | Event::TaskListMarker(_) => {}
        }
    }

    fn start(&mut self, tag: Tag<'_>, at: Range<usize>) {
        match tag {
            Tag::Emphasis
            | Tag::Strong
            | Tag::Strikethrough
            | Tag::Superscript
            | Tag::Subscript => self.extend(at),
            Tag::Link {
                link_type,
                dest_url,
                ..
            }
            | Tag::Image {
                link_type,
                dest_url,
                ..
            } => self.link(link_type, &dest_url, at),
            block => {
                self.flush();
                self.open(&block, at);
                self.depth += 1;
            }
        }
    }

    fn open(&mut self, tag: &Tag<'_>, at: Range<usize>) {
        match tag {
            Tag::Item => self.items.push(at.clone()),
            Tag::CodeBlock(_) => self.in_code = true,
            Tag::Heading { level, .. } if self.depth == 0 => {
                self.heading = Some((*level as u8, String::new()))
            }
            _ => {}
        }
        if self.depth == 0 {
            self.top = Some((self.kind(tag, &at), at, None));
        }
    }

    fn kind(&self, tag: &Tag<'_>, at: &Range<usize>) -> BlockKind {
        match tag {
            Tag::Heading { .. } => BlockKind::Heading,
            Tag::BlockQuote(_) => BlockKind::Quote,
            Tag::CodeBlock(_) => BlockKind::Code,
            Tag::List(_) => BlockKind::List,
            Tag::Table(_) => BlockKind::Table,
            Tag::HtmlBlock => {
                let html = self.text.get(at.clone()).unwrap_or("").trim();
                let comment = html.starts_with("<!--") && html.ends_with("-->");
                if comment {
                    BlockKind::Comment
                } else {
                    BlockKind::Html
                }
            }
            _ => BlockKind::Paragraph,
        }
    }

    fn end(&mut self, tag: TagEnd, at: Range<usize>) {
        match tag {
            TagEnd::Emphasis
            | TagEnd::Strong
            | TagEnd::Strikethrough
            | TagEnd::Superscript
            | TagEnd::Subscript => {
                self.extend(at);
            }
            TagEnd::Link | TagEnd::Image => {
                if let Some((true, text_end)) = self.links.pop() {
                    self.skip(text_end.min(at.end)..at.end);
                }
                self.extend(at);
            }
            block => {
                self.flush();
                self.depth = self.depth.saturating_sub(1);
                match block {
                    TagEnd::Item => drop(self.items.pop()),
                    TagEnd::CodeBlock => self.in_code = false,
                    _ => {}
                }
                if self.depth == 0
                    && let Some((kind, span, id)) = self.top.take()
                {
                    self.close_top(kind, span, id);
                }
            }
        }
    }

    fn close_top(&mut self, kind: BlockKind, span: Range<usize>, id: Option<String>) {
        let span = self.trimmed(span);
        if let Some((level, mut text)) = self.heading.take() {
            if let Some((_, end)) = id
                .as_ref()
                .and_then(|_| inline::block_id(&text, 0..text.len()))
            {
                text.truncate(end);
            }
            text.truncate(text.trim_end().len());
            self.raw.headings.push(RawHeading {
                level,
                text: text.trim_start().to_owned(),
                span: span.clone(),
            });
        }
        // A paragraph that is nothing but `^id` names the block before it.
        let alone = id.as_ref().is_some_and(|id| span.len() == id.len() + 1);
        if let Some(before) = self.raw.blocks.last_mut().filter(|b| alone && takes_id(b)) {
            before.id = id;
            before.span.end = span.end;
            return;
        }
        self.push_block(kind, span, id);
    }

    fn push_block(&mut self, kind: BlockKind, span: Range<usize>, id: Option<String>) {
        let mut span = self.trimmed(span);
        if let Some(before) = self.raw.blocks.last() {
            span.start = span.start.max(before.span.end);
        }
        if span.start < span.end {
            self.raw.blocks.push(RawBlock { kind, span, id });
        }
    }

    fn trimmed(&self, span: Range<usize>) -> Range<usize> {
        let len = self
            .text
            .get(span.clone())
            .map_or(0, |s| s.trim_end().len());
        span.start..span.start + len
    }

    fn heading_text(&mut self, text: &str) {
        if let Some((_, collected)) = &mut self.heading {
            collected.push_str(text);
        }
    }

    fn extend(&mut self, at: Range<usize>) {
        if let Some((_, text_end)) = self.links.last_mut() {
            *text_end = (*text_end).max(at.end);
        }
        match &mut self.run {
            Some(run) => {
                run.start = run.start.min(at.start);
                run.end = run.end.max(at.end);
            }
            None => self.run = Some(at),
        }
    }

    fn skip(&mut self, at: Range<usize>) {
        self.opaque.push(at.clone());
        self.extend(at);
    }

    fn link(&mut self, link_type: LinkType, target: &str, at: Range<usize>) {
        let automatic = matches!(link_type, LinkType::Autolink | LinkType::Email);
        let written = matches!(
            link_type,
            LinkType::Inline | LinkType::Reference | LinkType::ReferenceUnknown
        );
        let start = at.start;
        if automatic {
            self.skip(at.clone());
        } else if written || !self.in_double_brackets(&at) {
            self.raw.links.push(RawLink {
                span: at.clone(),
                target: RawTarget::Path(target.to_owned()),
            });
        }
        // The text of the link is what its children cover.
        self.extend(start..start);
        self.links.push((written, start));
    }

    /// `[[x]]` is a wikilink also where `[x]` is a defined reference.
    fn in_double_brackets(&self, at: &Range<usize>) -> bool {
        let b = self.text.as_bytes();
        at.start > 0 && b.get(at.start - 1) == Some(&b'[') && b.get(at.end) == Some(&b']')
    }

    fn flush(&mut self) {
        let Some(run) = self.run.take() else { return };
        let mut opaque = std::mem::take(&mut self.opaque);
        opaque.sort_by_key(|o| o.start);
        let mut at = run.start;
        for gap in &opaque {
            self.segment(at..gap.start.max(at));
            at = at.max(gap.end);
        }
        self.segment(at..run.end.max(at));
        self.block_id(run, at);
        opaque.clear();
        self.opaque = opaque;
        self.links.clear();
    }

    fn segment(&mut self, range: Range<usize>) {
        let text = self.text;
        if range.is_empty() {
            return;
        }
        let mut found = std::mem::take(&mut self.found);
        found.clear();
        inline::pairs(text, range.clone(), |pair| {
            let start = pair.span.start;
            let bang = start > range.start && text.as_bytes().get(start - 1) == Some(&b'!');
            let embed = bang && !inline::is_escaped(text.as_bytes(), start - 1);
            let span = start - usize::from(embed)..pair.span.end;
            found.push(span.clone());
            self.raw.links.push(RawLink {
                span,
                target: RawTarget::Wiki {
                    embed,
                    clean: pair.clean,
                },
            });
        });
        inline::tags(text, range.clone(), &found, |tag| self.raw.tags.push(tag));
        inline::comment_marks(text, range, &mut self.raw.comment_marks);
        self.found = found;
    }

    /// A `^id` at the end of a run names the block or the item it stands in.
    fn block_id(&mut self, run: Range<usize>, text_from: usize) {
        let Some((id, _)) =
            inline::block_id(self.text, run.clone()).filter(|(id, _)| id.start > text_from)
        else {
            return;
        };
        let name = self.text.get(id.clone()).unwrap_or("").to_owned();
        if let Some(item) = self.items.last() {
            let span = self.trimmed(item.clone());
            self.raw.items.push((name, span));
            return;
        }
        let end = self
            .top
            .as_ref()
            .map(|(_, span, _)| self.trimmed(span.clone()).end);
        match &mut self.top {
            Some((_, _, top_id)) if end == Some(id.end) => *top_id = Some(name),
            Some((BlockKind::Heading, _, top_id)) => *top_id = Some(name),
            _ => self.raw.items.push((name, run)),
        }
    }
}

fn takes_id(block: &RawBlock) -> bool {
    block.id.is_none()
        && matches!(
            block.kind,
            BlockKind::List
                | BlockKind::Quote
                | BlockKind::Code
                | BlockKind::Table
                | BlockKind::Html
        )
}
