//! The pieces of a page that search finds.

use std::ops::Range;

use crate::page::Page;

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
    vec![Unit { headings: String::new(), span: page.body.clone(), blocks: 0..page.blocks.len() as u32 }]
}
