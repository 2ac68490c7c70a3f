use escurel_core::api::PageName;
use escurel_core::{Code, Refusal, Then};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::spec::{Cli, Effect, Execution, Quota, Run, Scope, Spec};
use crate::tool::{Call, Tool};
use crate::wire::{Outcome, VersionArgument, outcome_table};

/// Brings a page back to an earlier text, as a new version.
///
/// Say which: `version` or `as_of`. A page that was deleted comes back under
/// its path and with its history; without a version, as it was last.
#[derive(Deserialize, JsonSchema)]
pub struct RestorePage {
    /// The page: its path, its uid or [[skill::id]]; of a deleted page its path or uid.
    page_id: String,
    /// The what-if scenario that the page belongs to; a path or uid says it by itself.
    scenario: Option<String>,
    /// The version whose text is wanted, such as v3.
    version: Option<VersionArgument>,
    /// The text as it was at this instant, RFC 3339.
    as_of: Option<String>,
    /// Only tell what would happen.
    #[schemars(extend("default" = false))]
    dry_run: Option<bool>,
}

impl Tool for RestorePage {
    const SPEC: Spec = Spec {
        name: "restore_page",
        title: "Bring a page back",
        aliases: &[],
        scope: Scope::Agent,
        execution: Execution::Orchestration,
        effect: Effect::Write,
        quota: Quota::Write,
        run: Run::Blocking,
        argument_aliases: &[],
        numbered: &[],
        examples: &[(
            "the first text of a customer",
            r##"{"page_id": "[[customer::acme-corp]]", "version": "v1", "dry_run": true}"##,
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
        let version = VersionArgument::optional(self.version, "version")?;
        let then = match (version, self.as_of) {
            (Some(version), None) => Then::Version(version),
            (None, Some(time)) => Then::Time(time),
            (None, None) => Then::Last,
            (Some(_), Some(_)) => {
                let why = "Give a version or as_of, not both.";
                return Err(Refusal::new(Code::InvalidArgument, why).at("as_of"));
            }
        };
        let answer = cx.kb.restore_page(
            cx.caller,
            PageName {
                id: self.page_id,
                scenario: self.scenario,
            },
            &then,
            dry_run,
        )?;
        Ok(Outcome::of(answer, dry_run))
    }
}
