//! Changing one place of a page, or one frontmatter key, without touching any other byte.
//!
//! Refuses headers it cannot read and edits it cannot prove: the result is
//! read again, and every other key must be what it was. Invariant: there is
//! never a second header.

mod passage;
mod relink;
mod source;

pub use passage::{How, Misplaced, Place, edit_passage};
pub use relink::{Relinked, relative_path, relink};

use std::ops::Range;

use serde_json::Value;

use crate::fence::{self, Fence};
use crate::lines::Lines;
use crate::yaml::{self, Header, Key};

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct EditError {
    /// `frontmatter_unparsable`, `frontmatter_edit_refused` or `not_utf8`.
    pub code: &'static str,
    pub message: String,
}

/// Sets (`Some`) or removes (`None`) one top-level key.
pub fn set_frontmatter_key(
    bytes: &[u8],
    key: &str,
    value: Option<&Value>,
) -> Result<Vec<u8>, EditError> {
    let text = std::str::from_utf8(bytes)
        .map_err(|_| refuse("not_utf8", "the file is not UTF-8 and is never rewritten"))?;
    match fence::find(text) {
        Fence::None { body } => match value {
            None => Ok(bytes.to_vec()),
            Some(value) => create(text, body, key, value),
        },
        Fence::Unclosed { .. } => Err(refuse(
            "frontmatter_unparsable",
            "the header is never closed; add a line `---` after it",
        )),
        Fence::Closed { header, .. } => Edit::new(text, header, key, value)?.apply(),
    }
}

fn create(text: &str, start: usize, key: &str, value: &Value) -> Result<Vec<u8>, EditError> {
    let eol = line_ending(text).unwrap_or("\n");
    let line = format!("{}: {}", source::scalar(key, false), source::value(value));
    let head = format!("---{eol}{line}{eol}---{eol}");
    let result = splice(text, &[(start..start, head)]);
    let made = read(&result)?;
    match made.map.get(key) {
        Some(got) if source::same(value, got) && made.map.len() == 1 => Ok(result.into_bytes()),
        _ => Err(unproven(key)),
    }
}

struct Edit<'a> {
    text: &'a str,
    range: Range<usize>,
    header: Header,
    key: &'a str,
    value: Option<&'a Value>,
}

impl<'a> Edit<'a> {
    fn new(
        text: &'a str,
        range: Range<usize>,
        key: &'a str,
        value: Option<&'a Value>,
    ) -> Result<Self, EditError> {
        let header = read(text)?;
        if header.flow {
            return Err(refuse(
                "frontmatter_unparsable",
                "the header is written in braces; write one key per line first",
            ));
        }
        Ok(Edit {
            text,
            range,
            header,
            key,
            value,
        })
    }

    fn apply(&self) -> Result<Vec<u8>, EditError> {
        let places = self.occurrences()?;
        for changes in [self.in_place(&places), Some(self.by_lines(&places))]
            .into_iter()
            .flatten()
        {
            let result = splice(self.text, &changes);
            if self.proven(&result) {
                return Ok(result.into_bytes());
            }
        }
        Err(unproven(self.key))
    }

    /// Every place of the key, with the lines that are its own.
    fn occurrences(&self) -> Result<Vec<(&Key, Range<usize>)>, EditError> {
        let keys = &self.header.keys;
        let mut out = Vec::new();
        for (i, key) in keys.iter().enumerate().filter(|(_, k)| k.name == self.key) {
            let start = self.line_start(key.span.start);
            let indent = self.text.get(start..key.span.start).unwrap_or("");
            if !indent.bytes().all(|b| b == b' ') {
                return Err(refuse(
                    "frontmatter_edit_refused",
                    "the key does not stand at the start of its line",
                ));
            }
            let end = keys
                .get(i + 1)
                .map_or(self.range.end, |next| self.line_start(next.span.start));
            if end <= start {
                return Err(refuse(
                    "frontmatter_edit_refused",
                    "two keys stand on one line",
                ));
            }
            out.push((key, start..self.own_end(start, end)));
        }
        Ok(out)
    }

    fn line_start(&self, at: usize) -> usize {
        let before = self.text.get(self.range.start..at).unwrap_or("");
        before
            .rfind(['\n', '\r'])
            .map_or(self.range.start, |i| self.range.start + i + 1)
    }

