use escurel_core::Refusal;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::spec::{Cli, Effect, Execution, Quota, Run, Scope, Spec};
use crate::table::Table;
use crate::tool::{Call, Tool};

/// Makes the logs of pages that are being edited and the index files as small as they can be.
///
/// The server does this by itself; call it before copying a folder, or when disk space is short.
/// Editing goes on meanwhile. Who wrote each change is no longer listed by list_op_authors after it.
#[derive(Deserialize, JsonSchema)]
pub struct CompactLanes {
    /// The tenant; absent: the one that is served.
    tenant_id: Option<String>,
}

/// What was saved.
#[derive(Serialize, JsonSchema)]
pub struct Compacted {
    /// Changes that are no longer kept one by one.
    ops_compacted: u64,
    /// Disk space that is free now.
    bytes_reclaimed: u64,
}

impl Tool for CompactLanes {
    const SPEC: Spec = Spec {
        name: "compact_lanes",
        title: "Make files small",
        aliases: &[],
        scope: Scope::Admin,
        execution: Execution::Orchestration,
        effect: Effect::Write,
        quota: Quota::Write,
        run: Run::Blocking,
        argument_aliases: &[],
        numbered: &[],
        examples: &[("everything", "{}")],
        cli: Cli {
            positional: &[],
            from_file: &[],
            table,
        },
    };
    type Output = Compacted;

    fn call(self, cx: &Call<'_>) -> Result<Compacted, Refusal> {
        let done = cx.kb.compact(cx.caller, self.tenant_id.as_deref())?;
        Ok(Compacted {
            ops_compacted: done.ops,
            bytes_reclaimed: done.bytes,
        })
    }
}

fn table(answer: &Value) -> Table {
    Table::one(
        answer,
        &[
            ("Changes put together", "/ops_compacted"),
            ("Bytes freed", "/bytes_reclaimed"),
        ],
    )
}
