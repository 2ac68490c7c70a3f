//! From a parsed page to what each view keeps of it.

use std::sync::Arc;

use escurel_index::{BlockRow, Facts};
use escurel_md::{Layout, Page, PageType, units};
use escurel_search::{Doc, DocUnit, UnitBlock};
use serde_json::{Map, Value};

/// One version, parsed once and shared by all views.
pub(crate) struct Parsed {
    pub page: Page,
    pub facts: Arc<Facts>,
    pub digest: u64,
    pub bytes: u32,
}

impl Parsed {
    pub fn of(path: &str, bytes: &[u8], layout: Layout) -> Parsed {
        let page = escurel_md::parse(path, bytes, layout);
        let facts = Arc::new(Facts::of(&page));
        Parsed {
            page,
            facts,
            digest: digest(bytes),
            bytes: bytes.len().try_into().unwrap_or(u32::MAX),
        }
    }

    pub fn block_rows(&self) -> Vec<BlockRow> {
        let row = |b: &escurel_md::Block| BlockRow {
            anchor: b.anchor.clone(),
            kind: b.kind,
            line: b.line,
        };
        self.page.blocks.iter().map(row).collect()
    }

    /// One text per unit, as it is embedded.
    pub fn meaning_texts(&self) -> Vec<String> {
        let page = &self.page;
        let text = |unit: &escurel_md::Unit| {
            let body = page.text.get(unit.span.clone()).unwrap_or_default();
            format!("{}\n{}", context(page, unit), body.trim())
        };
        units(page).iter().map(text).collect()
    }

    /// The text index entry of this version.
    pub fn doc(&self, no: u32, seq: u64, from: i64) -> Doc {
        let page = &self.page;
        Doc {
            page: no,
            seq,
            is_skill: page.page_type == PageType::Skill,
            skill: page.skill.clone(),
            title: page.title.clone(),
            aliases: names(page),
            tags: page.tags.clone(),
            fields_text: fields_text(&page.frontmatter),
            from,
            units: units(page)
                .iter()
                .map(|unit| doc_unit(page, unit))
                .collect(),
        }
    }
}

/// What stands before a unit's text when it is embedded: a passage means little
/// without the page, the headings and the day it belongs to.
fn context(page: &Page, unit: &escurel_md::Unit) -> String {
    let mut context = page.title.clone();
    if !unit.headings.is_empty() && unit.headings != page.title {
        context.push_str(" › ");
        context.push_str(
            unit.headings
                .strip_prefix(&format!("{} › ", page.title))
                .unwrap_or(&unit.headings),
        );
    }
    if let Some(Value::String(at)) = page.frontmatter.get("at") {
        context.push_str(" · ");
        context.push_str(at);
    }
    context
}

/// Names a page goes by besides its title.
fn names(page: &Page) -> Vec<String> {
    let id = (page.id != page.title).then(|| page.id.clone());
    page.aliases.iter().cloned().chain(id).collect()
}

fn doc_unit(page: &Page, unit: &escurel_md::Unit) -> DocUnit {
    let blocks = page
        .blocks
        .get(unit.blocks.start as usize..unit.blocks.end as usize)
        .unwrap_or_default();
    let start_of = |b: &escurel_md::Block| b.span.start.saturating_sub(unit.span.start) as u32;
    DocUnit {
        headings: unit.headings.clone(),
        text: page
            .text
            .get(unit.span.clone())
            .unwrap_or_default()
            .to_owned(),
        blocks: blocks
            .iter()
            .map(|b| UnitBlock {
                anchor: b.anchor.clone(),
                start: start_of(b),
            })
            .collect(),
    }
}

/// Frontmatter values as one text; identity keys are searchable as names already.
fn fields_text(frontmatter: &Map<String, Value>) -> String {
    const NAMED_ELSEWHERE: &[&str] = &["type", "skill", "id", "title", "aliases", "tags", "acl"];
    let mut text = String::new();
    for (key, value) in frontmatter {
        if !NAMED_ELSEWHERE.contains(&key.as_str()) {
            push_text(&mut text, value);
        }
    }
    text
}

fn push_text(text: &mut String, value: &Value) {
    match value {
        Value::Null | Value::Bool(_) => {}
        Value::String(s) => push_word(text, s),
        Value::Number(n) => push_word(text, &n.to_string()),
        Value::Array(items) => items.iter().for_each(|item| push_text(text, item)),
        Value::Object(map) => map.values().for_each(|item| push_text(text, item)),
    }
}

fn push_word(text: &mut String, word: &str) {
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(word);
}

/// Tells versions apart; not a secret and never stored in the journal.
pub(crate) fn digest(bytes: &[u8]) -> u64 {
    rapidhash::v3::rapidhash_v3(bytes)
}
