//! Shapes that several answers share.
//!
//! Invariant: a field that the contract shows is always there, null where it
//! has no value; fields of our own are left out when they say nothing.

use escurel_core::api as core;
use escurel_core::{Code, Refusal};
use escurel_md as md;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::table::Table;

/// Version numbers are `v3` on the wire.
pub fn version(number: u64) -> String {
    format!("v{number}")
}

/// A version as callers write it: v3, @v3, 3.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(transform = text_or_integer)]
pub enum VersionArgument {
    Text(String),
    Number(serde_json::Number),
}

fn text_or_integer(schema: &mut schemars::Schema) {
    *schema = schemars::json_schema!({ "type": ["string", "integer"] });
}

impl VersionArgument {
    /// # Errors
    /// `invalid_argument` names `argument`.
    pub fn number(self, argument: &str) -> Result<u64, Refusal> {
        let text = match self {
            VersionArgument::Number(n) => n.to_string(),
            VersionArgument::Text(text) => text,
        };
        let digits = text.trim().trim_start_matches('@');
        let digits = digits.strip_prefix(['v', 'V']).unwrap_or(digits);
        digits.parse().map_err(|_| {
            let shown: String = text.chars().take(60).collect();
            let message = format!("{argument}: expected a version such as v3, got {shown:?}.");
            Refusal::new(Code::InvalidArgument, message).at(argument)
        })
    }

    /// # Errors
    /// As [`VersionArgument::number`].
    pub fn optional(version: Option<Self>, argument: &str) -> Result<Option<u64>, Refusal> {
        version.map(|version| version.number(argument)).transpose()
    }
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
    /// True when the text is being typed in a session and is in no version yet.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(default)]
    pub uncommitted: bool,
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
            uncommitted: p.uncommitted,
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

/// What became of a write.
#[derive(Serialize, JsonSchema)]
pub struct Outcome {
    /// False: nothing was written, and the errors among `issues` say why.
    pub ok: bool,
    /// The page's path; left out when nothing was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page_id: Option<String>,
    /// The page's version now, such as v3; with `dry_run` the one it would get. Null when nothing was written.
    pub new_version: Option<String>,
    /// True when the page had changed since `base_version` and both changes are in the new text.
    pub auto_merged: bool,
    /// Findings of the new text, or what stood in the way.
    pub issues: Vec<Issue>,
    /// After a conflict: the text that stands, to make the change again on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub head_content: Option<String>,
    /// What changed, as a unified diff; empty when the text is what it was.
    pub diff: String,
    /// True when this only tells what would be written.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(default)]
    pub dry_run: bool,
}

impl Outcome {
    pub fn of(answer: core::UpdateAnswer, dry_run: bool) -> Outcome {
        Outcome {
            ok: answer.ok,
            page_id: answer.ok.then_some(answer.page_id),
            new_version: answer.ok.then(|| version(answer.version)),
            auto_merged: answer.auto_merged,
            issues: answer.issues.into_iter().map(Issue::from).collect(),
            head_content: answer.head_content,
            diff: answer.diff,
            dry_run,
        }
    }
}

/// The findings of an answer, for people.
pub fn issues_table(answer: &Value) -> Table {
    let columns = [
        ("", "/severity"),
        ("Where", "/location"),
        ("Code", "/code"),
        ("Finding", "/message"),
        ("Instead", "/suggestion"),
    ];
    Table::of(answer, "/issues", &columns)
}

/// An [`Outcome`] for people.
pub fn outcome_table(answer: &Value) -> Table {
    let text = |key: &str| answer[key].as_str().unwrap_or_default();
    let verdict = match (answer["ok"] == true, answer["dry_run"] == true) {
        (true, true) => format!("would be {} {}", text("page_id"), text("new_version")),
        (true, false) => format!("{} is at {}", text("page_id"), text("new_version")),
        (false, _) => "nothing was written".to_owned(),
    };
    let table = issues_table(answer).footer(verdict);
    text("diff").lines().fold(table, Table::note)
}

#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum EventStatus {
    Inbox,
    Processed,
}

/// An event.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Event {
    /// The event's id.
    event_id: String,
    /// When it happened, RFC 3339 in UTC.
    at: String,
    /// Where it came from.
    source: Option<String>,
    /// What the body is.
    mime: Option<String>,
    /// The skill that knows how to process it.
    label_skill: Option<String>,
    /// Path of the page that it may belong to or, once processed, belongs to.
    instance_page_id: Option<String>,
    /// `inbox` until it is processed.
    status: EventStatus,
    /// One line.
    title: Option<String>,
    /// The text; null when there is none or it was erased.
    body: Option<String>,
    /// Where it came from; `captured_by` is who handed it in.
    provenance: Map<String, Value>,
}

impl From<core::Event> for Event {
    fn from(event: core::Event) -> Event {
        Event {
            event_id: event.event_id,
            at: event.at,
            source: event.source,
            mime: event.mime,
            label_skill: event.label_skill,
            instance_page_id: event.instance_page_id,
            status: match event.status {
                core::EventStatus::Inbox => EventStatus::Inbox,
                core::EventStatus::Processed => EventStatus::Processed,
            },
            title: event.title,
            body: event.body,
            provenance: event.provenance,
        }
    }
}

/// An event as tools answer it.
pub fn event_json(event: core::Event) -> Map<String, Value> {
    match serde_json::to_value(Event::from(event)) {
        Ok(Value::Object(map)) => map,
        _ => Map::new(),
    }
}

/// Events.
#[derive(Serialize, JsonSchema)]
pub struct EventList {
    /// In order.
    events: Vec<Event>,
    /// There when there are more: give it as `cursor`.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

impl From<core::EventPage> for EventList {
    fn from(page: core::EventPage) -> EventList {
        EventList {
            events: page.events.into_iter().map(Event::from).collect(),
            next_cursor: page.next_cursor,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read() {
        let check = |text: &str, expect: Option<u64>| {
            assert_eq!(
                VersionArgument::Text(text.into()).number("version").ok(),
                expect,
                "{text}"
            );
        };
        check("v3", Some(3));
        check("3", Some(3));
        check("@v12", Some(12));
        check("latest", None);
        check("v-1", None);
        check("v99999999999999999999", None);
    }
}
