//! What stands inside running text: wikilinks, tags, comment marks, block ids.
//!
//! Works on source text that markdown has already cleared of code, HTML and
//! link targets. Invariant: each byte is looked at a bounded number of times.

use std::ops::Range;

use memchr::{memchr, memchr_iter, memmem};
use unicode_normalization::char::is_combining_mark;

/// A `[[…]]` on one line.
pub(crate) struct Pair {
    pub span: Range<usize>,
    /// False when there are single brackets between the double ones.
    pub clean: bool,
}

/// Spans of well-formed wikilinks in a header value.
pub(crate) fn wikilinks(text: &str, range: Range<usize>) -> Vec<Range<usize>> {
    let mut out = Vec::new();
    pairs(text, range, |pair| {
        if pair.clean {
            out.push(pair.span);
        }
    });
    out
}

/// Every innermost `[[…]]` of the range.
pub(crate) fn pairs(text: &str, range: Range<usize>, mut found: impl FnMut(Pair)) {
    let b = text.as_bytes();
    let end = range.end.min(b.len());
    let mut at = range.start;
    while let Some(i) = b.get(at..end).and_then(|s| memchr(b'[', s)) {
        let start = at + i;
        let run = b
            .get(start..end)
            .map_or(0, |s| s.iter().take_while(|c| **c == b'[').count());
        at = start + run;
        let escaped = is_escaped(b, start);
        if run < 2 || (run == 2 && escaped) {
            continue;
        }
        match close(b, at, end) {
            Close::Found { after, clean } => {
                found(Pair {
                    span: at - 2..after,
                    clean,
                });
                at = after;
            }
            Close::None { resume } => at = resume,
        }
    }
}

enum Close {
    Found {
        after: usize,
        clean: bool,
    },
    /// No partner on this line; the search goes on at `resume`.
    None {
        resume: usize,
    },
}

fn close(b: &[u8], from: usize, end: usize) -> Close {
    let mut clean = true;
    let mut i = from;
    while i < end {
        let next = b.get(i + 1).filter(|_| i + 1 < end);
        match b.get(i) {
            Some(b'\n' | b'\r') => return Close::None { resume: i },
            Some(b'[') if next == Some(&b'[') => return Close::None { resume: i },
            Some(b']') if next == Some(&b']') => {
                return Close::Found {
                    after: i + 2,
                    clean,
                };
            }
            Some(b'[' | b']') => clean = false,
            Some(b'\\') if matches!(next, Some(b'[' | b']')) => {
                clean = false;
                i += 1;
            }
            _ => {}
        }
        i += 1;
    }
    Close::None { resume: end }
}

/// Whether an odd number of backslashes stands before `at`.
pub(crate) fn is_escaped(b: &[u8], at: usize) -> bool {
    let before = b.get(..at).unwrap_or(&[]);
    before.iter().rev().take_while(|c| **c == b'\\').count() % 2 == 1
}

/// Offsets of `%%` marks.
pub(crate) fn comment_marks(text: &str, range: Range<usize>, out: &mut Vec<usize>) {
    let Some(slice) = text.as_bytes().get(range.clone()) else {
        return;
    };
    for i in memmem::find_iter(slice, b"%%") {
        if !is_escaped(text.as_bytes(), range.start + i) {
            out.push(range.start + i);
        }
    }
}

/// Spans of `#tag`s, the `#` included, outside of `links`.
pub(crate) fn tags(
    text: &str,
    range: Range<usize>,
    links: &[Range<usize>],
    mut found: impl FnMut(Range<usize>),
) {
    let Some(slice) = text.as_bytes().get(range.clone()) else {
        return;
    };
    let mut links = links.iter().peekable();
    for i in memchr_iter(b'#', slice) {
        let at = range.start + i;
        while links.peek().is_some_and(|l| l.end <= at) {
            links.next();
        }
        if links.peek().is_some_and(|l| l.start <= at) || !opens_tag(text, at) {
            continue;
        }
        let name = text.get(at + 1..range.end).unwrap_or("");
        let len = name.find(|c: char| !is_tag_char(c)).unwrap_or(name.len());
        let name = name.get(..len).unwrap_or("").trim_end_matches(['-', '/']);
        if name
            .chars()
            .any(|c| !c.is_numeric() && !matches!(c, '-' | '/' | '_'))
        {
            found(at..at + 1 + name.len());
        }
    }
}

fn opens_tag(text: &str, at: usize) -> bool {
    match text.get(..at).and_then(|s| s.chars().next_back()) {
        None => true,
        Some(c) => {
            c.is_whitespace() || matches!(c, '(' | ',' | ';' | '“' | '„' | '«' | '（' | '、')
        }
    }
}

fn is_tag_char(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '-' | '_' | '/') || is_combining_mark(c)
}

/// The `^id` at the end of a run: span of the id without `^`, and where the
/// text before it ends.
pub(crate) fn block_id(text: &str, run: Range<usize>) -> Option<(Range<usize>, usize)> {
    let line = text.get(run.clone())?.trim_end();
    let end = run.start + line.len();
    let id_len: usize = line
        .chars()
        .rev()
        .take_while(|c| is_id_char(*c))
        .map(char::len_utf8)
        .sum();
    let before = line.get(..line.len() - id_len)?.strip_suffix('^')?;
    let opens = before.is_empty() || before.ends_with(char::is_whitespace);
    (id_len > 0 && opens).then(|| (end - id_len..end, run.start + before.trim_end().len()))
}

fn is_id_char(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '-' | '_')
}