    /// Comments and empty lines before the next key are not the key's own.
    fn own_end(&self, start: usize, end: usize) -> usize {
        let (mut own, mut at) = (start, start);
        while at < end {
            let next = fence::next_line(self.text, at).min(end);
            let line = self.text.get(at..next).unwrap_or("");
            if at == start || !(line.trim().is_empty() || line.starts_with('#')) {
                own = next;
            }
            at = next;
        }
        own
    }

    /// Replaces only the scalar, so that a comment on the line stays.
    fn in_place(&self, places: &[(&Key, Range<usize>)]) -> Option<Vec<(Range<usize>, String)>> {
        let [(key, _)] = places else { return None };
        let span = key.scalar.clone()?;
        let old = self.text.get(span.clone())?.trim_end();
        let usable = !old.is_empty()
            && !old.contains(['\n', '\r'])
            && self.text.get(key.span.end..span.start)?.contains(' ');
        usable.then_some(())?;
        Some(vec![(
            span.start..span.start + old.len(),
            source::value(self.value?),
        )])
    }

    fn by_lines(&self, places: &[(&Key, Range<usize>)]) -> Vec<(Range<usize>, String)> {
        let mut changes: Vec<_> = places
            .iter()
            .map(|(_, lines)| (lines.clone(), String::new()))
            .collect();
        let Some(value) = self.value else {
            return changes;
        };
        let line = format!(
            "{}: {}",
            source::scalar(self.key, false),
            source::value(value)
        );
        match (changes.last_mut(), places.last()) {
            (Some((lines, new)), Some((key, _))) => {
                let old = self.text.get(lines.clone()).unwrap_or("");
                let indent = self.text.get(lines.start..key.span.start).unwrap_or("");
                *new = format!("{indent}{line}{}", line_ending(old).unwrap_or("\n"));
            }
            _ => {
                let fence = self.text.get(..self.range.start).unwrap_or("");
                let first = self.header.keys.first();
                let indent = first.map_or("", |k| {
                    self.text
                        .get(self.line_start(k.span.start)..k.span.start)
                        .unwrap_or("")
                });
                let at = self.range.end;
                changes.push((
                    at..at,
                    format!("{indent}{line}{}", line_ending(fence).unwrap_or("\n")),
                ));
            }
        }
        changes
    }

    /// The result reads as asked, and every other key as before.
    fn proven(&self, result: &str) -> bool {
        let Ok(mut new) = read(result) else {
            return false;
        };
        let got = new.map.shift_remove(self.key);
        let mut old = self.header.map.clone();
        old.shift_remove(self.key);
        let as_asked = match (self.value, got) {
            (None, None) => true,
            (Some(want), Some(got)) => source::same(want, &got),
            _ => false,
        };
        as_asked && old == new.map && !new.flow
    }
}

fn read(text: &str) -> Result<Header, EditError> {
    let Fence::Closed { header, .. } = fence::find(text) else {
        return Err(refuse("frontmatter_unparsable", "the header is not closed"));
    };
    let mut lines = Lines::new(text);
    yaml::read(text, header, &mut lines).map_err(|broken| {
        let message = format!(
            "the header cannot be read at {}: {}",
            broken.issue.location, broken.issue.message
        );
        EditError {
            code: "frontmatter_unparsable",
            message,
        }
    })
}

/// Applies changes that are in order and do not overlap.
fn splice(text: &str, changes: &[(Range<usize>, String)]) -> String {
    let mut out = String::with_capacity(text.len() + 64);
    let mut at = 0;
    for (range, new) in changes {
        out.push_str(text.get(at..range.start).unwrap_or(""));
        out.push_str(new);
        at = range.end;
    }
    out.push_str(text.get(at..).unwrap_or(""));
    out
}

fn line_ending(text: &str) -> Option<&'static str> {
    let at = text.find(['\n', '\r'])?;
    let rest = text.get(at..)?;
    Some(if rest.starts_with("\r\n") {
        "\r\n"
    } else if rest.starts_with('\r') {
        "\r"
    } else {
        "\n"
    })
}

fn unproven(key: &str) -> EditError {
    refuse(
        "frontmatter_edit_refused",
        &format!("`{key}` cannot be set without changing other keys; edit the header as text"),
    )
}

fn refuse(code: &'static str, message: &str) -> EditError {
    EditError {
        code,
        message: message.to_owned(),
    }
}
