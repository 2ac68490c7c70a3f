use escurel_core::Refusal;
use escurel_core::api as core;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::spec::{Cli, Effect, Execution, Quota, Run, Scope, Spec};
use crate::table::Table;
use crate::tool::{Call, Tool};
use crate::wire::{Outcome, VersionArgument, outcome_table, version};

/// Moves or renames a page, and gives every link to it the new name, in one commit.
///
/// Links in other pages are found by where they lead: wikilinks, embeds, markdown links, those in
/// table cells and in frontmatter. Anchor, version and alias of each stay. The page keeps its uid
/// and its history.
#[derive(Deserialize, JsonSchema)]
pub struct MovePage {
    /// The page: its path, its uid or [[skill::id]].
    page_id: String,
    /// Where it goes: a path such as people/ann.md, or [[skill::id]] for another name. An id that
    /// is the name of the file follows a new path.
    to: String,
    /// The version that the page must be at, such as v3.
    base_version: Option<VersionArgument>,
    /// Only tell what would happen.
    #[schemars(extend("default" = false))]
    dry_run: Option<bool>,
}

/// What became of a move.
#[derive(Serialize, JsonSchema)]
pub struct Moved {
    #[serde(flatten)]
    outcome: Outcome,
    /// The path that the page had.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<String>,
    /// Pages whose links have the new name now, as far as the caller may see them.
    relinked: Vec<Relinked>,
}

#[derive(Serialize, JsonSchema)]
struct Relinked {
    /// The page's path.
    page_id: String,
    /// Its version with the new names, such as v3.
    version: String,
    /// How many of its links changed.
    links: u64,
}

impl Tool for MovePage {
    const SPEC: Spec = Spec {
        name: "move_page",
        title: "Move or rename a page",
        aliases: &[],
        scope: Scope::Agent,
        execution: Execution::Orchestration,
        effect: Effect::Write,
        quota: Quota::Write,
        run: Run::Blocking,
        argument_aliases: &[],
        numbered: &[],
        examples: &[(
            "which links would change",
            r##"{"page_id": "[[customer::acme-corp]]", "to": "[[customer::acme-inc]]", "dry_run": true}"##,
        )],
        cli: Cli {
            positional: &["page_id", "to"],
            from_file: &[],
            table: moved_table,
        },
    };
    type Output = Moved;

    fn call(self, cx: &Call<'_>) -> Result<Moved, Refusal> {
        let dry_run = self.dry_run.unwrap_or(false);
        let base = VersionArgument::optional(self.base_version, "base_version")?;
        let answer = cx
            .kb
            .move_page(cx.caller, &self.page_id, &self.to, base, dry_run)?;
        let relinked = answer.relinked.into_iter().map(Relinked::from);
        Ok(Moved {
            relinked: relinked.collect(),
            from: answer.update.ok.then_some(answer.from),
            outcome: Outcome::of(answer.update, dry_run),
        })
    }
}

impl From<core::Relinked> for Relinked {
    fn from(page: core::Relinked) -> Relinked {
        Relinked {
            page_id: page.page_id,
            version: version(page.version),
            links: page.links,
        }
    }
}

fn moved_table(answer: &Value) -> Table {
    let pages = answer["relinked"].as_array().map_or(&[][..], Vec::as_slice);
    let count = |page: &Value| page["links"].as_u64().unwrap_or(0);
    let links: u64 = pages.iter().map(count).sum();
    let told = match links {
        0 => "no link had to change".to_owned(),
        links => format!("{links} links in {} pages have the new name", pages.len()),
    };
    let table = outcome_table(answer);
    if answer["ok"] == true {
        table.note(told)
    } else {
        table
    }
}
