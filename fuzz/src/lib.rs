//! What must hold for every input, shared by the fuzz targets.

use std::ops::Range;

use escurel_md::{Layout, Page, Wikilink, parse, set_frontmatter_key, units};
use serde_json::{Value, json};

/// Spans in bounds and on character boundaries, lines and columns right,
/// blocks in order, anchors unique, units within their limit.
pub fn check_page(bytes: &[u8]) {
    let layout = if bytes.len() % 2 == 0 {
        Layout::Vault
    } else {
        Layout::Tenant
    };
    let page = parse("markdown/instances/note/a.md", bytes, layout);
    check_spans(&page);
    check_order(&page);
    check_units(&page);
}

fn check_span(page: &Page, span: &Range<usize>) {
    assert!(
        page.text.get(span.clone()).is_some(),
        "span {span:?} is not in the text"
    );
}

fn check_spans(page: &Page) {
    check_span(page, &page.body);
    for h in &page.headings {
        check_span(page, &h.span);
        check_span(page, &h.section);
        assert!((1..=6).contains(&h.level));
        assert_eq!(h.line, line_col(&page.text, h.span.start).0);
        assert!(page.find_anchor(&h.anchor).is_some());
    }
    for block in &page.blocks {
        check_span(page, &block.span);
    }
    for anchor in &page.item_anchors {
        check_span(page, &anchor.span);
    }
    for link in page.links.iter().take(200) {
        assert_eq!(page.text.get(link.span.clone()), Some(link.raw.as_str()));
        assert_eq!((link.line, link.col), line_col(&page.text, link.span.start));
    }
}

fn check_order(page: &Page) {
    let mut end = page.body.start;
    let mut seen = std::collections::HashSet::new();
    for block in &page.blocks {
        assert!(
            block.span.start >= end && block.span.end <= page.body.end,
            "blocks overlap"
        );
        assert!(seen.insert(&block.anchor), "anchor twice: {}", block.anchor);
        end = block.span.end;
    }
}

fn check_units(page: &Page) {
    let units = units(page);
    assert!(!units.is_empty());
    for unit in &units {
        check_span(page, &unit.span);
        assert!(unit.span.len() <= 2000);
        assert!(unit.blocks.end as usize <= page.blocks.len());
    }
    for (i, block) in page.blocks.iter().enumerate() {
        let covered = units
            .iter()
            .any(|u| u.blocks.contains(&(i as u32)) && u.span.start <= block.span.start);
        assert!(covered || units.len() > 500, "block {i} is in no unit");
    }
}

/// 1-based line and column in characters, the slow way.
fn line_col(text: &str, offset: usize) -> (u32, u32) {
    let before = text.get(..offset).unwrap_or_default();
    // A `\r` right before a `\n` at `offset` has not ended its line yet.
    let cr_lf = before.ends_with('\r') && text.get(offset..).is_some_and(|s| s.starts_with('\n'));
    let lines = before.replace("\r\n", "\n").replace('\r', "\n");
    let ended = lines.matches('\n').count() as u32 - u32::from(cr_lf);
    let col = lines
        .rsplit('\n')
        .next()
        .unwrap_or_default()
        .chars()
        .count() as u32
        + 1;
    (ended + 1, col)
}

/// Setting a key changes that key only, or is refused. The input chooses one
/// of the edits, so that each run stays short.
pub fn check_edit(bytes: &[u8]) {
    let values = [
        None,
        Some(json!("new value: #1")),
        Some(json!(["a", "[[note::b]]", 3])),
        Some(json!(12)),
    ];
    let choice = bytes.iter().fold(0usize, |sum, byte| {
        sum.wrapping_mul(31).wrapping_add(usize::from(*byte))
    });
    let key = ["id", "k", "tags"][choice % 3];
    let value: &Option<Value> = &values[choice / 3 % 4];
    let Ok(edited) = set_frontmatter_key(bytes, key, value.as_ref()) else {
        return;
    };
    let before = parse("a.md", bytes, Layout::Vault);
    let after = parse("a.md", &edited, Layout::Vault);
    assert!(!after.header_unreadable() || before.header_unreadable());
    let (mut old, mut new) = (before.frontmatter.clone(), after.frontmatter.clone());
    old.remove(key);
    assert_eq!(new.remove(key).is_some(), value.is_some());
    assert_eq!(old, new, "another key changed");
    assert_eq!(before.body_text(), after.body_text(), "the body changed");
}

/// A link that parses renders to itself.
pub fn check_wikilink(text: &str) {
    if let Ok(link) = Wikilink::parse(text) {
        let again = Wikilink::parse(&link.render());
        assert_eq!(again.as_ref(), Ok(&link), "{}", link.render());
        let _ = link.version_number();
    }
}
