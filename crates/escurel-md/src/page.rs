//! The parsed page and its parts.
//!
//! Holds data and the lookup of anchors; how it is read from bytes is the
//! business of the parsing modules. Invariant: spans index [`Page::text`].

use std::ops::Range;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::issue::Issue;
use crate::names;
use crate::schema::SkillSchema;
use crate::when::When;
use crate::wikilink::Wikilink;

/// How identity defaults derive from the path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Layout {
    /// Any folder of markdown: the id of a plain page is its path.
    Vault,
    /// A tenant's folder: the id of a plain page is its file stem.
    Tenant,
}

/// Whether a page declares a skill or is an instance of one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PageType {
    Skill,
    Instance,
}

impl PageType {
    pub fn as_str(self) -> &'static str {
        match self {
            PageType::Skill => "skill",
            PageType::Instance => "instance",
        }
    }
}

/// One markdown file, read.
#[derive(Clone, Debug)]
pub struct Page {
    /// As given, relative to the page root.
    pub path: String,
    pub page_type: PageType,
    /// The skill the page is an instance of; for a skill page the one it declares.
    pub skill: String,
    pub id: String,
    pub title: String,
    pub aliases: Vec<String>,
    /// Frontmatter tags, then `#tags` of the body; each once, without `#`.
    pub tags: Vec<String>,
    pub at: Option<When>,
    pub description: Option<String>,
    pub layer: Option<String>,
    pub scenario: Option<String>,
    pub hidden: bool,
    /// False when `skill`, `id` or `type` is given twice: the page needs attention.
    pub identity_clear: bool,
    /// In the order of the file; text-like keys keep their source spelling.
    pub frontmatter: Map<String, Value>,
    /// The whole file, byte order mark included; with replacement marks when it is not UTF-8.
    pub text: String,
    /// False: the page is read-only, `text` is not what is on disk.
    pub utf8: bool,
    pub body: Range<usize>,
    /// 1-based line where the body starts.
    pub body_line: u32,
    pub headings: Vec<Heading>,
    pub blocks: Vec<Block>,
    /// `^id` marks of list items and other lines inside a block.
    pub item_anchors: Vec<ItemAnchor>,
    /// Links of the frontmatter, then of the body.
    pub links: Vec<Link>,
    /// Only on skill pages.
    pub schema: Option<SkillSchema>,
    /// What parsing found wrong.
    pub issues: Vec<Issue>,
}

/// A heading and the section it opens.
#[derive(Clone, Debug)]
pub struct Heading {
    pub level: u8,
    pub text: String,
    /// Slug of the text; a repeated slug gets `-1`, `-2`, …
    pub anchor: String,
    pub span: Range<usize>,
    /// From the heading to the next one of the same or a higher rank.
    pub section: Range<usize>,
    pub line: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BlockKind {
    Heading,
    Paragraph,
    List,
    Quote,
    Code,
    Table,
    Html,
    Rule,
    Comment,
}

/// One top-level block of the body.
#[derive(Clone, Debug)]
pub struct Block {
    pub anchor: String,
    pub kind: BlockKind,
    pub span: Range<usize>,
    pub line: u32,
    /// Index into `headings` of the heading it stands under; a heading names itself.
    pub heading: Option<u32>,
}

/// A `^id` that addresses a part of a block.
#[derive(Clone, Debug, PartialEq)]
pub struct ItemAnchor {
    pub anchor: String,
    pub span: Range<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LinkKind {
    /// `[[…]]`
    Wikilink,
    /// `![[…]]` of a page
    Embed,
    /// `[text](relative/page.md#anchor)`
    Markdown,
    /// A relative target that is not a page, linked or embedded.
    Asset,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    pub kind: LinkKind,
    /// The frontmatter key it stands under; none in the body.
    pub relation: Option<String>,
    /// For markdown links and assets: id is the decoded path, anchor the fragment.
    pub target: Wikilink,
    /// Exact source text.
    pub raw: String,
    pub span: Range<usize>,
    pub line: u32,
    /// 1-based, in characters.
    pub col: u32,
    /// Anchor of the block it stands in.
    pub src_anchor: Option<String>,
}

/// What an anchor addresses.
#[derive(Clone, Debug)]
pub struct Anchored<'a> {
    /// The canonical anchor.
    pub anchor: String,
    pub span: Range<usize>,
    /// The heading, when it is one; the span is then its section.
    pub heading: Option<&'a Heading>,
}

impl Page {
    pub fn body_text(&self) -> &str {
        self.text.get(self.body.clone()).unwrap_or("")
    }

