//! The header as JSON values, with the places where its keys and links stand.
//!
//! Refuses what is too large, too deep or multiplies through aliases, while
//! parsing and before memory is spent. Invariant: the work is linear in the
//! header and bounded by [`limits`].

mod build;
mod links;
mod scalar;

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use saphyr_parser::Parser;
use serde_json::{Map, Value};

use crate::issue::Issue;
use crate::lines::Lines;

pub(crate) use scalar::plain;

/// What a header may cost.
pub(crate) mod limits {
    /// Bytes of a header.
    pub const BYTES: usize = 256 * 1024;
    /// Lists and mappings inside each other.
    pub const DEPTH: usize = 64;
    /// Values of a header, copies through aliases included.
    pub const NODES: usize = 40_000;
    /// Uses of anchors.
    pub const ALIASES: usize = 1_000;
    /// Bytes of text that anchors and aliases copy.
    pub const COPIED: usize = 1024 * 1024;
}

/// A header that could be read.
#[derive(Debug, Default)]
pub(crate) struct Header {
    pub map: Map<String, Value>,
    /// Links in string values, in the order of the file.
    pub links: Vec<HeaderLink>,
    /// Top-level keys with their places, every occurrence.
    pub keys: Vec<Key>,
    pub issues: Vec<Issue>,
    /// False when a key that says what the page is occurs twice.
    pub identity_clear: bool,
    /// True when the header is written `{…}` and has no lines of its own.
    pub flow: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct HeaderLink {
    pub key: String,
    pub span: Range<usize>,
    /// The text of the link when the source is escaped, else what the span holds.
    pub decoded: Option<String>,
}

#[derive(Debug, Clone)]
pub(crate) struct Key {
    pub name: String,
    pub span: Range<usize>,
    /// Place of a value that is one plain or quoted scalar.
    pub scalar: Option<Range<usize>>,
}

/// A header that could not be read.
#[derive(Debug)]
pub(crate) struct Broken {
    pub issue: Issue,
    /// False: it is not a mapping at all, so perhaps not meant as a header.
    pub mapping: bool,
}

/// Reads the header at `range` of the text.
pub(crate) fn read<'a>(
    text: &'a str,
    range: Range<usize>,
    lines: &mut Lines<'a>,
) -> Result<Header, Broken> {
    let source = text.get(range.clone()).unwrap_or("");
    if source.len() > limits::BYTES {
        let (line, _) = lines.position(range.start);
        let message = format!(
            "The header has {} bytes; {} are read.",
            source.len(),
            limits::BYTES
        );
        return Err(broken(line, 1, message));
    }
    let masked = links::mask(source);
    let input = masked.text.as_deref().unwrap_or(source);
    planted(source);
    let places = Places::new(source, range.start);
    // The parser is foreign code: a page must never take its neighbours down.
    let run = catch_unwind(AssertUnwindSafe(|| {
        let mut builder = build::Builder::new(text, range.clone(), &masked, places, lines);
        let mut parser = Parser::new_from_str(input);
        while let Some(event) = parser.next_event() {
            match event {
                Ok((event, span)) => builder.take(event, span)?,
                Err(e) => return Err(builder.scan_error(&e)),
            }
        }
        builder.finish()
    }));
    run.unwrap_or_else(|_| Err(broken(2, 1, "The header cannot be read.".to_owned())))
}

pub(crate) fn broken(line: u32, col: u32, message: String) -> Broken {
    Broken {
        issue: Issue::new(
            "frontmatter_unparsable",
            crate::issue::at(line, col),
            message,
        ),
        mapping: true,
    }
}

/// From the parser's character indexes to byte offsets of the page.
pub(crate) struct Places {
    base: usize,
    len: usize,
    /// Byte offset of each character; none for ASCII, where they are equal.
    table: Option<Vec<u32>>,
}

impl Places {
    fn new(source: &str, base: usize) -> Places {
        let table =
            (!source.is_ascii()).then(|| source.char_indices().map(|(i, _)| i as u32).collect());
        Places {
            base,
            len: source.len(),
            table,
        }
    }

    fn byte(&self, index: usize) -> usize {
        let offset = match &self.table {
            None => index.min(self.len),
            Some(table) => table.get(index).map_or(self.len, |b| *b as usize),
        };
        self.base + offset
    }
}

#[cfg(feature = "planted-panic")]
fn planted(source: &str) {
    crate::planted::check(source, *b"fm!");
}

#[cfg(not(feature = "planted-panic"))]
fn planted(_: &str) {}
