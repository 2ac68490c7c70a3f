use escurel_core::Refusal;
use escurel_core::api::PageName;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::spec::{Cli, Effect, Execution, Quota, Run, Scope, Spec};
use crate::tool::{Call, Tool};
use crate::wire::{Outcome, VersionArgument, outcome_table};

/// Deletes a page. Its history stays, and restore_page brings it back.
///
/// Links to it lead nowhere from then on; neighbours shows who links to it.
#[derive(Deserialize, JsonSchema)]
pub struct DeletePage {
    /// The page: its path, its uid or [[skill::id]].
    page_id: String,
    /// The what-if scenario that the page belongs to; a path or uid says it by itself.
    scenario: Option<String>,
    /// The version that the page must be at, such as v3.
    base_version: Option<VersionArgument>,
    /// Only tell what would happen.
    #[schemars(extend("default" = false))]
    dry_run: Option<bool>,
}

impl Tool for DeletePage {
    const SPEC: Spec = Spec {
        name: "delete_page",
        title: "Delete a page",
        aliases: &[],
        scope: Scope::Agent,
        execution: Execution::Orchestration,
        effect: Effect::Destroy,
        quota: Quota::Write,
        run: Run::Blocking,
        argument_aliases: &[],
        numbered: &[],
        examples: &[(
            "what would go",
            r##"{"page_id": "[[customer::acme-corp]]", "dry_run": true}"##,
        )],
        cli: Cli {
            positional: &["page_id"],
            from_file: &[],
            table: outcome_table,
        },
    };
    type Output = Outcome;

    fn call(self, cx: &Call<'_>) -> Result<Outcome, Refusal> {
        let dry_run = self.dry_run.unwrap_or(false);
        let base = VersionArgument::optional(self.base_version, "base_version")?;
        let answer = cx.kb.delete_page(
            cx.caller,
            PageName {
                id: self.page_id,
                scenario: self.scenario,
            },
            base,
            dry_run,
        )?;
        Ok(Outcome::of(answer, dry_run))
    }
}
