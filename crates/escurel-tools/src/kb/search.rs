use escurel_core::api as core;
use escurel_core::{Code, Refusal};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::spec::{Cli, Effect, Execution, Quota, Run, Scope, Spec};
use crate::table::{Table, cell};
use crate::tool::{Call, Tool};
use crate::wire::PageType;

const DEFAULT_K: usize = 10;

/// Finds passages by words and meaning, best first.
///
/// Start here when you do not know which page holds the answer, then read the
/// best hits with expand. Give either `q` or `queries`; several phrasings find
/// what one misses. Narrow with `skill`, `page_type`, `filter` and `page_id`
/// rather than with more words: they apply before ranking, so you still get
/// `k` hits. With a link in hand use resolve; to list all pages of a kind use
/// list_instances; for who links to whom use neighbours.
#[derive(Deserialize, JsonSchema)]
pub struct Search {
    /// What to look for: words or a question. In it, `"two words"` must stand
    /// together, `-word` must be absent, `begin*` is the start of a word;
    /// `skill:meeting`, `tag:urgent`, `after:2025-04-01` and `before:2025-05` (the
    /// page's `at`) narrow. Misspelt words find similar ones, after exact matches.
    q: Option<String>,
    /// Instead of `q`: 2 to 8 phrasings of one question, fused into one ranking.
    #[schemars(length(min = 2, max = 8))]
    queries: Option<Vec<String>>,
    /// At most this many hits.
    #[schemars(range(min = 1, max = 200), extend("default" = DEFAULT_K))]
    k: Option<usize>,
    /// `block`: the best passages, several of one page are possible. `page`: each page at most once.
    #[schemars(extend("default" = "block"))]
    granularity: Option<Granularity>,
    /// Only skill pages, only instances, or both.
    #[schemars(extend("default" = "any"))]
    page_type: Option<PageTypeFilter>,
    /// Only pages of this skill, such as customer.
    skill: Option<String>,
    /// Conditions on frontmatter, all of which must hold. A key maps to the
    /// value it equals, to null for absent, or to an object of operators
    /// `>=`, `<=`, `>`, `<`, `in`, `not`. A list matches if any element does.
    filter: Option<Map<String, Value>>,
    /// Only passages of this page: its path, its uid or [[skill::id]].
    page_id: Option<String>,
    /// Search what stood at this instant, RFC 3339.
    as_of: Option<String>,
    /// Search with the pages of this what-if scenario in place of theirs.
    scenario: Option<String>,
    /// Tell for each hit why it stands where it does.
    #[schemars(extend("default" = false))]
    explain: Option<bool>,
}

#[derive(Clone, Copy, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Granularity {
    Block,
    Page,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum PageTypeFilter {
    Skill,
    Instance,
    Any,
}

/// Hits, best first.
#[derive(Serialize, JsonSchema)]
pub struct Hits {
    /// Best first.
    hits: Vec<Hit>,
    granularity: Granularity,
    /// What each way of searching contributed.
    lanes: Vec<Lane>,
    /// How parts of the query were understood, when that is not obvious.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    notes: Vec<String>,
}

/// A passage or page.
#[derive(Serialize, JsonSchema)]
struct Hit {
    /// The page's path; give it to expand.
    page_id: String,
    /// The page's id within its skill.
    slug: Option<String>,
    /// The skill that the page declares or is an instance of.
    skill: String,
    page_type: PageType,
    /// The page's title.
    title: String,
    /// Heading or block of the passage; give it to expand.
    #[serde(skip_serializing_if = "Option::is_none")]
    anchor: Option<String>,
    /// The passage, or the part of it that matched.
    snippet: String,
    /// Where matched words stand in the snippet: [start, end) in characters.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    matches: Vec<[usize; 2]>,
    /// For comparison within this answer only.
    score: f32,
    /// Cosine similarity to the query; null without vectors.
    similarity: Option<f32>,
    /// The page's description, `at` and a few more keys.
    frontmatter_excerpt: Map<String, Value>,
    /// Why it stands here, if `explain` was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    explain: Option<Explain>,
}

/// What each way of searching had to say about a hit.
#[derive(Serialize, JsonSchema)]
struct Explain {
    /// By words; null if it has none of them.
    lexical: Option<ByWords>,
    /// By meaning; null without vectors.
    vector: Option<ByMeaning>,
    /// What had to hold before ranking.
    filters: Vec<String>,
}

/// A hit by its words.
#[derive(Serialize, JsonSchema)]
struct ByWords {
    /// Place among the hits by words, from 1; with several phrasings, where it ranked best.
    rank: Option<u32>,
    /// BM25, for comparison within this answer only.
    score: f32,
    /// Share of the query's words that it has, rare ones counting more.
    coverage: f32,
    /// Only words like those of the query are in it.
    approximate: bool,
}

