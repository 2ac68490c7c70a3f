//! Shapes that several answers share.
//!
//! Invariant: a field that the contract shows is always there, null where it
//! has no value; fields of our own are left out when they say nothing.

use escurel_core::Refusal;
use escurel_core::api as core;
use escurel_md as md;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// Version numbers are `v3` on the wire.
pub fn version(number: u64) -> String {
    format!("v{number}")
}

#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PageType {
    Skill,
    Instance,
}

impl From<md::PageType> for PageType {
    fn from(page_type: md::PageType) -> PageType {
        match page_type {
            md::PageType::Skill => PageType::Skill,
            md::PageType::Instance => PageType::Instance,
        }
    }
}

/// Names a page.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PageRef {
    /// The page's path; every `page_id` argument takes it.
    pub page_id: String,
    /// The page's id within its skill.
    pub slug: Option<String>,
    /// The skill that the page declares or is an instance of.
    pub skill: String,
    pub page_type: PageType,
    /// The page's title.
    pub title: String,
    /// Stays the same when the page is moved or renamed.
    pub uid: String,
    /// Version of the text that is shown, such as v3.
    pub version: String,
    /// Who wrote the page last; null when that is not known or an earlier state is shown.
    pub last_written_by: Option<String>,
    /// True when the file has vanished and the text comes from the history.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(default)]
    pub missing_on_disk: bool,
}

impl From<core::PageRef> for PageRef {
    fn from(p: core::PageRef) -> PageRef {
        PageRef {
            page_id: p.page_id,
            slug: Some(p.slug),
            skill: p.skill,
            page_type: p.page_type.into(),
            title: p.title,
            uid: p.uid,
            version: version(p.version),
            last_written_by: p.last_written_by,
            missing_on_disk: p.missing_on_disk,
        }
    }
}

/// The parts of a wikilink.
#[derive(Debug, Serialize, JsonSchema)]
pub struct WikilinkParsed {
    /// Null for a bare [[id]].
    pub skill: Option<String>,
    /// Null for a link to a skill.
    pub id: Option<String>,
    /// Heading or block after `#`.
    pub anchor: Option<String>,
    /// Version after `@`.
    pub version: Option<String>,
    /// Text after `|`.
    pub alias: Option<String>,
}

impl From<md::Wikilink> for WikilinkParsed {
    fn from(w: md::Wikilink) -> WikilinkParsed {
        WikilinkParsed {
            skill: w.skill,
            id: w.id,
            anchor: w.anchor,
            version: w.version,
            alias: w.alias,
        }
    }
}

#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    Error,
    Warning,
}

/// A finding about a page.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Issue {
    pub severity: Severity,
    /// Stable name of the finding, such as anchor_missing.
    pub code: String,
    /// Such as `line:32 col:8` or `frontmatter.at`.
    pub location: String,
    /// What is wrong, for people.
    pub message: String,
    /// What could be written instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
}

impl From<md::Issue> for Issue {
    fn from(i: md::Issue) -> Issue {
        let severity = match i.severity {
            md::Severity::Error => Severity::Error,
            md::Severity::Warning => Severity::Warning,
        };
        Issue {
            severity,
            code: i.code.into(),
            location: i.location,
            message: i.message,
            suggestion: i.suggestion,
        }
    }
}

/// JSON text that is copied into the answer as it is.
pub fn raw(json: String) -> Box<RawValue> {
    RawValue::from_string(json).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// A refusal as `data` of an error and as `_meta["escurel/error"]` of a result.
pub fn refusal_json(refusal: &Refusal) -> Value {
    let mut data = Map::new();
    data.insert("code".into(), refusal.code.name().into());
    data.insert("retryable".into(), refusal.retryable().into());
    if let Some(location) = &refusal.location {
        data.insert("location".into(), location.as_str().into());
    }
    if !refusal.candidates.is_empty() {
        data.insert("candidates".into(), json!(refusal.candidates));
    }
    Value::Object(data)
}
