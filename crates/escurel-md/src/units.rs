//! The pieces of a page that search finds.
//!
//! Invariant: units cover every block, in order, and none is longer than
//! [`MAX_UNIT`] bytes.

use std::ops::Range;

use crate::page::{BlockKind, Page};

/// Blocks are joined up to about this many bytes.
const JOINED: usize = 1200;
/// No unit is longer.
const MAX_UNIT: usize = 2000;
/// Bytes of one heading in a heading path.
const MAX_HEADING: usize = 200;

#[derive(Clone, Debug, PartialEq)]
pub struct Unit {
    /// Heading path joined by ` › `.
    pub headings: String,
    /// In `Page::text`.
    pub span: Range<usize>,
    /// Indexes into `Page::blocks`.
    pub blocks: Range<u32>,
}

/// Never empty: a page without body has one empty unit.
pub fn units(page: &Page) -> Vec<Unit> {
    let mut out: Vec<Unit> = Vec::new();
    let mut path = HeadingPath::default();
    let mut current: Option<u32> = None;
    for (i, block) in page.blocks.iter().enumerate() {
        let i = i as u32;
        let opens = block.kind == BlockKind::Heading || block.heading != current;
        if opens {
            current = block.heading;
            path.enter(page, current);
        }
        let joins = !opens
            && out.last().is_some_and(|u| {
                block.span.end.saturating_sub(u.span.start) <= JOINED && u.blocks.end == i
            });
        match out.last_mut().filter(|_| joins) {
            Some(unit) => {
                unit.span.end = block.span.end;
                unit.blocks.end = i + 1;
            }
            None => push_windows(page, block.span.clone(), i, &path.joined, &mut out),
        }
    }
    if out.is_empty() {
        let at = page.body.start;
        out.push(Unit {
            headings: String::new(),
            span: at..at,
            blocks: 0..0,
        });
    }
    out
}

/// A long block becomes several units of the same block.
fn push_windows(page: &Page, span: Range<usize>, block: u32, headings: &str, out: &mut Vec<Unit>) {
    let mut start = span.start;
    loop {
        let end = window_end(&page.text, start, span.end);
        out.push(Unit {
            headings: headings.to_owned(),
            span: start..end,
            blocks: block..block + 1,
        });
        if end >= span.end {
            return;
        }
        start = end;
    }
}

/// Cuts after a line, else a sentence, else a word, else a character; in the
/// second half of the window, so that pieces do not become tiny.
fn window_end(text: &str, start: usize, end: usize) -> usize {
    if end - start <= MAX_UNIT {
        return end;
    }
    let mut limit = start + MAX_UNIT;
    while !text.is_char_boundary(limit) {
        limit -= 1;
    }
    let half = start + MAX_UNIT / 2;
    let window = text.get(start..limit).unwrap_or("");
    let cut = |at: Option<usize>, len: usize| at.map(|i| start + i + len).filter(|at| *at > half);
    cut(window.rfind(['\n', '\r']), 1)
        .or_else(|| {
            let sentence = [". ", "! ", "? "]
                .iter()
                .filter_map(|m| Some((window.rfind(m)?, m.len())))
                .max();
            let wide = window
                .rmatch_indices(['。', '！', '？', '।', '؟'])
                .next()
                .map(|(i, m)| (i, m.len()));
            let (at, len) = sentence.max(wide)?;
            cut(Some(at), len)
        })
        .or_else(|| cut(window.rfind(' '), 1))
        .unwrap_or(limit)
}

/// A heading is repeated in every unit below it, so a giant one is cut.
fn clip(text: &str) -> &str {
    let mut end = text.len().min(MAX_HEADING);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or("")
}

/// The headings that a place stands under, outermost first.
#[derive(Default)]
struct HeadingPath {
    open: Vec<(u8, u32)>,
    joined: String,
}

impl HeadingPath {
    fn enter(&mut self, page: &Page, heading: Option<u32>) {
        let Some((index, h)) = heading.and_then(|i| Some((i, page.headings.get(i as usize)?)))
        else {
            return;
        };
        while self.open.last().is_some_and(|(level, _)| *level >= h.level) {
            self.open.pop();
        }
        self.open.push((h.level, index));
        let texts = self
            .open
            .iter()
            .filter_map(|(_, i)| page.headings.get(*i as usize))
            .map(|h| clip(&h.text));
        self.joined = texts.collect::<Vec<_>>().join(" › ");
    }
}
