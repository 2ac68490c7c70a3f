use escurel_core::Refusal;
use escurel_core::api::PageName;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::spec::{Cli, Effect, Execution, Quota, Run, Scope, Spec};
use crate::table::Table;
use crate::tool::{Call, Tool};
use crate::wire::version;

const DEFAULT_LIMIT: usize = 50;

/// Tells what happened to a page: who changed it, when, and how much.
///
/// Newest first; renames and deletions are entries, too, and a deleted page
/// still has a history under its path or uid. diff_pages shows a change in
/// full, expand with `version` the text.
#[derive(Deserialize, JsonSchema)]
pub struct PageHistory {
    /// The page: its path, its uid or [[skill::id]].
    page_id: String,
    /// The what-if scenario that the page belongs to; a path or uid says it by itself.
    scenario: Option<String>,
    /// At most so many entries.
    #[schemars(range(min = 1, max = 1000), extend("default" = DEFAULT_LIMIT))]
    limit: Option<usize>,
}

/// A page's history.
#[derive(Serialize, JsonSchema)]
pub struct History {
    /// Where the page is, or was last.
    page_id: String,
    /// Stays the same when the page is moved, deleted and restored.
    uid: String,
    /// Newest first.
    versions: Vec<Change>,
    /// True when there are older ones.
    more: bool,
}

#[derive(Serialize, JsonSchema)]
struct Change {
    /// Such as v3; a rename and a deletion have the version that they found.
    version: String,
    /// RFC 3339.
    at: String,
    /// Who did it; `disk` for changes made to the file.
    by: String,
    /// `write`: through this server; `disk` and `adopted`: in the file; `restored`: the file came
    /// back; `page_moved`, `page_deleted`.
    origin: String,
    /// Where the page was then.
    path: String,
    /// True when the page was deleted here.
    deleted: bool,
    /// Lines that are new in it.
    lines_added: usize,
    /// Lines that it lost.
    lines_removed: usize,
    /// True when the text was erased for good.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(default)]
    erased: bool,
}

impl Tool for PageHistory {
    const SPEC: Spec = Spec {
        name: "page_history",
        title: "What happened to a page",
        aliases: &[],
        scope: Scope::Agent,
        execution: Execution::Deterministic,
        effect: Effect::Read,
        quota: Quota::Query,
        run: Run::Blocking,
        argument_aliases: &[],
        numbered: &[],
        examples: &[(
            "who changed a customer",
            r##"{"page_id": "[[customer::acme-corp]]"}"##,
        )],
        cli: Cli {
            positional: &["page_id"],
            from_file: &[],
            table,
        },
    };
    type Output = History;

    fn call(self, cx: &Call<'_>) -> Result<History, Refusal> {
        let limit = self.limit.unwrap_or(DEFAULT_LIMIT);
        let history = cx.kb.page_history(
            cx.caller,
            PageName {
                id: self.page_id,
                scenario: self.scenario,
            },
            limit,
        )?;
        let change = |v: escurel_core::api::VersionInfo| Change {
            version: version(v.version),
            at: v.at,
            by: v.by,
            origin: v.origin,
            path: v.path,
            deleted: v.deleted,
            lines_added: v.lines_added,
            lines_removed: v.lines_removed,
            erased: v.erased,
        };
        Ok(History {
            page_id: history.page_id,
            uid: history.uid,
            versions: history.versions.into_iter().map(change).collect(),
            more: history.more,
        })
    }
}

fn table(answer: &Value) -> Table {
    let columns = [
        ("Version", "/version"),
        ("At", "/at"),
        ("By", "/by"),
        ("How", "/origin"),
        ("+", "/lines_added"),
        ("-", "/lines_removed"),
        ("Path", "/path"),
    ];
    Table::of(answer, "/versions", &columns).counted("change", "changes")
}
