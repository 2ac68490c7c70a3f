//! The copy of a body that the markdown parser sees.
//!
//! Lines nested or indented beyond reason cost the parser time with every
//! later line, so their prefix becomes letters; a lone `\r` becomes `\n`.
//! Invariant: every byte keeps its place, and nothing else changes.

use std::borrow::Cow;

/// Container marks at the start of one line.
const MAX_MARKS: usize = 48;
/// Columns of indentation.
const MAX_INDENT: usize = 200;

pub(super) fn guarded(body: &str) -> Cow<'_, str> {
    let b = body.as_bytes();
    let mut copy: Option<Vec<u8>> = None;
    let mut at = 0;
    while at < b.len() {
        let next = crate::fence::next_line(body, at);
        if let Some((from, to)) = b.get(at..next).and_then(excess) {
            let bytes = copy.get_or_insert_with(|| b.to_vec());
            if let Some(prefix) = bytes.get_mut(at + from..at + to) {
                prefix.fill(b'x');
            }
        }
        if b.get(next - 1) == Some(&b'\r') {
            let bytes = copy.get_or_insert_with(|| b.to_vec());
            if let Some(end) = bytes.get_mut(next - 1) {
                *end = b'\n';
            }
        }
        at = next;
    }
    match copy.map(String::from_utf8) {
        Some(Ok(copy)) => Cow::Owned(copy),
        _ => Cow::Borrowed(body),
    }
}

/// The part of a line's prefix that is one nesting too many.
fn excess(line: &[u8]) -> Option<(usize, usize)> {
    let (mut i, mut marks, mut indent) = (0, 0, 0);
    let mut from = None;
    while let Some(c) = line.get(i) {
        let len = match c {
            b' ' => 1,
            b'\t' => 1,
            b'>' => 1,
            b'-' | b'+' | b'*' if matches!(line.get(i + 1), Some(b' ' | b'\t')) => 1,
            b'0'..=b'9' => match ordered(line.get(i..).unwrap_or(&[])) {
                Some(len) => len,
                None => break,
            },
            _ => break,
        };
        match c {
            b' ' => indent += 1,
            b'\t' => indent += 4,
            _ => marks += 1,
        }
        if from.is_none() && marks > MAX_MARKS {
            from = Some(i);
        }
        if from.is_none() && indent > MAX_INDENT {
            from = Some(0);
        }
        i += len;
    }
    from.map(|from| (from, i))
}

/// Length of `12.` or `12)` before a space.
fn ordered(s: &[u8]) -> Option<usize> {
    let digits = s.iter().take(10).take_while(|c| c.is_ascii_digit()).count();
    let ends = digits <= 9
        && matches!(s.get(digits), Some(b'.' | b')'))
        && matches!(s.get(digits + 1), Some(b' ' | b'\t'));
    ends.then_some(digits + 1)
}
