use escurel_core::Refusal;
use escurel_core::api::UpdateRequest;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::spec::{Cli, Effect, Execution, Quota, Run, Scope, Spec};
use crate::tool::{Call, Tool};
use crate::wire::{Outcome, VersionArgument, outcome_table};

/// Creates a page or replaces its whole text.
///
/// Give `base_version`, the version that you read, whenever you read the page
/// before: if others changed it since, both changes are joined, and where that
/// is not possible nothing is written and `head_content` has the text that
/// stands. Warnings in `issues` do not keep a page from being written; errors
/// do. To change one place of a page, edit_page is cheaper and safer.
#[derive(Deserialize, JsonSchema)]
pub struct UpdatePage {
    /// The page: its path, its uid or [[skill::id]]. A new page goes to the path that you give,
    /// or where pages of the skill go.
    page_id: String,
    /// The what-if scenario that the page belongs to: it takes the place of the base's page there. The
    /// text says so in its frontmatter, too, and is given the key where it lacks it.
    scenario: Option<String>,
    /// The whole file: header between `---` lines, then markdown.
    content: String,
    /// The version that the content was made from, such as v3.
    base_version: Option<VersionArgument>,
    /// Only tell what would happen.
    #[schemars(extend("default" = false))]
    dry_run: Option<bool>,
}

impl Tool for UpdatePage {
    const SPEC: Spec = Spec {
        name: "update_page",
        title: "Write a page",
        aliases: &[],
        scope: Scope::Agent,
        execution: Execution::Orchestration,
        effect: Effect::Write,
        quota: Quota::Write,
        run: Run::Blocking,
        argument_aliases: &[],
        numbered: &[],
        examples: &[
            (
                "a new meeting page",
                r##"{"page_id": "[[meeting::acme-review]]", "content": "---\ntype: instance\nskill: meeting\nid: acme-review\nat: 2025-12-12T10:00:00Z\nattendees: [\"[[contact::joel-marsh]]\"]\n---\n# Acme review\n\nWith [[customer::acme-corp]].\n"}"##,
            ),
            (
                "what a new text would change",
                r##"{"page_id": "[[customer::acme-corp]]", "content": "---\ntype: instance\nskill: customer\nid: acme-corp\ntitle: Acme Corp\nstatus: closed\n---\n# Acme Corp\n", "dry_run": true}"##,
            ),
        ],
        cli: Cli {
            positional: &["page_id", "content"],
            from_file: &["content"],
            table: outcome_table,
        },
    };
    type Output = Outcome;

    fn call(self, cx: &Call<'_>) -> Result<Outcome, Refusal> {
        let dry_run = self.dry_run.unwrap_or(false);
        let request = UpdateRequest {
            page_id: self.page_id,
            scenario: self.scenario,
            content: self.content,
            base_version: VersionArgument::optional(self.base_version, "base_version")?,
            dry_run,
        };
        let answer = cx.kb.update_page(cx.caller, &request)?;
        Ok(Outcome::of(answer, dry_run))
    }
}
