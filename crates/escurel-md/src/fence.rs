//! Where the header ends and the body begins.
//!
//! A header opens with `---` on the very first line (after a byte order mark)
//! and ends at a line `---` or `...`. Invariant: the three ranges follow each
//! other without overlap.

use std::ops::Range;

const BOM: &str = "\u{feff}";

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Fence {
    /// No opening line.
    None { body: usize },
    /// Opened, never closed: everything is body.
    Unclosed { body: usize },
    /// `header` holds whole lines; the fences are not part of it.
    Closed { header: Range<usize>, body: usize },
}

pub(crate) fn find(text: &str) -> Fence {
    let start = if text.starts_with(BOM) { BOM.len() } else { 0 };
    let Some(header) = fence_line(text, start, &["---"]) else {
        return Fence::None { body: start };
    };
    let mut at = header;
    while at < text.len() {
        if let Some(body) = fence_line(text, at, &["---", "..."]) {
            return Fence::Closed {
                header: header..at,
                body,
            };
        }
        at = next_line(text, at);
    }
    Fence::Unclosed { body: start }
}

/// The offset after the line at `at`, if that line is one of `marks`.
fn fence_line(text: &str, at: usize, marks: &[&str]) -> Option<usize> {
    let rest = text.get(at..)?;
    if !marks.iter().any(|m| rest.starts_with(m)) {
        return None;
    }
    let end = next_line(text, at);
    let line = text.get(at..end)?.trim_end_matches(['\n', '\r', ' ', '\t']);
    marks.contains(&line).then_some(end)
}

/// Start of the line after the one that holds `at`.
pub(crate) fn next_line(text: &str, at: usize) -> usize {
    let b = text.as_bytes().get(at..).unwrap_or(&[]);
    match memchr::memchr2(b'\n', b'\r', b) {
        Some(i) if b.get(i) == Some(&b'\r') && b.get(i + 1) == Some(&b'\n') => at + i + 2,
        Some(i) => at + i + 1,
        None => text.len(),
    }
}
