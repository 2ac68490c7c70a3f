use escurel_core::Refusal;
use escurel_core::api::PageName;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::spec::{Cli, Effect, Execution, Quota, Run, Scope, Spec};
use crate::table::Table;
use crate::tool::{Call, Tool};
use crate::wire::version;

/// Tells for each line of a page who wrote it, when and in which version.
#[derive(Deserialize, JsonSchema)]
pub struct BlamePage {
    /// The page: its path, its uid or [[skill::id]].
    page_id: String,
    /// The what-if scenario that the page belongs to; a path or uid says it by itself.
    scenario: Option<String>,
}

/// A page's lines.
#[derive(Serialize, JsonSchema)]
pub struct Blame {
    /// In the order of the file.
    lines: Vec<Line>,
}

#[derive(Serialize, JsonSchema)]
struct Line {
    /// Starts at 1.
    line: usize,
    /// The version that brought it, such as v3.
    version: String,
    /// RFC 3339.
    at: String,
    /// Who wrote it; `disk` for changes made to the file.
    by: String,
    /// The line without its end.
    text: String,
}

impl Tool for BlamePage {
    const SPEC: Spec = Spec {
        name: "blame_page",
        title: "Who wrote each line",
        aliases: &[],
        scope: Scope::Agent,
        execution: Execution::Deterministic,
        effect: Effect::Read,
        quota: Quota::Query,
        run: Run::Blocking,
        argument_aliases: &[],
        numbered: &[],
        examples: &[(
            "a customer, line by line",
            r##"{"page_id": "[[customer::acme-corp]]"}"##,
        )],
        cli: Cli {
            positional: &["page_id"],
            from_file: &[],
            table,
        },
    };
    type Output = Blame;

    fn call(self, cx: &Call<'_>) -> Result<Blame, Refusal> {
        let lines = cx.kb.blame_page(
            cx.caller,
            PageName {
                id: self.page_id,
                scenario: self.scenario,
            },
        )?;
        let line = |(index, line): (usize, escurel_core::api::BlamedLine)| Line {
            line: index + 1,
            version: version(line.version),
            at: line.at,
            by: line.by,
            text: line.text,
        };
        Ok(Blame {
            lines: lines.into_iter().enumerate().map(line).collect(),
        })
    }
}

fn table(answer: &Value) -> Table {
    let columns = [
        ("Line", "/line"),
        ("Version", "/version"),
        ("At", "/at"),
        ("By", "/by"),
        ("Text", "/text"),
    ];
    Table::of(answer, "/lines", &columns).counted("line", "lines")
}
