//! Events of the YAML parser to JSON values.
//!
//! Keeps its own stack, so that nesting costs no call stack. Invariant: the
//! limits are checked before a value is stored or copied.

mod cost;
mod links;

use std::collections::HashMap;
use std::ops::Range;

use saphyr_parser::{Event, ScalarStyle, ScanError, Span, Tag};
use serde_json::{Map, Value};

use super::links::Masked;
use super::{Broken, Header, Key, Places, broken, limits, scalar};
use crate::issue::{self, Issue};
use crate::lines::Lines;
use cost::{Cost, Stored};

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
    Map {
        map: Map<String, Value>,
        key: Option<(String, usize)>,
        lines: HashMap<String, u32>,
    },
}

impl<'a, 'm, 'l> Builder<'a, 'm, 'l> {
    pub(super) fn new(
        text: &'a str,
        range: Range<usize>,
        masked: &'m Masked,
        places: Places,
        lines: &'l mut Lines<'a>,
    ) -> Self {
        let header = Header {
            identity_clear: true,
            ..Header::default()
        };
        Builder {
            text,
            range,
            masked,
            places,
            lines,
            header,
            stack: Vec::new(),
            anchors: HashMap::new(),
            root: None,
            documents: 0,
            cost: Cost::default(),
            aliases: 0,
            copied: 0,
        }
    }

