//! Wikilinks that stand unquoted where YAML would see lists.
//!
//! Lines such as `owner: [[person::ana]]` or `- [[a]], [[b]]` are masked
//! before parsing: the value becomes filler of the same number of characters,
//! so that the parser's positions hold. Invariant: masking changes no
//! character outside of the values that it lists.

use std::ops::Range;

/// A private-use character; text that already holds it is not masked.
pub(crate) const FILLER: char = '\u{e000}';

#[derive(Debug)]
pub(crate) struct Masked {
    /// None when nothing had to be masked.
    pub text: Option<String>,
    pub values: Vec<MaskedValue>,
}

#[derive(Debug)]
pub(crate) struct MaskedValue {
    /// In the header.
    pub span: Range<usize>,
    /// The links if the value is nothing but links, else it is a text.
    pub links: Option<Vec<Range<usize>>>,
}

pub(crate) fn mask(source: &str) -> Masked {
    let mut values = Vec::new();
    if source.contains("[[") && !source.contains(FILLER) {
        let mut at = 0;
        while at < source.len() {
            let next = crate::fence::next_line(source, at);
            let line = source
                .get(at..next)
                .unwrap_or("")
                .trim_end_matches(['\n', '\r']);
            values.extend(masked_value(line, at));
            at = next;
        }
    }
    let text = (!values.is_empty()).then(|| fill(source, &values));
    Masked { text, values }
}

fn fill(source: &str, values: &[MaskedValue]) -> String {
    let mut out = String::with_capacity(source.len() * 2);
    let mut at = 0;
    for value in values {
        out.push_str(source.get(at..value.span.start).unwrap_or(""));
        let len = source
            .get(value.span.clone())
            .map_or(0, |s| s.chars().count());
        out.extend(std::iter::repeat_n(FILLER, len));
        at = value.span.end;
    }
    out.push_str(source.get(at..).unwrap_or(""));
    out
}

fn masked_value(line: &str, base: usize) -> Option<MaskedValue> {
    let start = value_start(line)?;
    let rest = line.get(start..)?;
    let first = link_at(rest)?;
    let mut links: Vec<Range<usize>> = Vec::new();
    links.push(base + start..base + start + first);
    let mut at = first;
    loop {
        let tail = rest.get(at..)?;
        let gap = tail.trim_start_matches([' ', '\t']);
        if gap.is_empty() || (gap.starts_with('#') && gap.len() < tail.len()) {
            return Some(MaskedValue {
                span: base + start..base + start + at,
                links: Some(links),
            });
        }
        let after = gap
            .strip_prefix(',')
            .map(|g| g.trim_start_matches([' ', '\t']));
        let Some((after, len)) = after.and_then(|a| Some((a, link_at(a)?))) else {
            break;
        };
        let begin = rest.len() - after.len();
        links.push(base + start + begin..base + start + begin + len);
        at = begin + len;
    }
    // Links and other words: a text, up to a comment.
    let end = rest
        .get(at..)
        .and_then(|t| t.find(" #"))
        .map_or(rest.len(), |i| at + i);
    let end = rest.get(..end)?.trim_end().len();
    Some(MaskedValue {
        span: base + start..base + start + end,
        links: None,
    })
}

/// Where a value that begins with `[[` starts on a line `key: [[` or `- [[`.
fn value_start(line: &str) -> Option<usize> {
    if !line.contains("[[") {
        return None;
    }
    let mut at = line.len() - line.trim_start_matches(' ').len();
    let mut item = false;
    while line.get(at..)?.starts_with("- ") {
        let rest = line.get(at + 2..)?;
        at = line.len() - rest.trim_start_matches(' ').len();
        item = true;
    }
    let rest = line.get(at..)?;
    if rest.starts_with("[[") {
        return item.then_some(at);
    }
    if rest.starts_with([
        '[', ']', '{', '}', '#', '&', '*', '!', '|', '>', '%', '@', '`', ',', '?',
    ]) {
        return None;
    }
    let colon = match rest.chars().next()? {
        quote @ ('"' | '\'') => 1 + rest.get(1..)?.find(quote)? + 1,
        _ => rest.find(':')?,
    };
    let value = rest.get(colon..)?.strip_prefix(':')?.strip_prefix(' ')?;
    let value = value.trim_start_matches(' ');
    value.starts_with("[[").then(|| line.len() - value.len())
}

/// Length of the wikilink at the start of `s`, unless it is a list of lists.
pub(crate) fn link_at(s: &str) -> Option<usize> {
    let inside = s.strip_prefix("[[")?;
    let close = inside.find("]]")?;
    let inside = inside.get(..close)?;
    is_link_text(inside).then_some(close + 4)
}

/// `1, 2` is a list; a link with a comma is taken for one only in typed form.
pub(crate) fn is_link_text(inside: &str) -> bool {
    !inside.trim().is_empty()
        && !inside.contains(['[', ']'])
        && !inside.trim_start().starts_with(['"', '\''])
        && (!inside.contains(',') || inside.contains("::") || inside.contains('|'))
}
