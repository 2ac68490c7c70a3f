//! Anchors of headings and blocks, and the sections of headings.
//!
//! Invariant: no two blocks of a page have the same anchor, and the anchor of
//! a block without an id depends only on its words.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use super::{Body, RawBlock, RawHeading};
use crate::lines::Lines;
use crate::names::slug;
use crate::page::{Block, BlockKind, Heading, ItemAnchor};

pub(super) fn assign(
    text: &str,
    body: Range<usize>,
    headings: Vec<RawHeading>,
    blocks: Vec<RawBlock>,
    items: Vec<(String, Range<usize>)>,
    lines: &Lines<'_>,
    out: &mut Body,
) {
    let mut names = Names::default();
    let sections = sections(&headings, body.end);
    for (raw, section) in headings.into_iter().zip(sections) {
        let slug = slug(&raw.text);
        // Punctuation alone leaves nothing to link to.
        let anchor = names.unique(if slug.is_empty() {
            "section".to_owned()
        } else {
            slug
        });
        let line = lines.line(raw.span.start);
        out.headings.push(Heading {
            level: raw.level,
            text: raw.text,
            anchor,
            span: raw.span,
            section,
            line,
        });
    }
    // Ids that an author wrote come before generated ones.
    let given: Vec<Option<String>> = blocks
        .iter()
        .map(|b| b.id.as_ref().map(|id| names.unique(id.clone())))
        .collect();
    let mut heading = None;
    for (raw, given) in blocks.into_iter().zip(given) {
        let next = heading.map_or(0, |i: u32| i + 1);
        let own = out
            .headings
            .get(next as usize)
            .filter(|h| raw.kind == BlockKind::Heading && h.span == raw.span);
        if own.is_some() {
            heading = Some(next);
        }
        let anchor = match (own, given) {
            (Some(h), _) => h.anchor.clone(),
            (None, Some(given)) => given,
            (None, None) => names.unique(content_anchor(text.get(raw.span.clone()).unwrap_or(""))),
        };
        if let Some(id) = raw.id.filter(|id| *id != anchor) {
            let section = own.map(|h| h.section.clone());
            out.item_anchors.push(ItemAnchor {
                anchor: id,
                span: section.unwrap_or_else(|| raw.span.clone()),
            });
        }
        let line = lines.line(raw.span.start);
        out.blocks.push(Block {
            anchor,
            kind: raw.kind,
            span: raw.span,
            line,
            heading,
        });
    }
    out.item_anchors.extend(
        items
            .into_iter()
            .map(|(anchor, span)| ItemAnchor { anchor, span }),
    );
    if !out.item_anchors.is_empty() {
        let mut seen: HashSet<String> = out
            .blocks
            .iter()
            .filter(|b| b.kind != BlockKind::Heading)
            .map(|b| b.anchor.clone())
            .collect();
        out.item_anchors.retain(|a| seen.insert(a.anchor.clone()));
    }
}

/// Each heading's section ends at the next heading of its own or a higher rank.
fn sections(headings: &[RawHeading], end: usize) -> Vec<Range<usize>> {
    let mut out: Vec<Range<usize>> = headings.iter().map(|h| h.span.start..end).collect();
    let mut open: Vec<usize> = Vec::new();
    for (i, heading) in headings.iter().enumerate() {
        while let Some(last) = open.last().copied() {
            if headings.get(last).is_some_and(|h| h.level < heading.level) {
                break;
            }
            if let Some(section) = out.get_mut(last) {
                section.end = heading.span.start;
            }
            open.pop();
        }
        open.push(i);
    }
    out
}

/// Gives a repeated name `-1`, `-2`, …
#[derive(Default)]
struct Names {
    used: HashSet<String>,
    next: HashMap<String, u32>,
}

impl Names {
    fn unique(&mut self, name: String) -> String {
        if self.used.insert(name.clone()) {
            return name;
        }
        let next = self.next.entry(name.clone()).or_insert(0);
        loop {
            *next += 1;
            let candidate = format!("{name}-{next}");
            if self.used.insert(candidate.clone()) {
                return candidate;
            }
        }
    }
}

/// `b-` and eight digits of a hash of the words; white space does not count.
/// The hash is FNV-1a, frozen: anchors stand in stored links.
fn content_anchor(text: &str) -> String {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    let mut first = true;
    for word in text.split_ascii_whitespace() {
        let gap: &[u8] = if first { b"" } else { b" " };
        first = false;
        for byte in gap.iter().chain(word.as_bytes()) {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
    format!("b-{:08x}", (hash >> 32) as u32 ^ hash as u32)
}
