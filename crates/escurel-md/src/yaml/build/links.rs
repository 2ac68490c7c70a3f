//! Links in the values of a header, quoted or not.

use std::collections::HashMap;
use std::ops::Range;

use serde_json::Value;

use super::super::HeaderLink;
use super::super::links::{FILLER, is_link_text};
use super::Builder;
use crate::inline;

impl Builder<'_, '_, '_> {
    /// `[[x]]` inside a flow collection is a link; other lists stay lists.
    pub(super) fn list(&mut self, items: Vec<Value>, start: usize, end: usize) -> Value {
        let single = matches!(items.as_slice(), [Value::Array(inner)] if inner.len() == 1);
        if single && let Some(raw) = self.text.get(start..end) {
            let inside = raw.strip_prefix("[[").and_then(|r| r.strip_suffix("]]"));
            if inside.is_some_and(|i| is_link_text(i) && !i.contains(['\n', '\r'])) {
                let raw = raw.to_owned();
                self.link(start..end, None);
                return Value::String(raw);
            }
        }
        Value::Array(items)
    }

    /// The value whose unquoted links were masked, if one starts here.
    pub(super) fn masked_value(&mut self, span: &Range<usize>) -> Option<Value> {
        let masked = self.masked;
        let offset = span.start.checked_sub(self.range.start)?;
        let found = masked
            .values
            .binary_search_by_key(&offset, |v| v.span.start)
            .ok()?;
        let value = masked.values.get(found)?;
        let base = self.range.start;
        let source = |r: &Range<usize>| {
            self.text
                .get(base + r.start..base + r.end)
                .unwrap_or("")
                .to_owned()
        };
        let Some(ranges) = value
            .links
            .as_ref()
            .filter(|_| span.end == base + value.span.end)
        else {
            // Words beside the links, or a value that goes on over more lines.
            let text = self
                .text
                .get(span.clone())
                .unwrap_or("")
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" ");
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
    pub(super) fn restored(&self, text: &str, start: usize) -> String {
        if self.masked.text.is_none() || !text.contains(FILLER) {
            return text.to_owned();
        }
        let offset = start.saturating_sub(self.range.start);
        let first = self
            .masked
            .values
            .partition_point(|v| v.span.start < offset);
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        for value in self.masked.values.get(first..).unwrap_or(&[]) {
            let Some(at) = rest.find(FILLER) else { break };
            let source = self
                .text
                .get(self.range.start + value.span.start..self.range.start + value.span.end)
                .unwrap_or("");
            out.push_str(rest.get(..at).unwrap_or(""));
            out.push_str(source);
            let filler = source.chars().count() * FILLER.len_utf8();
            rest = rest.get(at + filler..).unwrap_or("");
        }
        out.push_str(rest);
        out
    }

    pub(super) fn scan_links(&mut self, text: &str, span: Range<usize>) {
        if !text.contains("[[") {
            return;
        }
        let source = inline::wikilinks(self.text, span.clone());
        let escaped = self
            .text
            .get(span)
            .is_some_and(|s| s.contains(['\\', '\'']));
        let decoded = if escaped {
            inline::wikilinks(text, 0..text.len())
        } else {
            Vec::new()
        };
        for (i, range) in source.into_iter().enumerate() {
            let decoded = decoded
                .get(i)
                .and_then(|r| text.get(r.clone()))
                .map(str::to_owned);
            self.link(range, decoded);
        }
    }

    pub(super) fn link(&mut self, span: Range<usize>, decoded: Option<String>) {
        if let Some(key) = self.top_key() {
            let key = key.to_owned();
            self.header.links.push(HeaderLink { key, span, decoded });
        }
    }

    pub(super) fn drop_links_of_overridden_keys(&mut self) {
        let last: HashMap<&str, usize> = self
            .header
            .keys
            .iter()
            .map(|k| (k.name.as_str(), k.span.start))
            .collect();
        if last.len() < self.header.keys.len() {
            self.header.links.retain(|l| {
                last.get(l.key.as_str())
                    .is_none_or(|at| l.span.start >= *at)
            });
        }
    }
}
