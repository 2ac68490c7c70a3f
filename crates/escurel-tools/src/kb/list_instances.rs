use escurel_core::api as core;
use escurel_core::{Code, Refusal};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::spec::{Cli, Effect, Execution, Numbered, Quota, Run, Scope, Spec};
use crate::table::Table;
use crate::tool::{Call, Tool};

const DEFAULT_LIMIT: usize = 50;

/// Lists the pages of one skill with their headers.
///
/// Complete and in order, unlike search: use it for "all open decisions" or
/// for a log of events by time. When `next_cursor` is a string there are more;
/// call again with it as `cursor` and all else the same. Only null means the
/// end; a short page does not. For conditions on several keys, for ranges or
/// for words in the text use search with `filter`.
#[derive(Deserialize, JsonSchema)]
pub struct ListInstances {
    /// The skill, such as meeting; list_skills has them.
    skill_id: String,
    /// Only pages with this header key equal to `frontmatter_value`; give both.
    frontmatter_key: Option<String>,
    /// The value of `frontmatter_key`.
    frontmatter_value: Option<Scalar>,
    /// By the pages' `at`; by path when it is left out.
    order_by: Option<OrderBy>,
    /// At most this many pages.
    #[schemars(range(min = 1, max = 500), extend("default" = DEFAULT_LIMIT))]
    limit: Option<usize>,
    /// `next_cursor` of the call before.
    cursor: Option<String>,
    /// Pages as they stood at this instant, RFC 3339.
    as_of: Option<String>,
    /// With the pages of this what-if scenario in place of theirs.
    scenario: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(transform = scalar)]
enum Scalar {
    Text(String),
    Other(Value),
}

fn scalar(schema: &mut schemars::Schema) {
    *schema = schemars::json_schema!({ "type": ["string", "number", "boolean"] });
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
enum OrderBy {
    #[serde(rename = "at asc")]
    AtAsc,
    #[serde(rename = "at desc")]
    AtDesc,
}

/// Pages of a skill.
#[derive(Serialize, JsonSchema)]
pub struct InstanceList {
    /// In the order asked for.
    instances: Vec<Instance>,
    /// A string when there are more, null at the end.
    next_cursor: Option<String>,
}

/// A page.
#[derive(Serialize, JsonSchema)]
struct Instance {
    /// The page's path; give it to expand.
    page_id: String,
    /// The page's id within its skill.
    slug: Option<String>,
    /// The skill it is an instance of.
    skill: String,
    /// The page's title.
    title: String,
    /// Version of the text, such as v3.
    version: String,
    /// All keys of the page's header.
    #[schemars(with = "Map<String, Value>")]
    frontmatter: Box<RawValue>,
    /// When it happened or holds from; null when it has no date.
    at: Option<String>,
}

impl Tool for ListInstances {
    const SPEC: Spec = Spec {
        name: "list_instances",
        title: "List the pages of a skill",
        aliases: &[],
        scope: Scope::Agent,
        execution: Execution::Deterministic,
        effect: Effect::Read,
        quota: Quota::Query,
        run: Run::InlineWithout("as_of"),
        argument_aliases: &[],
        numbered: &[Numbered {
            code: Code::CursorInvalid,
            at: None,
            number: -32602,
        }],
        examples: &[
            (
                "the latest meetings",
                r#"{"skill_id": "meeting", "order_by": "at desc", "limit": 10}"#,
            ),
            (
                "customers at risk",
                r#"{"skill_id": "customer", "frontmatter_key": "status", "frontmatter_value": "at_risk"}"#,
            ),
        ],
        cli: Cli {
            positional: &["skill_id"],
            from_file: &[],
            table,
        },
    };
    type Output = InstanceList;

    fn call(self, cx: &Call<'_>) -> Result<InstanceList, Refusal> {
        let request = core::InstancesRequest {
            frontmatter: condition(self.frontmatter_key, self.frontmatter_value)?,
            skill_id: self.skill_id,
            order: match self.order_by {
                Some(OrderBy::AtAsc) => core::InstanceOrder::AtAsc,
                Some(OrderBy::AtDesc) => core::InstanceOrder::AtDesc,
                None => core::InstanceOrder::Id,
            },
            limit: self.limit.unwrap_or(DEFAULT_LIMIT),
            cursor: self.cursor,
            as_of: self.as_of,
            scenario: self.scenario,
        };
        let found = cx.kb.list_instances(cx.caller, &request)?;
        let instances = found.instances.into_iter().map(Instance::from).collect();
        Ok(InstanceList {
            instances,
            next_cursor: found.next_cursor,
        })
    }
}

/// Half a condition is refused: without it the list would be a wrong answer.
fn condition(
    key: Option<String>,
    value: Option<Scalar>,
) -> Result<Option<(String, String)>, Refusal> {
    let lacks = |given: &str, lacking: &'static str| {
        let message = format!("{lacking}: required when {given} is given.");
        Err(Refusal::new(Code::InvalidArgument, message).at(lacking))
    };
    match (key, value) {
        (Some(key), Some(Scalar::Text(text))) => Ok(Some((key, text))),
        (Some(key), Some(Scalar::Other(value))) => Ok(Some((key, value.to_string()))),
        (None, None) => Ok(None),
        (Some(_), None) => lacks("frontmatter_key", "frontmatter_value"),
        (None, Some(_)) => lacks("frontmatter_value", "frontmatter_key"),
    }
}

impl From<core::InstanceRow> for Instance {
    fn from(row: core::InstanceRow) -> Instance {
        Instance {
            page_id: row.page.page_id,
            slug: Some(row.page.slug),
            skill: row.page.skill,
            title: row.page.title,
            version: crate::wire::version(row.page.version),
            frontmatter: crate::wire::raw(row.frontmatter),
            at: row.at,
        }
    }
}

fn table(answer: &Value) -> Table {
    let columns = [
        ("At", "/at"),
        ("Id", "/slug"),
        ("Title", "/title"),
        ("Page", "/page_id"),
    ];
    let table = Table::of(answer, "/instances", &columns).counted("page", "pages");
    match answer["next_cursor"].as_str() {
        Some(cursor) => table.note(format!("there are more: --cursor {cursor}")),
        None => table,
    }
}
