//! From bytes to a page: decoding, header, body, identity.
//!
//! Never fails. Invariant: a page whose header is bad keeps its body and its
//! place; what was wrong stands in its issues.

mod identity;
pub(crate) mod shapes;

use std::borrow::Cow;
use std::collections::HashSet;

use serde_json::Map;

use crate::body;
use crate::fence::{self, Fence};
use crate::issue::{self, Issue};
use crate::lines::Lines;
use crate::names::name_key;
use crate::page::{Layout, Link, LinkKind, Page, PageType};
use crate::schema;
use crate::when::When;
use crate::wikilink::Wikilink;
use crate::yaml::{self, Header};

/// The one entry. `path` is relative to the page root, with `/` between names.
pub fn parse(path: &str, bytes: &[u8], layout: Layout) -> Page {
    let (text, utf8) = decode(bytes);
    let mut page = blank(path);
    page.utf8 = utf8;
    if !utf8 {
        let message = "The file is not UTF-8; it is shown as far as it can be read and cannot be changed here.";
        page.issues
            .push(Issue::new("not_utf8", issue::at(1, 1), message));
    }
    let mut lines = Lines::new(&text);
    let (header, body_start) = header(&text, &mut lines, &mut page.issues);
    let body = body_start..text.len();
    let read = body::read(&text, body.clone(), &mut lines);
    page.links = header_links(&text, &header, &mut lines, &mut page.issues);
    page.body_line = lines.line(body.start);
    page.body = body;
    page.identity_clear = header.identity_clear;
    shapes::check(&header, layout, &mut lines, &mut page.issues);
    page.frontmatter = header.map;
    page.issues.extend(header.issues);
    page.issues.extend(read.issues);
    page.headings = read.headings;
    page.blocks = read.blocks;
    page.item_anchors = read.item_anchors;
    page.links.extend(read.links);
    page.text = text.into_owned();
    planted(&page.text);
    fill(&mut page, &read.tags, layout);
    page
}

fn blank(path: &str) -> Page {
    Page {
        path: path.to_owned(),
        page_type: PageType::Instance,
        skill: String::new(),
        id: String::new(),
        title: String::new(),
        aliases: Vec::new(),
        tags: Vec::new(),
        at: None,
        description: None,
        layer: None,
        scenario: None,
        hidden: false,
        identity_clear: true,
        frontmatter: Map::new(),
        text: String::new(),
        utf8: true,
        body: 0..0,
        body_line: 1,
        headings: Vec::new(),
        blocks: Vec::new(),
        item_anchors: Vec::new(),
        links: Vec::new(),
        schema: None,
        issues: Vec::new(),
    }
}

/// Text and whether it is what the bytes say. UTF-16 with a mark is shown
/// readably, but it is not UTF-8 either.
fn decode(bytes: &[u8]) -> (Cow<'_, str>, bool) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return (Cow::Borrowed(text), true);
    }
    let units = |read: fn([u8; 2]) -> u16| {
        let rest = bytes.get(2..).unwrap_or(&[]);
        let units = rest
            .chunks_exact(2)
            .filter_map(move |c| <[u8; 2]>::try_from(c).ok())
            .map(read);
        let text = char::decode_utf16(units)
            .map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER))
            .collect::<String>();
        (Cow::Owned(text), false)
    };
    match bytes {
        [0xff, 0xfe, ..] => units(u16::from_le_bytes),
        [0xfe, 0xff, ..] => units(u16::from_be_bytes),
        _ => (String::from_utf8_lossy(bytes), false),
    }
}

/// The header, empty when there is none or it is bad, and where the body starts.
fn header<'a>(text: &'a str, lines: &mut Lines<'a>, issues: &mut Vec<Issue>) -> (Header, usize) {
    let empty = || Header {
        identity_clear: true,
        ..Header::default()
    };
    match fence::find(text) {
        Fence::None { body } => (empty(), body),
        Fence::Unclosed { body } => {
            let issue = Issue::new(
                "frontmatter_unclosed",
                issue::at(1, 1),
                "The header that `---` opens is never closed; everything is read as body.",
            );
            issues.push(issue.suggest("Add a line `---` after the header."));
            (empty(), body)
        }
        Fence::Closed { header, body } => match yaml::read(text, header, lines) {
            Ok(read) => (read, body),
            Err(broken) => {
                issues.push(broken.issue);
                // Two rules around a paragraph are no header: nothing is hidden.
                let start = if text.starts_with('\u{feff}') {
                    '\u{feff}'.len_utf8()
                } else {
                    0
                };
                (empty(), if broken.mapping { body } else { start })
            }
        },
    }
}

fn header_links(
    text: &str,
    header: &Header,
    lines: &mut Lines<'_>,
    issues: &mut Vec<Issue>,
) -> Vec<Link> {
    let mut out = Vec::with_capacity(header.links.len());
    for found in &header.links {
        let Some(raw) = text.get(found.span.clone()) else {
            continue;
        };
        let (line, col) = lines.position(found.span.start);
        match Wikilink::parse(found.decoded.as_deref().unwrap_or(raw)) {
            Ok(target) => out.push(Link {
                kind: LinkKind::Wikilink,
                relation: Some(found.key.clone()),
                target,
                raw: raw.to_owned(),
                span: found.span.clone(),
                line,
                col,
                src_anchor: None,
            }),
            Err(e) => issues.push(Issue::new(
                "wikilink_malformed",
                issue::at(line, col),
                e.message,
            )),
        }
    }
    out
}

/// What follows from the header, with the defaults of path and body.
fn fill(page: &mut Page, body_tags: &[String], layout: Layout) {
    identity::fill(page, layout);
    let map = &page.frontmatter;
    page.aliases = schema::names(map.get("aliases"));
    page.tags = tags(schema::names(map.get("tags")).iter().chain(body_tags));
    page.description = schema::text(map.get("description"));
    page.layer = schema::text(map.get("layer"));
    page.scenario = schema::text(map.get("scenario"));
    page.hidden = map.get("hidden").is_some_and(schema::truthy);
    page.at = schema::text(map.get("at")).and_then(|at| When::parse(&at));
    if page.at.is_none() && map.get("at").is_some_and(|v| !v.is_null()) {
        let issue = Issue::new(
            "frontmatter_at_unreadable",
            "frontmatter.at",
            "`at` is neither an instant nor a day.",
        );
        page.issues
            .push(issue.suggest("Write 2026-04-12T10:00:00Z or 2026-04-12."));
    }
    schema::check_acl(map, &mut page.issues);
    if page.page_type == PageType::Skill {
        page.schema = Some(schema::read(&page.id, map, &mut page.issues));
    }
}

fn tags<'a>(names: impl Iterator<Item = &'a String>) -> Vec<String> {
    let mut seen = HashSet::new();
    let names = names
        .map(|n| n.trim_start_matches('#').trim())
        .filter(|n| !n.is_empty());
    names
        .filter(|n| seen.insert(name_key(n)))
        .map(str::to_owned)
        .collect()
}

#[cfg(feature = "planted-panic")]
fn planted(text: &str) {
    crate::planted::check(text, *b"pg!");
}

#[cfg(not(feature = "planted-panic"))]
fn planted(_: &str) {}
