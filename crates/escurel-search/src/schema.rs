//! The layout of the index: which fields a unit has and what is stored of it.
//! A change here is a change of `SCHEMA_VERSION`.

use tantivy::schema::{
    FAST, Field, IndexRecordOption, NumericOptions, STORED, Schema, TextFieldIndexing, TextOptions,
};
use tantivy::tokenizer::{TextAnalyzer, TokenizerManager};
use tantivy::{Index, TantivyDocument, Term};

use crate::analysis::{FoldingTokenizer, TOKENIZER, fold};
use crate::api::{Doc, DocUnit, UnitBlock};

/// A version of a page.
pub(crate) type Key = (u32, u64);

/// How many fields are searched for words.
pub(crate) const TEXTS: usize = 4;

pub(crate) const PAGE: &str = "page";
pub(crate) const SEQ: &str = "seq";
pub(crate) const UNIT: &str = "unit";

#[derive(Clone)]
pub(crate) struct Fields {
    pub schema: Schema,
    pub tokenizers: TokenizerManager,
    /// Page, sequence and unit as columns.
    page: Field,
    seq: Field,
    unit: Field,
    /// Validity in microseconds; `to` is `i64::MAX` while the text holds.
    from: Field,
    to: Field,
    /// What an entry is, as terms: its page, its version so that it can be
    /// deleted, its `skill=…` and `tag=…`, folded. One field for all, because
    /// each indexed field costs a small segment about half a millisecond.
    marks: Field,
    /// Title, names, headings and text: what words are looked for in.
    pub body: Field,
    pub title: Field,
    pub names: Field,
    pub fields: Field,
    stored: Field,
}

impl Fields {
    pub fn new() -> Self {
        let mut builder = Schema::builder();
        let text = |record| {
            let indexing = TextFieldIndexing::default().set_tokenizer(TOKENIZER);
            TextOptions::default().set_indexing_options(indexing.set_index_option(record))
        };
        let words = text(IndexRecordOption::WithFreqs);
        let raw = TextOptions::default().set_indexing_options(
            TextFieldIndexing::default()
                .set_tokenizer("raw")
                .set_fieldnorms(false)
                .set_index_option(IndexRecordOption::Basic),
        );
        let number = NumericOptions::default().set_fast();
        let tokenizers = TokenizerManager::default();
        tokenizers.register(TOKENIZER, TextAnalyzer::from(FoldingTokenizer::default()));
        Fields {
            page: builder.add_u64_field(PAGE, number.clone()),
            seq: builder.add_u64_field(SEQ, number.clone()),
            unit: builder.add_u64_field(UNIT, number),
            from: builder.add_i64_field("from", FAST),
            to: builder.add_i64_field("to", FAST),
            marks: builder.add_text_field("marks", raw),
            body: builder.add_text_field("body", text(IndexRecordOption::WithFreqsAndPositions)),
            title: builder.add_text_field("title", words.clone()),
            names: builder.add_text_field("names", words.clone()),
            fields: builder.add_text_field("fields", words),
            stored: builder.add_bytes_field("stored", STORED),
            schema: builder.build(),
            tokenizers,
        }
    }

    /// Gives an index the analysis its fields name.
    pub fn register(&self, index: &mut Index) {
        index.set_tokenizers(self.tokenizers.clone());
    }

    /// The fields that are searched for words.
    pub fn texts(&self) -> [Field; TEXTS] {
        [self.body, self.title, self.names, self.fields]
    }

    pub fn key_term(&self, key: Key) -> Term {
        Term::from_field_text(self.marks, &version(key))
    }

    pub fn page_term(&self, page: u32) -> Term {
        Term::from_field_text(self.marks, &page_mark(page))
    }

    pub fn facet_term(&self, kind: &str, value: &str) -> Term {
        Term::from_field_text(self.marks, &facet(kind, value))
    }

