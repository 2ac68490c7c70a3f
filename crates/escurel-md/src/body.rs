//! The body: headings, top-level blocks, links, tags and block ids.
//!
//! Markdown decides what is text; wikilinks, tags and comments are then looked
//! for in the source of that text. Invariant: nothing found in code, HTML,
//! comments or escapes becomes a link, a tag or a heading.

mod anchors;
mod guard;
mod targets;
mod walk;

use std::ops::Range;

use crate::issue::{self, Issue};
use crate::lines::Lines;
use crate::page::{Block, BlockKind, Heading, ItemAnchor, Link, LinkKind};
use crate::wikilink::Wikilink;

/// Findings about one body; a hostile one could have thousands.
const MAX_ISSUES: usize = 200;

#[derive(Debug, Default)]
pub(crate) struct Body {
    pub headings: Vec<Heading>,
    pub blocks: Vec<Block>,
    pub item_anchors: Vec<ItemAnchor>,
    pub links: Vec<Link>,
    pub tags: Vec<String>,
    pub issues: Vec<Issue>,
}

/// What a walk over the markdown collects, before anchors are given.
#[derive(Default)]
pub(super) struct Raw {
    pub headings: Vec<RawHeading>,
    pub blocks: Vec<RawBlock>,
    /// Id, the span it addresses.
    pub items: Vec<(String, Range<usize>)>,
    pub links: Vec<RawLink>,
    pub tags: Vec<Range<usize>>,
    /// Offsets of `%%`.
    pub comment_marks: Vec<usize>,
}

pub(super) struct RawHeading {
    pub level: u8,
    pub text: String,
    pub span: Range<usize>,
}

pub(super) struct RawBlock {
    pub kind: BlockKind,
    pub span: Range<usize>,
    pub id: Option<String>,
}

pub(super) struct RawLink {
    pub span: Range<usize>,
    pub target: RawTarget,
}

pub(super) enum RawTarget {
    Wiki {
        embed: bool,
        clean: bool,
    },
    /// Target of a markdown link or image.
    Path(String),
}

pub(crate) fn read(text: &str, range: Range<usize>, lines: &mut Lines<'_>) -> Body {
    let mut body = Body::default();
    let mut raw = walk::walk(text, range.clone()).unwrap_or_else(|| {
        let (line, col) = lines.position(range.start);
        body.issues.push(Issue::new(
            "body_unparsable",
            issue::at(line, col),
            "The body is read as plain text.",
        ));
        plain(text, range.clone())
    });
    drop_comments(&mut raw);
    anchors::assign(
        text,
        range,
        raw.headings,
        raw.blocks,
        raw.items,
        lines,
        &mut body,
    );
    for tag in &raw.tags {
        if let Some(name) = text.get(tag.start + 1..tag.end) {
            body.tags.push(name.to_owned());
        }
    }
    for link in raw.links {
        add_link(text, link, lines, &mut body);
    }
    body
}

/// The body as one paragraph.
fn plain(text: &str, range: Range<usize>) -> Raw {
    let block = RawBlock {
        kind: BlockKind::Paragraph,
        span: range.clone(),
        id: None,
    };
    let empty = text.get(range).is_none_or(|s| s.trim().is_empty());
    Raw {
        blocks: if empty { Vec::new() } else { vec![block] },
        ..Raw::default()
    }
}

/// Takes out what stands between pairs of `%%`.
fn drop_comments(raw: &mut Raw) {
    let comments: Vec<Range<usize>> = raw
        .comment_marks
        .chunks_exact(2)
        .filter_map(|p| Some(*p.first()?..*p.get(1)? + 2))
        .collect();
    if comments.is_empty() {
        return;
    }
    let inside = |at: usize| {
        let next = comments.partition_point(|c| c.end <= at);
        comments.get(next).is_some_and(|c| c.start <= at)
    };
    raw.links.retain(|l| !inside(l.span.start));
    raw.tags.retain(|t| !inside(t.start));
    raw.headings.retain(|h| !inside(h.span.start));
    raw.items.retain(|(_, span)| !inside(span.start));
    for block in &mut raw.blocks {
        let last = block.span.end.saturating_sub(1);
        if inside(block.span.start) && (block.kind == BlockKind::Heading || inside(last)) {
            block.kind = BlockKind::Comment;
        }
    }
}

fn add_link(text: &str, link: RawLink, lines: &mut Lines<'_>, body: &mut Body) {
    let Some(raw) = text.get(link.span.clone()) else {
        return;
    };
    let (kind, target) = match link.target {
        RawTarget::Path(target) => match targets::relative(&target) {
            Some(found) => found,
            None => return,
        },
        RawTarget::Wiki { embed, clean } => match wiki(raw, embed, clean) {
            Ok(Some(found)) => found,
            Ok(None) => return,
            Err(message) => {
                if body.issues.len() < MAX_ISSUES {
                    let (line, col) = lines.position(link.span.start);
                    body.issues.push(Issue::new(
                        "wikilink_malformed",
                        issue::at(line, col),
                        message,
                    ));
                }
                return;
            }
        },
    };
    let (line, col) = lines.position(link.span.start);
    let block = body
        .blocks
        .partition_point(|b| b.span.end <= link.span.start);
    let src_anchor = body
        .blocks
        .get(block)
        .filter(|b| b.span.start <= link.span.start)
        .map(|b| b.anchor.clone());
    body.links.push(Link {
        kind,
        relation: None,
        target,
        raw: raw.to_owned(),
        span: link.span,
        line,
        col,
        src_anchor,
    });
}

/// Brackets without a typed link between them are taken for ordinary text.
fn wiki(raw: &str, embed: bool, clean: bool) -> Result<Option<(LinkKind, Wikilink)>, String> {
    if !clean && !raw.contains("::") {
        return Ok(None);
    }
    let target = Wikilink::parse(raw.strip_prefix('!').unwrap_or(raw)).map_err(|e| e.message)?;
    let asset =
        embed && target.skill.is_none() && target.id.as_deref().is_some_and(targets::is_asset);
    let kind = match (asset, embed) {
        (true, _) => LinkKind::Asset,
        (_, true) => LinkKind::Embed,
        _ => LinkKind::Wikilink,
    };
    Ok(Some((kind, target)))
}
