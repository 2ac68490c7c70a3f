use escurel_core::Refusal;
use escurel_md::When;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::spec::{Cli, Effect, Execution, Quota, Run, Scope, Spec};
use crate::table::Table;
use crate::tool::{Call, Tool};

/// Lists who sent each live change of a page that is still kept as one, oldest first.
///
/// Changes that were put together, at the latest when the last session of the page ends, are not
/// listed any more: page_history has the versions they became. The list is empty for a page that
/// nobody edits, that does not exist or that you may not read.
#[derive(Deserialize, JsonSchema)]
pub struct ListOpAuthors {
    /// The page: its path, its uid or [[skill::id]].
    page_id: String,
}

/// Who changed a page live.
#[derive(Serialize, JsonSchema)]
pub struct OpAuthors {
    /// The page's path.
    page_id: String,
    /// Oldest first.
    ops: Vec<Op>,
}

#[derive(Serialize, JsonSchema)]
struct Op {
    /// Names the change among those of its page.
    op_id: String,
    /// When it was taken, in microseconds since 1970, and its place among those that were taken then.
    hlc: String,
    /// RFC 3339.
    applied_at: String,
    /// The verified subject that sent it.
    principal: Option<String>,
}

impl Tool for ListOpAuthors {
    const SPEC: Spec = Spec {
        name: "list_op_authors",
        title: "Who is changing a page",
        aliases: &[],
        scope: Scope::Agent,
        execution: Execution::Deterministic,
        effect: Effect::Read,
        quota: Quota::Query,
        run: Run::Inline,
        argument_aliases: &[],
        numbered: &[],
        examples: &[(
            "a customer's page",
            r##"{"page_id": "[[customer::acme-corp]]"}"##,
        )],
        cli: Cli {
            positional: &["page_id"],
            from_file: &[],
            table,
        },
    };
    type Output = OpAuthors;

    fn call(self, cx: &Call<'_>) -> Result<OpAuthors, Refusal> {
        let (page_id, ops) = cx.kb.op_authors(cx.caller, &self.page_id)?;
        let ops = ops.into_iter().map(|op| Op {
            op_id: format!("op-{}", op.number),
            hlc: format!("{}-{}", op.at, op.number),
            applied_at: When::to_rfc3339(op.at),
            principal: Some(op.by),
        });
        Ok(OpAuthors {
            page_id,
            ops: ops.collect(),
        })
    }
}

fn table(answer: &Value) -> Table {
    let columns = [
        ("Op", "/op_id"),
        ("At", "/applied_at"),
        ("By", "/principal"),
    ];
    Table::of(answer, "/ops", &columns).counted("change", "changes")
}
