use escurel_core::Refusal;
use escurel_core::api as core;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::spec::{Cli, Effect, Execution, Quota, Run, Scope, Spec};
use crate::table::Table;
use crate::tool::{Call, Tool};
use crate::wire::Event;

/// Puts an event into the inbox: a mail, a message, a reading, whatever came in.
///
/// It waits there until somebody has worked it into the state of a page and calls assign_event.
/// Calling again with the same `event_id` makes no second event; the first one is answered.
#[derive(Deserialize, JsonSchema)]
pub struct CaptureEvent {
    /// At most 128 characters; give the id that the source has, so that a repetition is noticed.
    /// A new one, which sorts by time, when left out.
    event_id: Option<String>,
    /// When it happened, RFC 3339; a date means its first moment. Now when left out.
    at: Option<String>,
    /// Where it came from, such as gmail.
    source: Option<String>,
    /// What the body is, such as text/plain.
    mime: Option<String>,
    /// The skill that knows how to process it, such as meeting.
    label_skill: Option<String>,
    /// The page that it may belong to: its path, its uid or [[skill::id]]. A hint: the event
    /// stays in the inbox.
    instance_page_id: Option<String>,
    /// One line.
    title: Option<String>,
    /// The text, at most 1 MiB.
    body: Option<String>,
    /// More about where it came from. `captured_by` is set to who calls.
    provenance: Option<Map<String, Value>>,
}

impl Tool for CaptureEvent {
    const SPEC: Spec = Spec {
        name: "capture_event",
        title: "Put an event into the inbox",
        aliases: &[],
        scope: Scope::Agent,
        execution: Execution::Orchestration,
        effect: Effect::Write,
        quota: Quota::Write,
        run: Run::Blocking,
        argument_aliases: &[],
        numbered: &[],
        examples: &[(
            "a mail that probably belongs to a customer",
            r##"{"event_id": "mail-20250626-0815", "at": "2025-06-26T08:15:00+02:00", "source": "gmail", "label_skill": "meeting", "instance_page_id": "[[customer::acme-corp]]", "title": "Fewer gauges", "body": "We will renew fewer gauges."}"##,
        )],
        cli: Cli {
            positional: &["title"],
            from_file: &["body"],
            table: event_table,
        },
    };
    type Output = Event;

    fn call(self, cx: &Call<'_>) -> Result<Event, Refusal> {
        let given = core::NewEvent {
            event_id: self.event_id,
            at: self.at,
            source: self.source,
            mime: self.mime,
            label_skill: self.label_skill,
            instance_page_id: self.instance_page_id,
            title: self.title,
            body: self.body,
            provenance: self.provenance,
        };
        Ok(cx.kb.capture_event(cx.caller, &given)?.into())
    }
}

/// One event for people.
pub(super) fn event_table(answer: &Value) -> Table {
    let rows = serde_json::json!({ "events": [answer] });
    events_table(&rows)
}

/// Events for people.
pub(super) fn events_table(answer: &Value) -> Table {
    let columns = [
        ("At", "/at"),
        ("Id", "/event_id"),
        ("Status", "/status"),
        ("Page", "/instance_page_id"),
        ("Title", "/title"),
    ];
    let table = Table::of(answer, "/events", &columns).counted("event", "events");
    match answer["next_cursor"].as_str() {
        Some(cursor) => table.note(format!("there are more: --cursor {cursor}")),
        None => table,
    }
}
