use escurel_core::Refusal;
use escurel_core::api::PageName;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::spec::{Cli, Effect, Execution, Quota, Run, Scope, Spec};
use crate::table::Table;
use crate::tool::{Call, Tool};
use crate::wire::{VersionArgument, version};

/// Shows what changed between two versions of a page, as a unified diff.
///
/// page_history has the versions. Without `to`, the newest one.
#[derive(Deserialize, JsonSchema)]
pub struct DiffPages {
    /// The page: its path, its uid or [[skill::id]].
    page_id: String,
    /// The what-if scenario that the page belongs to; a path or uid says it by itself.
    scenario: Option<String>,
    /// The earlier version, such as v3.
    from: VersionArgument,
    /// The later version.
    to: Option<VersionArgument>,
}

/// A difference.
#[derive(Serialize, JsonSchema)]
pub struct Difference {
    /// Such as v3.
    from: String,
    /// Such as v5.
    to: String,
    /// Unified; empty when both texts are the same.
    diff: String,
}

impl Tool for DiffPages {
    const SPEC: Spec = Spec {
        name: "diff_pages",
        title: "What changed between versions",
        aliases: &[],
        scope: Scope::Agent,
        execution: Execution::Deterministic,
        effect: Effect::Read,
        quota: Quota::Query,
        run: Run::Blocking,
        argument_aliases: &[],
        numbered: &[],
        examples: &[(
            "everything since the first version",
            r##"{"page_id": "[[customer::acme-corp]]", "from": "v1"}"##,
        )],
        cli: Cli {
            positional: &["page_id", "from", "to"],
            from_file: &[],
            table,
        },
    };
    type Output = Difference;

    fn call(self, cx: &Call<'_>) -> Result<Difference, Refusal> {
        let from = self.from.number("from")?;
        let to = VersionArgument::optional(self.to, "to")?;
        let (from, to, diff) = cx.kb.diff_pages(
            cx.caller,
            PageName {
                id: self.page_id,
                scenario: self.scenario,
            },
            from,
            to,
        )?;
        Ok(Difference {
            from: version(from),
            to: version(to),
            diff,
        })
    }
}

fn table(answer: &Value) -> Table {
    let text = |key: &str| answer[key].as_str().unwrap_or_default();
    let table = Table {
        headers: Vec::new(),
        rows: Vec::new(),
        footer: Some(format!("{} to {}", text("from"), text("to"))),
    };
    text("diff").lines().fold(table, Table::note)
}