    pub(super) fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), Broken> {
        let at = self.places.byte(span.start.index());
        let end = self.places.byte(span.end.index()).max(at);
        match event {
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => Ok(()),
            Event::DocumentStart(_) => {
                self.documents += 1;
                if self.documents > 1 {
                    Err(self.broken(at, "The header holds a second document."))
                } else {
                    Ok(())
                }
            }
            Event::Alias(id) => self.alias(id, at),
            Event::Scalar(text, style, anchor, tag) => {
                self.scalar(&text, style, anchor, tag.as_deref(), at..end)
            }
            Event::SequenceStart(anchor, _) => self.open(at, anchor, Kind::List(Vec::new())),
            Event::MappingStart(anchor, _) => {
                if self.stack.is_empty() {
                    self.header.flow = self.text.as_bytes().get(at) == Some(&b'{');
                }
                self.open(
                    at,
                    anchor,
                    Kind::Map {
                        map: Map::new(),
                        key: None,
                        lines: HashMap::new(),
                    },
                )
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(at, end),
        }
    }

    fn open(&mut self, at: usize, anchor: usize, kind: Kind) -> Result<(), Broken> {
        if self.expects_key() {
            return Err(self.broken(
                at,
                "A key is a list or a mapping; quote the text if none is meant.",
            ));
        }
        if self.stack.len() >= limits::DEPTH {
            return Err(self.broken(at, "The header is nested too deeply."));
        }
        let before = self.cost;
        self.spend(1, 0, at)?;
        self.stack.push(Frame {
            start: at,
            anchor,
            before,
            height: 0,
            kind,
        });
        Ok(())
    }

    fn close(&mut self, at: usize, end: usize) -> Result<(), Broken> {
        let Some(frame) = self.stack.pop() else {
            return Ok(());
        };
        let value = match frame.kind {
            Kind::List(items) => self.list(items, frame.start, end),
            Kind::Map { map, .. } => Value::Object(map),
        };
        if let Some(parent) = self.stack.last_mut() {
            parent.height = parent.height.max(frame.height + 1);
        }
        if frame.anchor > 0 {
            let cost = Cost {
                nodes: self.cost.nodes - frame.before.nodes,
                bytes: self.cost.bytes - frame.before.bytes,
            };
            self.store(frame.anchor, &value, cost, frame.height + 1, at)?;
        }
        self.put(value, at)
    }

    fn scalar(
        &mut self,
        text: &str,
        style: ScalarStyle,
        anchor: usize,
        tag: Option<&Tag>,
        span: Range<usize>,
    ) -> Result<(), Broken> {
        self.spend(1, text.len(), span.start)?;
        if self.expects_key() {
            return self.key(self.restored(text, span.start), span);
        }
        let inline = matches!(
            style,
            ScalarStyle::Plain | ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted
        );
        if inline
            && self.stack.len() == 1
            && let Some(key) = self.header.keys.last_mut()
        {
            key.scalar = Some(span.clone());
        }
        let value = match self.masked_value(&span) {
            Some(value) => value,
            None => {
                let text = self.restored(text, span.start);
                self.scan_links(&text, span.clone());
                let as_text = tag.is_some_and(|t| t.is_yaml_core_schema() && t.suffix == "str");
                if style == ScalarStyle::Plain && !as_text {
                    scalar::plain(&text, self.text_like())
                } else {
                    Value::String(text)
                }
            }
        };
        if anchor > 0 {
            self.store(
                anchor,
                &value,
                Cost {
                    nodes: 1,
                    bytes: text.len(),
                },
                0,
                span.start,
            )?;
        }
        self.put(value, span.start)
    }

    fn key(&mut self, name: String, span: Range<usize>) -> Result<(), Broken> {
        if self.stack.len() == 1 {
            self.header.keys.push(Key {
                name: name.clone(),
                span: span.clone(),
                scalar: None,
            });
        }
        if let Some(Frame {
            kind: Kind::Map { key, .. },
            ..
        }) = self.stack.last_mut()
        {
            *key = Some((name, span.start));
        }
        Ok(())
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
        let code = if identity {
            "identity_unclear"
        } else {
            "frontmatter_duplicate_key"
        };
        let (_, col) = self.lines.position(place);
        let message = format!(
            "`{name}` is given on line {before} and again on line {line}; the last one is read."
        );
        self.header
            .issues
            .push(Issue::new(code, issue::at(line, col), message));
    }

    fn expects_key(&self) -> bool {
        matches!(
            self.stack.last(),
            Some(Frame {
                kind: Kind::Map { key: None, .. },
                ..
            })
        )
    }

    fn text_like(&self) -> bool {
        self.top_key().is_some_and(scalar::is_text_key)
    }

    fn top_key(&self) -> Option<&str> {
        match self.stack.first().map(|f| &f.kind) {
            Some(Kind::Map {
                key: Some((name, _)),
                ..
            }) => Some(name),
            _ => None,
        }
    }

    pub(super) fn finish(mut self) -> Result<Header, Broken> {
        match self.root.take() {
            None | Some(Value::Null) => {}
            Some(Value::Object(map)) => self.header.map = map,
            Some(_) => {
                let problem = self.broken(
                    self.range.start,
                    "The header is not a list of keys with values.",
                );
                return Err(Broken {
                    mapping: false,
                    ..problem
                });
            }
        }
        self.drop_links_of_overridden_keys();
        self.header.links.sort_by_key(|l| l.span.start);
        Ok(self.header)
    }

    fn broken(&mut self, at: usize, message: &str) -> Broken {
        let (line, col) = self.lines.position(at.min(self.text.len()));
        broken(line, col, message.to_owned())
    }

    pub(super) fn scan_error(&mut self, error: &ScanError) -> Broken {
        let at = self.places.byte(error.marker().index());
        let (line, col) = self.lines.position(at);
        let first = self.lines.line(self.range.start);
        let last = self
            .lines
            .line(self.range.end.saturating_sub(1).max(self.range.start));
        for near in [line, line.saturating_sub(1), line + 1] {
            let text = self.text.get(self.lines.range(near)).unwrap_or("");
            let indent = text.len() - text.trim_start_matches([' ', '\t']).len();
            if (first..=last).contains(&near)
                && text.get(..indent).is_some_and(|i| i.contains('\t'))
            {
                return broken(
                    near,
                    1,
                    format!("Line {near} is indented with a tab; YAML takes only spaces."),
                );
            }
        }
        let mut problem = broken(
            line,
            col,
            format!("The header is not readable YAML here: {}.", error.info()),
        );
        problem.issue = problem
            .issue
            .suggest("Put the value of this line in quotes.");
        problem
    }
}
