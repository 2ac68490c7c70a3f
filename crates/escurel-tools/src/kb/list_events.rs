use escurel_core::{Code, Refusal};
use schemars::JsonSchema;
use serde::Deserialize;

use super::capture_event::events_table;
use crate::spec::{Cli, Effect, Execution, Numbered, Quota, Run, Scope, Spec};
use crate::tool::{Call, Tool};
use crate::wire::EventList;

const DEFAULT_LIMIT: usize = 50;

/// Lists the events that were processed into a page, oldest first.
///
/// They are the history that made the page's state. `next_cursor` is there exactly when there are
/// more; a short page is not the end.
#[derive(Deserialize, JsonSchema)]
pub struct ListEvents {
    /// The page: its path, its uid or [[skill::id]].
    instance_page_id: String,
    /// At most this many events.
    #[schemars(range(min = 1, max = 500), extend("default" = DEFAULT_LIMIT))]
    limit: Option<usize>,
    /// `next_cursor` of the call before.
    cursor: Option<String>,
}

impl Tool for ListEvents {
    const SPEC: Spec = Spec {
        name: "list_events",
        title: "List a page's events",
        aliases: &[],
        scope: Scope::Agent,
        execution: Execution::Deterministic,
        effect: Effect::Read,
        quota: Quota::Query,
        run: Run::Blocking,
        argument_aliases: &[],
        numbered: &[Numbered {
            code: Code::CursorInvalid,
            at: None,
            number: -32602,
        }],
        examples: &[(
            "what a customer's page is made of",
            r##"{"instance_page_id": "[[customer::acme-corp]]"}"##,
        )],
        cli: Cli {
            positional: &["instance_page_id"],
            from_file: &[],
            table: events_table,
        },
    };
    type Output = EventList;

    fn call(self, cx: &Call<'_>) -> Result<EventList, Refusal> {
        let (page_id, limit) = (&self.instance_page_id, self.limit.unwrap_or(DEFAULT_LIMIT));
        let cursor = self.cursor.as_deref();
        let page = cx.kb.list_events(cx.caller, page_id, limit, cursor)?;
        Ok(page.into())
    }
}
