use escurel_core::Refusal;
use escurel_core::api as core;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::spec::{Cli, Effect, Execution, Quota, Run, Scope, Spec};
use crate::table::{Table, cell};
use crate::tool::{Call, Tool};
use crate::wire::{Issue, PageRef, VersionArgument, WikilinkParsed};

const DEFAULT_MAX_CHARS: usize = 40_000;

/// Reads a page: frontmatter, text, blocks and outgoing links.
///
/// Give the page_id of a hit, or a link. With `anchor` you get one section or
/// block, which is cheaper than a long page. Long text is cut at `max_chars`;
/// then `truncated` is true, and calling again with `next_anchor` as `anchor`
/// continues. `as_of` or `version` shows what the page said earlier;
/// list_snapshots has the instants at which it changed. A page that does not
/// exist, or that you may not read, is `{"page": null}`.
#[derive(Deserialize, JsonSchema)]
pub struct Expand {
    /// The page: its path, its uid or [[skill::id]].
    page_id: String,
    /// Only this heading with its section, or this block.
    anchor: Option<String>,
    /// The page as it was at this instant, RFC 3339.
    as_of: Option<String>,
    /// The page as of this version, such as v3.
    version: Option<VersionArgument>,
    /// The page as this what-if scenario has it.
    scenario: Option<String>,
    /// For uploaded documents: every part of the text instead of the first ones.
    #[schemars(extend("default" = false))]
    full: Option<bool>,
    /// At most this many characters of text.
    #[schemars(range(min = 1, max = 10_000_000), extend("default" = DEFAULT_MAX_CHARS))]
    max_chars: Option<usize>,
}

/// A page, or `{"page": null}`.
#[derive(Serialize, JsonSchema)]
pub struct Expanded {
    /// Null when there is no such page for you; then nothing else is given.
    page: Option<PageRef>,
    #[serde(flatten)]
    content: Option<Content>,
}

#[derive(Serialize, JsonSchema)]
struct Content {
    /// All keys of the page's header, in their order.
    frontmatter: Map<String, Value>,
    /// The page's markdown after the header, or the part that `anchor` names.
    body: String,
    /// The same text by blocks.
    blocks: Vec<Block>,
    /// Links of the header, then of the text.
    wikilinks_out: Vec<LinkOut>,
    /// For pages that show a database view: its rows. Null for others.
    backend_projection: Option<Map<String, Value>>,
    /// For uploaded documents: how many parts there are. Null for others.
    chunks_total: Option<u64>,
    /// True when not all parts of a document are given.
    chunks_truncated: bool,
    /// True when the text was cut at `max_chars`.
    truncated: bool,
    /// Where to go on when the text was cut: the `anchor` of the next call.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_anchor: Option<String>,
    /// True when this is an earlier version and a newer one exists.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(default)]
    newer_exists: bool,
    /// What is wrong with the page's text alone, and whether another page has its skill and id; validate says more.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    issues: Vec<Issue>,
    /// The pack's page that this one stands in front of.
    #[serde(skip_serializing_if = "Option::is_none")]
    shadow: Option<Shadow>,
}

/// A paragraph, list, table or other part of the text.
#[derive(Serialize, JsonSchema)]
struct Block {
    /// Names the block in links and in `anchor`.
    anchor: String,
    /// Its markdown.
    content: String,
}

/// A link of the page.
#[derive(Serialize, JsonSchema)]
struct LinkOut {
    #[serde(flatten)]
    link: WikilinkParsed,
    /// The header key it stands under; left out for links in the text.
    #[serde(skip_serializing_if = "Option::is_none")]
    relation: Option<String>,
    /// The page it leads to; left out when there is none for you, or several.
    #[serde(skip_serializing_if = "Option::is_none")]
    page_id: Option<String>,
}

/// What a page hides.
#[derive(Serialize, JsonSchema)]
struct Shadow {
    /// The hidden page.
    base_page_id: String,
    /// The pack it comes from, with its version.
    pack: String,
    /// Its frontmatter.
    base: Map<String, Value>,
}

impl Tool for Expand {
    const SPEC: Spec = Spec {
        name: "expand",
        title: "Read a page",
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
                "by path",
                r#"{"page_id": "markdown/instances/customer/acme-corp.md"}"#,
            ),
            (
                "one section, by link",
                r#"{"page_id": "[[customer::acme-corp]]", "anchor": "Signals"}"#,
            ),
            (
                "as it was",
                r#"{"page_id": "[[customer::acme-corp]]", "as_of": "2025-03-31T23:59:59Z"}"#,
            ),
        ],
        cli: Cli {
            positional: &["page_id"],
            from_file: &[],
            table,
        },
    };
    type Output = Expanded;

    fn call(self, cx: &Call<'_>) -> Result<Expanded, Refusal> {
        let request = core::ExpandRequest {
            version: VersionArgument::optional(self.version, "version")?,
            page_id: self.page_id,
            anchor: self.anchor,
            as_of: self.as_of,
            scenario: self.scenario,
            full: self.full.unwrap_or(false),
            max_chars: self.max_chars.unwrap_or(DEFAULT_MAX_CHARS),
        };
        Ok(match cx.kb.expand(cx.caller, &request)? {
            None => Expanded {
                page: None,
                content: None,
            },
            Some(found) => Expanded::from(found),
        })
    }
}

impl From<core::Expanded> for Expanded {
    fn from(e: core::Expanded) -> Expanded {
        let content = Content {
            frontmatter: e.frontmatter,
            body: e.body,
            blocks: e
                .blocks
                .into_iter()
                .map(|b| Block {
                    anchor: b.anchor,
                    content: b.content,
                })
                .collect(),
            wikilinks_out: e.links.into_iter().map(LinkOut::from).collect(),
            backend_projection: None,
            chunks_total: None,
            chunks_truncated: false,
            truncated: e.truncated,
            next_anchor: e.next_anchor,
            newer_exists: e.newer_exists,
            issues: e.issues.into_iter().map(Issue::from).collect(),
            shadow: e.shadow.map(|s| Shadow {
                base_page_id: s.base_page_id,
                pack: s.pack,
                base: s.base,
            }),
        };
        Expanded {
            page: Some(e.page.into()),
            content: Some(content),
        }
    }
}

impl From<core::OutLink> for LinkOut {
    fn from(l: core::OutLink) -> LinkOut {
        LinkOut {
            link: l.link.into(),
            relation: l.relation,
            page_id: l.page_id,
        }
    }
}

fn table(answer: &Value) -> Table {
    if answer["page"].is_null() {
        return Table::default().footer("no such page");
    }
    let row = |key: &str, value: String| vec![key.to_owned(), value];
    let mut rows = vec![
        row("page", cell(answer.pointer("/page/page_id"))),
        row("version", cell(answer.pointer("/page/version"))),
    ];
    let frontmatter = answer["frontmatter"].as_object().into_iter().flatten();
    rows.extend(frontmatter.map(|(key, value)| row(key, cell(Some(value)))));
    let body = answer["body"].as_str().unwrap_or_default();
    let table = Table {
        headers: vec!["Key".into(), "Value".into()],
        rows,
        footer: Some(body.to_owned()),
    };
    match answer["next_anchor"].as_str() {
        Some(anchor) => table.note(format!("\n[cut; go on with --anchor {anchor}]")),
        None if answer["truncated"] == true => table.note("\n[cut; use a larger --max-chars]"),
        None => table,
    }
}