    /// True when there is a header that could not be read: the page is body
    /// only and what the header said, rights included, is unknown.
    pub fn header_unreadable(&self) -> bool {
        self.issues
            .iter()
            .any(|i| i.code == "frontmatter_unparsable" || i.code == "frontmatter_unclosed")
    }

    /// Every anchor of the page, in the order headings, blocks, items.
    pub fn anchors(&self) -> impl Iterator<Item = &str> {
        let headings = self.headings.iter().map(|h| h.anchor.as_str());
        let blocks = self
            .blocks
            .iter()
            .filter(|b| b.kind != BlockKind::Heading)
            .map(|b| b.anchor.as_str());
        headings
            .chain(blocks)
            .chain(self.item_anchors.iter().map(|a| a.anchor.as_str()))
    }

    /// What `anchor`, as written in a link, addresses: heading text, slug,
    /// `^id`, block id, or a path of headings `Outer#Inner`.
    pub fn find_anchor(&self, anchor: &str) -> Option<Anchored<'_>> {
        let anchor = anchor.trim();
        if let Some(id) = anchor.strip_prefix('^') {
            return self.find_block(id);
        }
        self.find_heading(anchor)
            .or_else(|| self.find_block(anchor))
            .or_else(|| self.find_nested(anchor))
    }

    fn find_block(&self, id: &str) -> Option<Anchored<'_>> {
        let block = self
            .blocks
            .iter()
            .find(|b| b.kind != BlockKind::Heading && b.anchor == id);
        let span = match block {
            Some(b) => b.span.clone(),
            None => self
                .item_anchors
                .iter()
                .find(|a| a.anchor == id)?
                .span
                .clone(),
        };
        Some(Anchored {
            anchor: id.to_owned(),
            span,
            heading: None,
        })
    }

    fn find_heading(&self, anchor: &str) -> Option<Anchored<'_>> {
        let key = names::name_key(anchor);
        let exact = self.headings.iter().find(|h| h.anchor == key);
        let slug = || {
            let slug = names::slug(anchor);
            self.headings
                .iter()
                .find(|h| h.anchor == slug && !slug.is_empty())
        };
        let text = || {
            self.headings
                .iter()
                .find(|h| names::name_key(&h.text) == key)
        };
        exact.or_else(text).or_else(slug).map(anchored)
    }

    /// `Outer#Inner`: each next heading lies inside the section of the one before.
    fn find_nested(&self, anchor: &str) -> Option<Anchored<'_>> {
        let mut within = self.body.clone();
        let mut found = None;
        let mut next = 0;
        for part in anchor.split('#').take(16) {
            let (key, slug) = (names::name_key(part.trim()), names::slug(part));
            let at = self.headings.iter().enumerate().skip(next).find(|(_, h)| {
                within.contains(&h.span.start)
                    && (names::name_key(&h.text) == key
                        || (!slug.is_empty() && names::slug(&h.text) == slug))
            });
            let (index, heading) = at?;
            within = heading.section.clone();
            next = index + 1;
            found = Some(heading);
        }
        found.filter(|_| anchor.contains('#')).map(anchored)
    }
}

fn anchored(h: &Heading) -> Anchored<'_> {
    Anchored {
        anchor: h.anchor.clone(),
        span: h.section.clone(),
        heading: Some(h),
    }
}
