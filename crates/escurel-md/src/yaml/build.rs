//! Events of the YAML parser to JSON values.
//!
//! Keeps its own stack, so that nesting costs no call stack. Invariant: the
//! limits are checked before a value is stored or copied.

use std::collections::HashMap;
use std::ops::Range;

use saphyr_parser::{Event, ScalarStyle, ScanError, Span, Tag};
use serde_json::{Map, Value};

use super::links::{self, FILLER, Masked};
use super::{Broken, Header, HeaderLink, Key, Places, broken, limits, scalar};
use crate::inline;
use crate::issue::{self, Issue};
use crate::lines::Lines;

/// Findings about one header; a hostile one could have thousands.
const MAX_ISSUES: usize = 100;

pub(super) struct Builder<'a, 'm, 'l> {
    text: &'a str,
    range: Range<usize>,
    masked: &'m Masked,
    places: Places,
    lines: &'l mut Lines<'a>,
    stack: Vec<Frame>,
    anchors: HashMap<usize, Stored>,
    root: Option<Value>,
    documents: u32,
    cost: Cost,
    aliases: usize,
    copied: usize,
    header: Header,
}

/// Values and bytes of text, copies included.
#[derive(Clone, Copy, Default)]
struct Cost {
    nodes: usize,
    bytes: usize,
}

/// What an anchor names.
struct Stored {
    value: Value,
    cost: Cost,
    height: usize,
}

struct Frame {
    start: usize,
    anchor: usize,
    before: Cost,
    /// Levels below this one.
    height: usize,
    kind: Kind,
}

enum Kind {
    List(Vec<Value>),
    Map { map: Map<String, Value>, key: Option<(String, usize)>, lines: HashMap<String, u32> },
}

impl<'a, 'm, 'l> Builder<'a, 'm, 'l> {
    pub(super) fn new(text: &'a str, range: Range<usize>, masked: &'m Masked, places: Places, lines: &'l mut Lines<'a>) -> Self {
        let header = Header { identity_clear: true, ..Header::default() };
        Builder {
            text, range, masked, places, lines, header,
            stack: Vec::new(), anchors: HashMap::new(), root: None, documents: 0,
            cost: Cost::default(), aliases: 0, copied: 0,
        }
    }

