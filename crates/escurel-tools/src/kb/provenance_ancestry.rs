use escurel_core::Refusal;
use escurel_core::api as core;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::spec::{Cli, Effect, Execution, Quota, Run, Scope, Spec};
use crate::table::{Table, cell};
use crate::tool::{Call, Tool};

const DEFAULT_HOPS: u32 = 5;
const MOST_HOPS: u32 = 12;

/// Walks the chain of reasons behind a page, or of what follows from it.
///
/// `up` is all that the page rests on, `down` all that rests on the page, over
/// several steps of links in headers, such as derived_from or motivated_by.
/// With `to_page` you get the shortest path between the two instead:
/// `reachable`, `path` and `depth`. Pages that you may not read are left out
/// and nothing is reached through them. For single steps, and for links in the
/// text, use neighbours.
#[derive(Deserialize, JsonSchema)]
pub struct ProvenanceAncestry {
    /// Where to start: the page's path, its uid or [[skill::id]].
    page_id: String,
    /// `up`: what it rests on. `down`: what rests on it.
    #[schemars(extend("default" = "up"))]
    direction: Option<Direction>,
    /// Only links under these header keys; all when it is empty or left out.
    relations: Option<Vec<String>>,
    /// At most this many steps; more than 12 count as 12.
    #[schemars(range(min = 1), extend("default" = DEFAULT_HOPS))]
    max_hops: Option<u64>,
    /// Only through pages that existed at this instant, RFC 3339.
    as_of: Option<String>,
    /// Find the shortest path to this page instead.
    to_page: Option<String>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Direction {
    Up,
    Down,
}

/// `hops`, or with `to_page` whether and how it is reached.
#[derive(Default, Serialize, JsonSchema)]
pub struct Ancestry {
    /// The pages reached, nearest first.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<Hop>", default)]
    hops: Option<Vec<Hop>>,
    /// With `to_page`: is there a path?
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool", default)]
    reachable: Option<bool>,
    /// The page ids of a shortest path, both ends included.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<String>", default)]
    path: Option<Vec<String>>,
    /// Its number of steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "usize", default)]
    depth: Option<usize>,
}

/// A page that is reached.
#[derive(Serialize, JsonSchema)]
struct Hop {
    /// The page's path.
    page_id: String,
    /// The page's skill.
    skill: String,
    /// The header key of the last step.
    relation: String,
    /// Number of steps from the start.
    depth: u32,
}

impl Tool for ProvenanceAncestry {
    const SPEC: Spec = Spec {
        name: "provenance_ancestry",
        title: "What a page rests on",
        aliases: &[],
        scope: Scope::Agent,
        execution: Execution::Deterministic,
        effect: Effect::Read,
        quota: Quota::Query,
        run: Run::Blocking,
        argument_aliases: &[
            ("from_page", "page_id"),
            ("from_page_id", "page_id"),
            ("to_page_id", "to_page"),
        ],
        numbered: &[],
        examples: &[
            (
                "everything a result rests on",
                r#"{"page_id": "[[result::winter-battery-trial]]"}"#,
            ),
            (
                "what would fall with an expectation",
                r#"{"page_id": "[[expectation::ebb3-battery-v1]]", "direction": "down", "relations": ["motivated_by", "supersedes"]}"#,
            ),
            (
                "how a decision leads back to a data set",
                r#"{"page_id": "[[decision::battery-swap-programme]]", "to_page": "[[dataset::winter-telemetry-2025]]", "relations": ["motivated_by", "produced_by", "uses"], "max_hops": 6}"#,
            ),
        ],
        cli: Cli {
            positional: &["page_id"],
            from_file: &[],
            table,
        },
    };
    type Output = Ancestry;

    fn call(self, cx: &Call<'_>) -> Result<Ancestry, Refusal> {
        let hops = self.max_hops.and_then(|n| u32::try_from(n).ok());
        let hops = if self.max_hops.is_some() {
            hops.unwrap_or(MOST_HOPS)
        } else {
            DEFAULT_HOPS
        };
        let request = core::AncestryRequest {
            page_id: self.page_id,
            up: !matches!(self.direction, Some(Direction::Down)),
            relations: self.relations.unwrap_or_default(),
            max_hops: Some(hops.min(MOST_HOPS)),
            as_of: self.as_of,
            to_page: self.to_page,
        };
        Ok(cx.kb.provenance_ancestry(cx.caller, &request)?.into())
    }
}

impl From<core::Ancestry> for Ancestry {
    fn from(ancestry: core::Ancestry) -> Ancestry {
        match ancestry {
            core::Ancestry::Walk(hops) => Ancestry {
                hops: Some(hops.into_iter().map(Hop::from).collect()),
                ..Ancestry::default()
            },
            core::Ancestry::Path(path) => Ancestry {
                reachable: Some(path.is_some()),
                depth: path.as_ref().map(|p| p.len().saturating_sub(1)),
                path,
                ..Ancestry::default()
            },
        }
    }
}

impl From<core::AncestryHop> for Hop {
    fn from(h: core::AncestryHop) -> Hop {
        Hop {
            page_id: h.page_id,
            skill: h.skill,
            relation: h.relation,
            depth: h.depth,
        }
    }
}

fn table(answer: &Value) -> Table {
    if answer["reachable"].is_null() {
        let columns = [
            ("Steps", "/depth"),
            ("Relation", "/relation"),
            ("Skill", "/skill"),
            ("Page", "/page_id"),
        ];
        return Table::of(answer, "/hops", &columns).counted("page", "pages");
    }
    let path = answer["path"].as_array().into_iter().flatten();
    let rows = path
        .enumerate()
        .map(|(i, page)| vec![i.to_string(), cell(Some(page))])
        .collect();
    let footer = if answer["reachable"] == true {
        "reachable"
    } else {
        "not reachable"
    };
    Table {
        headers: vec!["Steps".into(), "Page".into()],
        rows,
        footer: Some(footer.into()),
    }
}
