use escurel_core::Refusal;
use escurel_core::api as core;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::spec::{Cli, Effect, Execution, Quota, Run, Scope, Spec};
use crate::table::Table;
use crate::tool::{Call, Tool};

const DEFAULT_LIMIT: usize = 1_000;

/// Lists the links into and out of a page.
///
/// One step only: use it to see who mentions a page and what it mentions. For
/// chains of reasons over several steps use provenance_ancestry. Each edge
/// names both pages; `relation` is the header key that holds the link, such as
/// decided_by, and is null for links in the text. Links that lead to no page,
/// to several, or to one you may not read are not listed.
#[derive(Deserialize, JsonSchema)]
pub struct Neighbours {
    /// The page: its path, its uid or [[skill::id]].
    page_id: String,
    /// `in`: links to the page. `out`: links on the page.
    #[schemars(extend("default" = "both"))]
    direction: Option<Direction>,
    /// Only links where the other page, or the page linked to, is of this skill.
    link_skill: Option<String>,
    /// The same for any of several skills.
    link_skill_in: Option<Vec<String>>,
    /// `<key> asc` or `<key> desc`: order by a header key of the other page.
    order_by: Option<String>,
    /// At most this many edges; `truncated` tells when there are more.
    #[schemars(range(min = 1, max = 10_000), extend("default" = DEFAULT_LIMIT))]
    limit: Option<usize>,
    /// Links as they stood at this instant, RFC 3339.
    as_of: Option<String>,
    /// With the pages of this what-if scenario in place of theirs.
    scenario: Option<String>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Direction {
    In,
    Out,
    Both,
}

/// Links of a page.
#[derive(Serialize, JsonSchema)]
pub struct Edges {
    edges: Vec<Edge>,
    /// True when `limit` cut the list.
    truncated: bool,
}

/// A link from one page to another.
#[derive(Serialize, JsonSchema)]
struct Edge {
    /// The page that holds the link.
    src_page: String,
    /// The page it leads to.
    dst_page: String,
    /// The skill of the page it leads to.
    link_skill: String,
    /// The header key that holds the link; null in the text.
    relation: Option<String>,
    /// The version that the link pins.
    link_version: Option<String>,
    /// The heading or block that the link names.
    dst_anchor: Option<String>,
    /// The same as `dst_anchor`.
    anchor: Option<String>,
    /// The block in which the link stands.
    src_anchor: Option<String>,
    /// A few header keys of the page at the other end.
    target_frontmatter_excerpt: Map<String, Value>,
}

impl Tool for Neighbours {
    const SPEC: Spec = Spec {
        name: "neighbours",
        title: "Links of a page",
        aliases: &["neighbors"],
        scope: Scope::Agent,
        execution: Execution::Deterministic,
        effect: Effect::Read,
        quota: Quota::Query,
        run: Run::InlineWithout("as_of"),
        argument_aliases: &[],
        numbered: &[],
        examples: &[
            (
                "who mentions Acme",
                r#"{"page_id": "[[customer::acme-corp]]", "direction": "in"}"#,
            ),
            (
                "meetings and decisions around it, newest first",
                r#"{"page_id": "[[customer::acme-corp]]", "link_skill_in": ["meeting", "decision"], "order_by": "at desc", "limit": 20}"#,
            ),
        ],
        cli: Cli {
            positional: &["page_id"],
            from_file: &[],
            table,
        },
    };
    type Output = Edges;

    fn call(self, cx: &Call<'_>) -> Result<Edges, Refusal> {
        let request = core::NeighboursRequest {
            page_id: self.page_id,
            direction: match self.direction {
                Some(Direction::In) => core::Direction::In,
                Some(Direction::Out) => core::Direction::Out,
                Some(Direction::Both) | None => core::Direction::Both,
            },
            link_skill: self.link_skill,
            link_skill_in: self.link_skill_in.filter(|skills| !skills.is_empty()),
            order_by: self.order_by,
            as_of: self.as_of,
            scenario: self.scenario,
            limit: Some(self.limit.unwrap_or(DEFAULT_LIMIT)),
        };
        let found = cx.kb.neighbours(cx.caller, &request)?;
        Ok(Edges {
            edges: found.edges.into_iter().map(Edge::from).collect(),
            truncated: found.truncated,
        })
    }
}

impl From<core::NeighbourEdge> for Edge {
    fn from(e: core::NeighbourEdge) -> Edge {
        Edge {
            src_page: e.src_page,
            dst_page: e.dst_page,
            link_skill: e.link_skill,
            relation: e.relation,
            link_version: e.link_version,
            anchor: e.dst_anchor.clone(),
            dst_anchor: e.dst_anchor,
            src_anchor: e.src_anchor,
            target_frontmatter_excerpt: e.target_frontmatter_excerpt,
        }
    }
}

fn table(answer: &Value) -> Table {
    let columns = [
        ("From", "/src_page"),
        ("Relation", "/relation"),
        ("To", "/dst_page"),
        ("Anchor", "/dst_anchor"),
    ];
    let table = Table::of(answer, "/edges", &columns).counted("link", "links");
    if answer["truncated"] == true {
        table.note("there are more; raise --limit")
    } else {
        table
    }
}