    pub(super) fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), Broken> {
        let at = self.places.byte(span.start.index());
        let end = self.places.byte(span.end.index()).max(at);
        match event {
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => Ok(()),
            Event::DocumentStart(_) => {
                self.documents += 1;
                if self.documents > 1 { Err(self.broken(at, "The header holds a second document.")) } else { Ok(()) }
            }
            Event::Alias(id) => self.alias(id, at),
            Event::Scalar(text, style, anchor, tag) => self.scalar(&text, style, anchor, tag.as_deref(), at..end),
            Event::SequenceStart(anchor, _) => self.open(at, anchor, Kind::List(Vec::new())),
            Event::MappingStart(anchor, _) => {
                if self.stack.is_empty() {
                    self.header.flow = self.text.as_bytes().get(at) == Some(&b'{');
                }
                self.open(at, anchor, Kind::Map { map: Map::new(), key: None, lines: HashMap::new() })
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(at, end),
        }
    }

    fn open(&mut self, at: usize, anchor: usize, kind: Kind) -> Result<(), Broken> {
        if self.expects_key() {
            return Err(self.broken(at, "A key is a list or a mapping; quote the text if none is meant."));
        }
        if self.stack.len() >= limits::DEPTH {
            return Err(self.broken(at, "The header is nested too deeply."));
        }
        let before = self.cost;
        self.spend(1, 0, at)?;
        self.stack.push(Frame { start: at, anchor, before, height: 0, kind });
        Ok(())
    }

    fn close(&mut self, at: usize, end: usize) -> Result<(), Broken> {
        let Some(frame) = self.stack.pop() else { return Ok(()) };
        let value = match frame.kind {
            Kind::List(items) => self.list(items, frame.start, end),
            Kind::Map { map, .. } => Value::Object(map),
        };
        if let Some(parent) = self.stack.last_mut() {
            parent.height = parent.height.max(frame.height + 1);
        }
        if frame.anchor > 0 {
            let cost = Cost { nodes: self.cost.nodes - frame.before.nodes, bytes: self.cost.bytes - frame.before.bytes };
            self.store(frame.anchor, &value, cost, frame.height + 1, at)?;
        }
        self.put(value, at)
    }

    /// `[[x]]` inside a flow collection is a link; other lists stay lists.
    fn list(&mut self, items: Vec<Value>, start: usize, end: usize) -> Value {
        let single = matches!(items.as_slice(), [Value::Array(inner)] if inner.len() == 1);
        if single && let Some(raw) = self.text.get(start..end) {
            let inside = raw.strip_prefix("[[").and_then(|r| r.strip_suffix("]]"));
            if inside.is_some_and(|i| links::is_link_text(i) && !i.contains(['\n', '\r'])) {
                let raw = raw.to_owned();
                self.link(start..end, None);
                return Value::String(raw);
            }
        }
        Value::Array(items)
    }

    fn scalar(&mut self, text: &str, style: ScalarStyle, anchor: usize, tag: Option<&Tag>, span: Range<usize>) -> Result<(), Broken> {
        self.spend(1, text.len(), span.start)?;
        if self.expects_key() {
            return self.key(self.restored(text, span.start), span);
        }
        let inline = matches!(style, ScalarStyle::Plain | ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted);
        if inline && self.stack.len() == 1 && let Some(key) = self.header.keys.last_mut() {
            key.scalar = Some(span.clone());
        }
        let value = match self.masked_value(&span) {
            Some(value) => value,
            None => {
                let text = self.restored(text, span.start);
                self.scan_links(&text, span.clone());
                let as_text = tag.is_some_and(|t| t.is_yaml_core_schema() && t.suffix == "str");
                if style == ScalarStyle::Plain && !as_text { scalar::plain(&text, self.text_like()) } else { Value::String(text) }
            }
        };
        if anchor > 0 {
            self.store(anchor, &value, Cost { nodes: 1, bytes: text.len() }, 0, span.start)?;
        }
        self.put(value, span.start)
    }

    fn key(&mut self, name: String, span: Range<usize>) -> Result<(), Broken> {
        if self.stack.len() == 1 {
            self.header.keys.push(Key { name: name.clone(), span: span.clone(), scalar: None });
        }
        if let Some(Frame { kind: Kind::Map { key, .. }, .. }) = self.stack.last_mut() {
            *key = Some((name, span.start));
        }
        Ok(())
    }

    fn alias(&mut self, id: usize, at: usize) -> Result<(), Broken> {
        self.aliases += 1;
        if self.aliases > limits::ALIASES {
            return Err(self.broken(at, "The header uses anchors too often."));
        }
        let Some(stored) = self.anchors.get(&id) else {
            return Err(self.broken(at, "An alias stands inside of what it names."));
        };
        let (cost, height) = (stored.cost, stored.height);
        self.copy(cost, at)?;
        if self.stack.len() + height > limits::DEPTH {
            return Err(self.broken(at, "The header is nested too deeply."));
        }
        let value = self.anchors.get(&id).map_or(Value::Null, |s| s.value.clone());
        if let Some(parent) = self.stack.last_mut() {
            parent.height = parent.height.max(height);
        }
        if self.expects_key() {
            let Value::String(name) = value else { return Err(self.broken(at, "A key is not a text.")) };
            return self.key(name, at..at);
        }
        self.put(value, at)
    }

    fn store(&mut self, anchor: usize, value: &Value, cost: Cost, height: usize, at: usize) -> Result<(), Broken> {
        self.copy(cost, at)?;
        self.anchors.insert(anchor, Stored { value: value.clone(), cost, height });
        Ok(())
    }

    fn copy(&mut self, cost: Cost, at: usize) -> Result<(), Broken> {
        self.copied += cost.bytes;
        if self.copied > limits::COPIED {
            return Err(self.broken(at, "Anchors make the header too large."));
        }
        self.spend(cost.nodes, cost.bytes, at)
    }

    fn spend(&mut self, nodes: usize, bytes: usize, at: usize) -> Result<(), Broken> {
        self.cost.nodes += nodes;
        self.cost.bytes += bytes;
        if self.cost.nodes > limits::NODES { Err(self.broken(at, "The header has too many values.")) } else { Ok(()) }
    }

    fn put(&mut self, value: Value, at: usize) -> Result<(), Broken> {
        let top = self.stack.len() == 1;
        match self.stack.last_mut().map(|f| &mut f.kind) {
            None => self.root = Some(value),
            Some(Kind::List(items)) => items.push(value),
            Some(Kind::Map { map, key, lines }) => {
                let Some((name, place)) = key.take() else {
                    return Err(self.broken(at, "A value has no key."));
                };
                let line = self.lines.line(place);
                let before = lines.insert(name.clone(), line);
                map.insert(name.clone(), value);
                if let Some(before) = before {
                    self.duplicate(&name, before, line, place, top);
                }
            }
        }
        Ok(())
    }

    fn duplicate(&mut self, name: &str, before: u32, line: u32, place: usize, top: bool) {
        let identity = top && matches!(name, "skill" | "id" | "type");
        if identity {
            self.header.identity_clear = false;
        }
        if self.header.issues.len() >= MAX_ISSUES {
            return;
        }
        let code = if identity { "identity_unclear" } else { "frontmatter_duplicate_key" };
        let (_, col) = self.lines.position(place);
        let message = format!("`{name}` is given on line {before} and again on line {line}; the last one is read.");
        self.header.issues.push(Issue::new(code, issue::at(line, col), message));
    }

    fn expects_key(&self) -> bool {
        matches!(self.stack.last(), Some(Frame { kind: Kind::Map { key: None, .. }, .. }))
    }

    fn text_like(&self) -> bool {
        self.top_key().is_some_and(scalar::is_text_key)
    }

    fn top_key(&self) -> Option<&str> {
        match self.stack.first().map(|f| &f.kind) {
            Some(Kind::Map { key: Some((name, _)), .. }) => Some(name),
            _ => None,
        }
    }

    /// The value whose unquoted links were masked, if one starts here.
    fn masked_value(&mut self, span: &Range<usize>) -> Option<Value> {
        let masked = self.masked;
        let offset = span.start.checked_sub(self.range.start)?;
        let found = masked.values.binary_search_by_key(&offset, |v| v.span.start).ok()?;
        let value = masked.values.get(found)?;
        let base = self.range.start;
        let source = |r: &Range<usize>| self.text.get(base + r.start..base + r.end).unwrap_or("").to_owned();
        let Some(ranges) = value.links.as_ref().filter(|_| span.end == base + value.span.end) else {
            // Words beside the links, or a value that goes on over more lines.
            let text = self.text.get(span.clone()).unwrap_or("").split_whitespace().collect::<Vec<_>>().join(" ");
            self.scan_links(&text, span.clone());
            return Some(Value::String(text));
        };
        let texts: Vec<String> = ranges.iter().map(source).collect();
        for range in ranges {
            self.link(base + range.start..base + range.end, None);
        }
        match <[String; 1]>::try_from(texts) {
            Ok([only]) => Some(Value::String(only)),
            Err(texts) => Some(Value::Array(texts.into_iter().map(Value::String).collect())),
        }
    }

    /// Puts the source back where filler came out of the parser.
    fn restored(&self, text: &str, start: usize) -> String {
        if self.masked.text.is_none() || !text.contains(FILLER) {
            return text.to_owned();
        }
        let offset = start.saturating_sub(self.range.start);
        let first = self.masked.values.partition_point(|v| v.span.start < offset);
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        for value in self.masked.values.get(first..).unwrap_or(&[]) {
            let Some(at) = rest.find(FILLER) else { break };
            let source = self.text.get(self.range.start + value.span.start..self.range.start + value.span.end).unwrap_or("");
            out.push_str(rest.get(..at).unwrap_or(""));
            out.push_str(source);
            let filler = source.chars().count() * FILLER.len_utf8();
            rest = rest.get(at + filler..).unwrap_or("");
        }
        out.push_str(rest);
        out
    }

    fn scan_links(&mut self, text: &str, span: Range<usize>) {
        if !text.contains("[[") {
            return;
        }
        let source = inline::wikilinks(self.text, span.clone());
        let escaped = self.text.get(span).is_some_and(|s| s.contains(['\\', '\'']));
        let decoded = if escaped { inline::wikilinks(text, 0..text.len()) } else { Vec::new() };
        for (i, range) in source.into_iter().enumerate() {
            let decoded = decoded.get(i).and_then(|r| text.get(r.clone())).map(str::to_owned);
            self.link(range, decoded);
        }
    }

    fn link(&mut self, span: Range<usize>, decoded: Option<String>) {
        if let Some(key) = self.top_key() {
            let key = key.to_owned();
            self.header.links.push(HeaderLink { key, span, decoded });
        }
    }

    pub(super) fn finish(mut self) -> Result<Header, Broken> {
        match self.root.take() {
            None | Some(Value::Null) => {}
            Some(Value::Object(map)) => self.header.map = map,
            Some(_) => {
                let problem = self.broken(self.range.start, "The header is not a list of keys with values.");
                return Err(Broken { mapping: false, ..problem });
            }
        }
        self.drop_links_of_overridden_keys();
        self.header.links.sort_by_key(|l| l.span.start);
        Ok(self.header)
    }

    fn drop_links_of_overridden_keys(&mut self) {
        let last: HashMap<&str, usize> = self.header.keys.iter().map(|k| (k.name.as_str(), k.span.start)).collect();
        if last.len() < self.header.keys.len() {
            self.header.links.retain(|l| last.get(l.key.as_str()).is_none_or(|at| l.span.start >= *at));
        }
    }

    fn broken(&mut self, at: usize, message: &str) -> Broken {
        let (line, col) = self.lines.position(at.min(self.text.len()));
        broken(line, col, message.to_owned())
    }

    pub(super) fn scan_error(&mut self, error: &ScanError) -> Broken {
        let at = self.places.byte(error.marker().index());
        let (line, col) = self.lines.position(at);
        let first = self.lines.line(self.range.start);
        let last = self.lines.line(self.range.end.saturating_sub(1).max(self.range.start));
        for near in [line, line.saturating_sub(1), line + 1] {
            let text = self.text.get(self.lines.range(near)).unwrap_or("");
            let indent = text.len() - text.trim_start_matches([' ', '\t']).len();
            if (first..=last).contains(&near) && text.get(..indent).is_some_and(|i| i.contains('\t')) {
                return broken(near, 1, format!("Line {near} is indented with a tab; YAML takes only spaces."));
            }
        }
        let mut problem = broken(line, col, format!("The header is not readable YAML here: {}.", error.info()));
        problem.issue = problem.issue.suggest("Put the value of this line in quotes.");
        problem
    }
}
