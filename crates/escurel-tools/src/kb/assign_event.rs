use escurel_core::{Code, Refusal};
use schemars::JsonSchema;
use serde::Deserialize;

use super::capture_event::event_table;
use crate::spec::{Cli, Effect, Execution, Numbered, Quota, Run, Scope, Spec};
use crate::tool::{Call, Tool};
use crate::wire::Event;

/// Takes an event out of the inbox and binds it to the page that has its content now.
///
/// Of several who try, one succeeds; the others get already_assigned and take the next event.
/// Claim it first, then change the page, if several agents drain one inbox.
#[derive(Deserialize, JsonSchema)]
pub struct AssignEvent {
    /// The event.
    event_id: String,
    /// The page it belongs to: its path, its uid or [[skill::id]].
    instance_page_id: String,
}

impl Tool for AssignEvent {
    const SPEC: Spec = Spec {
        name: "assign_event",
        title: "Mark an event as processed",
        aliases: &[],
        scope: Scope::Agent,
        execution: Execution::Orchestration,
        effect: Effect::Write,
        quota: Quota::Write,
        run: Run::Blocking,
        argument_aliases: &[],
        numbered: &[
            Numbered {
                code: Code::EventNotFound,
                at: None,
                number: -32602,
            },
            Numbered {
                code: Code::AlreadyAssigned,
                at: None,
                number: -32602,
            },
        ],
        examples: &[(
            "a mail that is part of a customer's page now",
            r##"{"event_id": "mail-20250626-0815", "instance_page_id": "[[customer::acme-corp]]"}"##,
        )],
        cli: Cli {
            positional: &["event_id", "instance_page_id"],
            from_file: &[],
            table: event_table,
        },
    };
    type Output = Event;

    fn call(self, cx: &Call<'_>) -> Result<Event, Refusal> {
        let page_id = &self.instance_page_id;
        let event = cx.kb.assign_event(cx.caller, &self.event_id, page_id)?;
        Ok(event.into())
    }
}
