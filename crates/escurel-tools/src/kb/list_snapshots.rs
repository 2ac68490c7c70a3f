use escurel_core::Refusal;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::spec::{Cli, Effect, Execution, Quota, Run, Scope, Spec};
use crate::table::{Table, cell};
use crate::tool::{Call, Tool};

/// Lists the instants at which a page changed, oldest first.
///
/// Each can be given to expand as `as_of` to read the page as it was from
/// then on. The list is empty for a page that does not exist or that you may
/// not read.
#[derive(Deserialize, JsonSchema)]
pub struct ListSnapshots {
    /// The page: its path, its uid or [[skill::id]].
    page_id: String,
}

/// A page's history in time.
#[derive(Serialize, JsonSchema)]
pub struct Snapshots {
    /// RFC 3339, oldest first.
    snapshots: Vec<String>,
}

impl Tool for ListSnapshots {
    const SPEC: Spec = Spec {
        name: "list_snapshots",
        title: "When a page changed",
        aliases: &[],
        scope: Scope::Agent,
        execution: Execution::Deterministic,
        effect: Effect::Read,
        quota: Quota::Query,
        run: Run::Blocking,
        argument_aliases: &[],
        numbered: &[],
        examples: &[(
            "a customer's history",
            r#"{"page_id": "[[customer::acme-corp]]"}"#,
        )],
        cli: Cli {
            positional: &["page_id"],
            from_file: &[],
            table,
        },
    };
    type Output = Snapshots;

    fn call(self, cx: &Call<'_>) -> Result<Snapshots, Refusal> {
        Ok(Snapshots {
            snapshots: cx.kb.list_snapshots(cx.caller, &self.page_id)?,
        })
    }
}

fn table(answer: &Value) -> Table {
    let instants = answer["snapshots"].as_array().into_iter().flatten();
    let rows = instants.map(|at| vec![cell(Some(at))]).collect();
    Table {
        headers: vec!["Since".into()],
        rows,
        footer: None,
    }
    .counted("version", "versions")
}