/// A hit by its meaning.
#[derive(Serialize, JsonSchema)]
struct ByMeaning {
    /// Place among the hits by meaning, from 1; null if only words found it.
    rank: Option<u32>,
    /// Cosine with the query.
    similarity: f32,
}

impl Explain {
    fn of(why: core::Why, filters: Vec<String>) -> Explain {
        Explain {
            lexical: why.lexical_score.map(|score| ByWords {
                rank: why.lexical_rank,
                score,
                coverage: why.coverage.unwrap_or_default(),
                approximate: why.approximate,
            }),
            vector: why.similarity.map(|similarity| ByMeaning {
                rank: why.vector_rank,
                similarity,
            }),
            filters,
        }
    }
}

/// A way of searching.
#[derive(Serialize, JsonSchema)]
struct Lane {
    /// Its name.
    lane: String,
    state: LaneState,
    /// Why it is not fresh.
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
}

/// `lagging`: the newest writes may be missing.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum LaneState {
    Fresh,
    Lagging,
    Off,
}

impl Tool for Search {
    const SPEC: Spec = Spec {
        name: "search",
        title: "Search",
        aliases: &[],
        scope: Scope::Agent,
        execution: Execution::Deterministic,
        effect: Effect::Read,
        quota: Quota::Query,
        run: Run::Blocking,
        argument_aliases: &[],
        numbered: &[],
        examples: &[
            ("one question", r#"{"q": "acme renewal risk"}"#),
            (
                "several phrasings, pages instead of passages",
                r#"{"queries": ["acme renewal", "will acme churn"], "granularity": "page", "k": 5}"#,
            ),
            (
                "recent meetings about Acme",
                r#"{"q": "acme", "skill": "meeting", "filter": {"at": {">=": "2025-04-01"}}}"#,
            ),
            (
                "open or confirmed, and without an end",
                r#"{"q": "battery", "filter": {"status": {"in": ["open", "confirmed"]}, "until": null}}"#,
            ),
            (
                "what was written of a quarter, and why each hit is one",
                r#"{"q": "renewal after:2025-01 before:2025-04", "explain": true}"#,
            ),
            (
                "inside one page",
                r#"{"q": "prices per harbour", "page_id": "[[customer::acme-corp]]"}"#,
            ),
        ],
        cli: Cli {
            positional: &["q"],
            from_file: &[],
            table,
        },
    };
    type Output = Hits;

    fn call(self, cx: &Call<'_>) -> Result<Hits, Refusal> {
        let granularity = self.granularity.unwrap_or(Granularity::Block);
        let explain = self.explain.unwrap_or_default();
        let request = self.request(granularity)?;
        let answer = cx.kb.search(cx.caller, &request)?;
        let filters = explain.then(|| filters(&request));
        let hit = |hit| Hit::of(hit, filters.as_deref());
        Ok(Hits {
            hits: answer.hits.into_iter().map(hit).collect(),
            granularity,
            lanes: answer.lanes.into_iter().map(Lane::from).collect(),
            notes: answer.notes,
        })
    }
}

impl Search {
    fn request(self, granularity: Granularity) -> Result<core::SearchRequest, Refusal> {
        Ok(core::SearchRequest {
            queries: phrasings(self.q, self.queries)?,
            k: self.k.unwrap_or(DEFAULT_K),
            granularity: match granularity {
                Granularity::Block => core::Granularity::Block,
                Granularity::Page => core::Granularity::Page,
            },
            page_type: match self.page_type {
                Some(PageTypeFilter::Skill) => Some(escurel_md::PageType::Skill),
                Some(PageTypeFilter::Instance) => Some(escurel_md::PageType::Instance),
                Some(PageTypeFilter::Any) | None => None,
            },
            skill: self.skill,
            filter: self.filter.filter(|f| !f.is_empty()),
            page_id: self.page_id,
            as_of: self.as_of,
            scenario: self.scenario,
        })
    }
}

/// Exactly one of the two, with something in it.
fn phrasings(q: Option<String>, queries: Option<Vec<String>>) -> Result<Vec<String>, Refusal> {
    let bad = |at: &str, message: &str| Err(Refusal::new(Code::InvalidArgument, message).at(at));
    let (at, mut given) = match (q, queries) {
        (Some(_), Some(_)) => return bad("queries", "q, queries: give one of the two, not both."),
        (None, None) => {
            return bad(
                "q",
                "q: required, unless queries is given; expected a string.",
            );
        }
        (Some(q), None) => ("q", vec![q]),
        (None, Some(queries)) => ("queries", queries),
    };
    given.retain(|text| !text.trim().is_empty());
    if given.is_empty() {
        return bad(at, &format!("{at}: expected some text, got none."));
    }
    Ok(given)
}

/// What narrows a request, as people write it.
fn filters(request: &core::SearchRequest) -> Vec<String> {
    let mut filters = Vec::new();
    let page_type = request.page_type.map(|page_type| match page_type {
        escurel_md::PageType::Skill => "skill",
        escurel_md::PageType::Instance => "instance",
    });
    for (name, value) in [
        ("page_type", page_type),
        ("skill", request.skill.as_deref()),
        ("page_id", request.page_id.as_deref()),
        ("scenario", request.scenario.as_deref()),
        ("as_of", request.as_of.as_deref()),
    ] {
        filters.extend(value.map(|value| format!("{name} = {value}")));
    }
    for (key, condition) in request.filter.iter().flatten() {
        match condition {
            Value::Object(operators) => {
                let each = operators.iter();
                filters.extend(each.map(|(operator, value)| format!("{key} {operator} {value}")));
            }
            value => filters.push(format!("{key} = {value}")),
        }
    }
    filters
}

impl Hit {
    fn of(h: core::SearchHit, filters: Option<&[String]>) -> Hit {
        Hit {
            explain: filters.map(|filters| Explain::of(h.why, filters.to_vec())),
            matches: in_characters(&h.snippet, &h.matches),
            page_id: h.page.page_id,
            slug: Some(h.page.slug),
            skill: h.page.skill,
            page_type: h.page.page_type.into(),
            title: h.page.title,
            anchor: h.anchor,
            snippet: h.snippet,
            score: h.score,
            similarity: h.why.similarity,
            frontmatter_excerpt: h.frontmatter_excerpt,
        }
    }
}

/// Byte ranges as ranges of characters, in one pass over the text.
fn in_characters(text: &str, ranges: &[(u32, u32)]) -> Vec<[usize; 2]> {
    let mut ends: Vec<usize> = ranges
        .iter()
        .flat_map(|&(a, b)| [a as usize, b as usize])
        .collect();
    ends.sort_unstable();
    ends.dedup();
    let mut wanted = ends.iter().copied().peekable();
    let mut at = Vec::with_capacity(ends.len());
    let mut characters = 0;
    for (byte, _) in text.char_indices() {
        while wanted.next_if(|w| *w <= byte).is_some() {
            at.push(characters);
        }
        characters += 1;
    }
    at.resize(ends.len(), characters);
    let position = |byte: u32| {
        ends.binary_search(&(byte as usize))
            .map_or(characters, |i| at[i])
    };
    ranges
        .iter()
        .map(|&(a, b)| [position(a), position(b)])
        .collect()
}

impl From<core::LaneState> for Lane {
    fn from(l: core::LaneState) -> Lane {
        let state = match l.state {
            "fresh" => LaneState::Fresh,
            "off" => LaneState::Off,
            _ => LaneState::Lagging,
        };
        Lane {
            lane: l.lane.to_owned(),
            state,
            detail: l.detail,
        }
    }
}

fn table(answer: &Value) -> Table {
    let columns = [
        ("Score", "/score"),
        ("Page", "/page_id"),
        ("At", "/anchor"),
        ("Passage", "/snippet"),
    ];
    let mut table = Table::of(answer, "/hits", &columns).counted("hit", "hits");
    for row in &mut table.rows {
        if let Ok(score) = row[0].parse::<f64>() {
            row[0] = format!("{score:.3}");
        }
    }
    let notes = answer["notes"].as_array().into_iter().flatten();
    notes.fold(table, |t, note| t.note(cell(Some(note))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_count_characters() {
        let check = |text: &str, ranges: &[(u32, u32)], expect: &[[usize; 2]]| {
            assert_eq!(in_characters(text, ranges), expect, "{text}");
        };
        check("acme risk", &[(0, 4), (5, 9)], &[[0, 4], [5, 9]]);
        check("é 🌊 sea", &[(0, 2), (8, 11)], &[[0, 1], [4, 7]]);
        check("ab", &[(1, 99)], &[[1, 2]]);
        check("", &[(0, 0)], &[[0, 0]]);
    }

    #[test]
    fn one_of_q_and_queries() {
        let check = |q: Option<&str>, queries: Option<&[&str]>, expect: Result<&[&str], &str>| {
            let queries = queries.map(|q| q.iter().map(|s| (*s).to_owned()).collect());
            let got = phrasings(q.map(str::to_owned), queries)
                .map_err(|r| r.location.unwrap_or_default());
            let expect = expect.map(|e| e.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>());
            assert_eq!(got, expect.map_err(str::to_owned));
        };
        check(Some("a"), None, Ok(&["a"]));
        check(None, Some(&["a", " ", "b"]), Ok(&["a", "b"]));
        check(Some("a"), Some(&["b"]), Err("queries"));
        check(None, None, Err("q"));
        check(Some("  "), None, Err("q"));
        check(None, Some(&["", " "]), Err("queries"));
    }
}
