use escurel_core::Refusal;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::spec::{Cli, Effect, Execution, Quota, Run, Scope, Spec};
use crate::table::Table;
use crate::tool::{Call, Tool};
use crate::wire::{Issue, issues_table};

/// Checks a draft of a page without saving it.
///
/// Call it before you write: it reports every finding, such as missing header
/// keys, links that lead nowhere, unknown skills or a header that is no YAML,
/// with the place and what to write instead. `ok` is false only when there is
/// an error; warnings alone leave it true.
#[derive(Deserialize, JsonSchema)]
pub struct Validate {
    /// The whole file: header between `---` lines, then markdown.
    content: String,
    /// The page that the draft would replace, or the path it would get;
    /// relative links and the page's identity are judged from there.
    as_page_id: Option<String>,
}

/// What is wrong with the draft.
#[derive(Serialize, JsonSchema)]
pub struct Verdict {
    /// False when any finding is an error.
    ok: bool,
    /// In the order of their places.
    issues: Vec<Issue>,
}

impl Tool for Validate {
    const SPEC: Spec = Spec {
        name: "validate",
        title: "Check a draft",
        aliases: &[],
        scope: Scope::Agent,
        execution: Execution::Deterministic,
        effect: Effect::Read,
        quota: Quota::Query,
        run: Run::Blocking,
        argument_aliases: &[],
        numbered: &[],
        examples: &[
            (
                "a new meeting page",
                r##"{"content": "---\ntype: instance\nskill: meeting\nid: acme-review\nat: 2025-12-12T10:00:00Z\nattendees: [\"[[contact::joel-marsh]]\"]\n---\n# Acme review\n\nWith [[customer::acme-corp]].\n"}"##,
            ),
            (
                "a new text for a page",
                r##"{"content": "---\ntype: instance\nskill: customer\nid: acme-corp\ntitle: Acme Corp\nstatus: closed\n---\n# Acme Corp\n", "as_page_id": "[[customer::acme-corp]]"}"##,
            ),
        ],
        cli: Cli {
            positional: &["content"],
            from_file: &["content"],
            table,
        },
    };
    type Output = Verdict;

    fn call(self, cx: &Call<'_>) -> Result<Verdict, Refusal> {
        let issues = cx
            .kb
            .validate(cx.caller, &self.content, self.as_page_id.as_deref())?;
        let ok = issues
            .iter()
            .all(|i| i.severity != escurel_md::Severity::Error);
        Ok(Verdict {
            ok,
            issues: issues.into_iter().map(Issue::from).collect(),
        })
    }
}

fn table(answer: &Value) -> Table {
    let verdict = if answer["ok"] == true { "ok" } else { "not ok" };
    issues_table(answer).footer(verdict)
}
