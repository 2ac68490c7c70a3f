use escurel_core::Refusal;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::UNKNOWN;
use crate::spec::{Cli, Effect, Execution, Quota, Run, Scope, Spec};
use crate::table::Table;
use crate::tool::{Call, Tool};
use crate::wire::{Issue, version};

/// Ends a session: what was typed becomes the page's next version, or is dropped.
///
/// A commit holds everything that all sessions of the page typed. It is checked like update_page:
/// where it is refused, `ok` is false, `issues` say why and the session stays open. What is dropped
/// stays in the page's history as a draft; what others typed, too, is not dropped.
#[derive(Deserialize, JsonSchema)]
pub struct CloseSession {
    /// From open_session.
    session: String,
    /// False: take back what this session typed.
    #[schemars(extend("default" = true))]
    commit: Option<bool>,
}

/// What became of a session.
#[derive(Serialize, JsonSchema)]
pub struct Closed {
    /// False: the session is still open.
    ok: bool,
    /// The page's version now, such as v50; null when the session is still open.
    final_version: Option<String>,
    /// What is wrong with the text.
    issues: Vec<Issue>,
}

impl Tool for CloseSession {
    const SPEC: Spec = Spec {
        name: "close_session",
        title: "End a session",
        aliases: &[],
        scope: Scope::Agent,
        execution: Execution::Orchestration,
        effect: Effect::Write,
        quota: Quota::Write,
        run: Run::Blocking,
        argument_aliases: &[],
        numbered: &[UNKNOWN],
        examples: &[(
            "commit",
            r##"{"session": "sess_0123456789abcdef0123456789abcdef", "commit": true}"##,
        )],
        cli: Cli {
            positional: &["session"],
            from_file: &[],
            table,
        },
    };
    type Output = Closed;

    fn call(self, cx: &Call<'_>) -> Result<Closed, Refusal> {
        let commit = self.commit.unwrap_or(true);
        let closed = cx.kb.close_session(cx.caller, &self.session, commit)?;
        Ok(Closed {
            ok: closed.ok,
            final_version: closed.ok.then(|| version(closed.final_version)),
            issues: closed.issues.into_iter().map(Issue::from).collect(),
        })
    }
}

fn table(answer: &Value) -> Table {
    Table::one(answer, &[("Closed", "/ok"), ("Version", "/final_version")])
}
