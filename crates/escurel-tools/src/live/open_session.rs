use escurel_core::{Code, OpenRequest, Refusal};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{bytes, text};
use crate::spec::{Cli, Effect, Execution, Numbered, Quota, Run, Scope, Spec};
use crate::table::Table;
use crate::tool::{Call, Tool};
use crate::wire::version;

/// Opens a session in which a page is edited live, together with others.
///
/// The page is a Loro document whose text container `body` holds the whole markdown. All sessions
/// of a page share it. Changes go through apply_op, or quicker over the WebSocket at `ws_url`, and
/// become the page's next version when the session is closed. For a single change edit_page is
/// simpler.
#[derive(Deserialize, JsonSchema)]
pub struct OpenSession {
    /// The page: its path, its uid or [[skill::id]].
    page_id: String,
    /// The what-if scenario that the page belongs to; a path or uid says it by itself.
    scenario: Option<String>,
    /// Loro version vector, in base64, of what you have of this lineage: `snapshot` is the
    /// difference then.
    have: Option<String>,
    /// Commit after a pause of two seconds, and every ten while somebody types.
    #[schemars(extend("default" = false))]
    autosave: Option<bool>,
}

/// An open session.
#[derive(Serialize, JsonSchema)]
pub struct Opened {
    /// Names the session; whoever has it may change the page through it.
    session: String,
    /// The version that the document builds on, such as v42.
    head_version: String,
    /// Where the WebSocket is, on this server.
    ws_url: String,
    /// Names the document's history: a client that has another one loads the page anew.
    lineage: String,
    /// Loro export in base64: the whole history, or what `have` lacks.
    snapshot: String,
}

impl Tool for OpenSession {
    const SPEC: Spec = Spec {
        name: "open_session",
        title: "Edit a page live",
        aliases: &[],
        scope: Scope::Agent,
        execution: Execution::Orchestration,
        effect: Effect::Write,
        quota: Quota::Write,
        run: Run::Blocking,
        argument_aliases: &[],
        numbered: &[
            Numbered {
                code: Code::Forbidden,
                at: None,
                number: -32000,
            },
            Numbered {
                code: Code::LayerReadOnly,
                at: None,
                number: -32000,
            },
            Numbered {
                code: Code::SessionCapReached,
                at: None,
                number: -32000,
            },
        ],
        examples: &[(
            "edit a customer",
            r##"{"page_id": "[[customer::acme-corp]]"}"##,
        )],
        cli: Cli {
            positional: &["page_id"],
            from_file: &[],
            table,
        },
    };
    type Output = Opened;

    fn call(self, cx: &Call<'_>) -> Result<Opened, Refusal> {
        let have = self.have.map(|have| bytes(&have, "have")).transpose()?;
        let request = OpenRequest {
            page_id: self.page_id,
            scenario: self.scenario,
            have,
            autosave: self.autosave.unwrap_or(false),
        };
        let opened = cx.kb.open_session(cx.caller, &request)?;
        Ok(Opened {
            session: opened.session,
            head_version: version(opened.head_version),
            ws_url: "/ws".to_owned(),
            lineage: opened.lineage,
            snapshot: text(&opened.snapshot),
        })
    }
}

fn table(answer: &Value) -> Table {
    Table::one(
        answer,
        &[
            ("Session", "/session"),
            ("Version", "/head_version"),
            ("Lineage", "/lineage"),
            ("WebSocket", "/ws_url"),
        ],
    )
}