    /// The index entries of a version, one per unit. A page without units still
    /// has its title.
    pub fn documents(&self, doc: &Doc) -> Vec<TantivyDocument> {
        let bare = [DocUnit::default()];
        let units = if doc.units.is_empty() {
            &bare[..]
        } else {
            &doc.units[..]
        };
        let names = [&doc.aliases[..], &doc.tags[..]].concat().join("\n");
        let mut marks: Vec<String> = doc.tags.iter().map(|tag| facet("tag", tag)).collect();
        marks.push(facet("skill", &doc.skill));
        marks.extend([page_mark(doc.page), version((doc.page, doc.seq))]);
        let entry = |(number, unit): (usize, &DocUnit)| {
            let mut out = TantivyDocument::default();
            out.add_u64(self.page, u64::from(doc.page));
            out.add_u64(self.seq, doc.seq);
            out.add_u64(self.unit, number as u64);
            out.add_i64(self.from, doc.from);
            out.add_i64(self.to, i64::MAX);
            for text in [&doc.title, &names, &unit.headings, &unit.text] {
                add_nonempty(&mut out, self.body, text);
            }
            add_nonempty(&mut out, self.title, &doc.title);
            add_nonempty(&mut out, self.names, &names);
            // Frontmatter belongs to the page: its first unit answers for it.
            if number == 0 {
                add_nonempty(&mut out, self.fields, &doc.fields_text);
            }
            for mark in &marks {
                out.add_text(self.marks, mark);
            }
            out.add_bytes(self.stored, &encode(unit));
            out
        };
        units.iter().enumerate().map(entry).collect()
    }

    /// What was stored of a unit; `None` if the bytes are not ours.
    pub fn stored_unit(&self, document: &TantivyDocument) -> Option<DocUnit> {
        use tantivy::schema::Value;
        decode(document.get_first(self.stored)?.as_bytes()?)
    }
}

fn add_nonempty(document: &mut TantivyDocument, field: Field, text: &str) {
    if !text.is_empty() {
        document.add_text(field, text);
    }
}

fn version(key: Key) -> String {
    format!("v:{:x}:{:x}", key.0, key.1)
}

fn page_mark(page: u32) -> String {
    format!("p:{page:x}")
}

fn facet(kind: &str, value: &str) -> String {
    let mut out = format!("{kind}=");
    fold(value.trim().trim_start_matches('#'), &mut out);
    out
}

/// `count (start len anchor)* text`, numbers as LEB128.
fn encode(unit: &DocUnit) -> Vec<u8> {
    let mut out = Vec::with_capacity(unit.text.len() + 16 * unit.blocks.len() + 4);
    put(&mut out, unit.blocks.len() as u64);
    for block in &unit.blocks {
        put(&mut out, u64::from(block.start));
        put(&mut out, block.anchor.len() as u64);
        out.extend_from_slice(block.anchor.as_bytes());
    }
    out.extend_from_slice(unit.text.as_bytes());
    out
}

fn decode(mut bytes: &[u8]) -> Option<DocUnit> {
    let count = take(&mut bytes)?;
    let mut blocks = Vec::new();
    for _ in 0..count {
        let start = u32::try_from(take(&mut bytes)?).ok()?;
        let len = usize::try_from(take(&mut bytes)?).ok()?;
        let (anchor, rest) = bytes.split_at_checked(len)?;
        blocks.push(UnitBlock {
            anchor: String::from_utf8(anchor.to_vec()).ok()?,
            start,
        });
        bytes = rest;
    }
    let text = String::from_utf8(bytes.to_vec()).ok()?;
    Some(DocUnit {
        headings: String::new(),
        text,
        blocks,
    })
}

fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0u64;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(first & 0x7F) << shift;
        if first & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_come_back() {
        let block = |anchor: &str, start| UnitBlock {
            anchor: anchor.into(),
            start,
        };
        let unit = DocUnit {
            headings: String::new(),
            text: "One\n\nzwei 潮汐".into(),
            blocks: vec![block("a1", 0), block("", 5_000_000)],
        };
        assert_eq!(decode(&encode(&unit)), Some(unit.clone()));
        let bytes = encode(&unit);
        assert_eq!(decode(&bytes[..3]), None);
        assert_eq!(decode(&[0xFF; 20]), None);
        assert_eq!(decode(&[]), None);
    }
}
