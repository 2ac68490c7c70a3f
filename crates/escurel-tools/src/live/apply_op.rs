use escurel_core::Refusal;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{UNKNOWN, bytes};
use crate::spec::{Cli, Effect, Execution, Quota, Run, Scope, Spec};
use crate::table::Table;
use crate::tool::{Call, Tool};
use crate::wire::version;

/// Applies a change to a page that is edited live.
///
/// The answer follows when the change is safe on disk; everybody else who edits the page has it by
/// then. The same change again is taken once.
#[derive(Deserialize, JsonSchema)]
pub struct ApplyOp {
    /// From open_session.
    session: String,
    /// A Loro update in base64.
    op: String,
}

/// The change is safe.
#[derive(Serialize, JsonSchema)]
pub struct Applied {
    /// Always true.
    ok: bool,
    /// The version that the next commit makes, such as v43.
    merged_version: String,
}

impl Tool for ApplyOp {
    const SPEC: Spec = Spec {
        name: "apply_op",
        title: "Change a page live",
        aliases: &[],
        scope: Scope::Agent,
        execution: Execution::Orchestration,
        effect: Effect::Write,
        quota: Quota::Write,
        run: Run::Blocking,
        argument_aliases: &[],
        numbered: &[UNKNOWN],
        examples: &[(
            "a Loro update",
            r##"{"session": "sess_0123456789abcdef0123456789abcdef", "op": "bG9ybw=="}"##,
        )],
        cli: Cli {
            positional: &["session", "op"],
            from_file: &[],
            table,
        },
    };
    type Output = Applied;

    fn call(self, cx: &Call<'_>) -> Result<Applied, Refusal> {
        let op = bytes(&self.op, "op")?;
        let ack = cx.kb.change(cx.caller, &self.session, None, &op, false)?;
        cx.kb.make_durable(&self.session)?;
        Ok(Applied {
            ok: true,
            merged_version: version(ack.merged_version),
        })
    }
}

fn table(answer: &Value) -> Table {
    Table::one(answer, &[("Next version", "/merged_version")])
}
