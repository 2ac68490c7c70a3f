use escurel_core::Refusal;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::spec::{Cli, Effect, Execution, Quota, Run, Scope, Spec};
use crate::table::{Table, cell};
use crate::tool::{Call, Tool};
use crate::wire::{PageRef, WikilinkParsed};

/// Says which page a wikilink leads to, without reading it.
///
/// Use it to check a link before you write it, or to turn a name that people
/// use (title, alias, path, id) into a page_id. When the name fits several
/// pages, `candidates` lists them and `page` is null; write the typed form
/// [[skill::id]] then. To read the page use expand; when you only have words
/// that may stand on it, use search.
#[derive(Deserialize, JsonSchema)]
pub struct Resolve {
    /// [[skill::id#anchor@version|alias]], of which only the id is required; the brackets may be left out.
    wikilink: String,
    /// Look at the pages of this what-if scenario first.
    scenario: Option<String>,
}

/// Where the link leads.
#[derive(Serialize, JsonSchema)]
pub struct Resolved {
    parsed: WikilinkParsed,
    /// The page; null when there is none for you, or several.
    page: Option<PageRef>,
    /// True when the link leads to exactly one page.
    exists: bool,
    /// The pages that the name fits, when there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    candidates: Vec<PageRef>,
    /// Only for links with an anchor: does the page have it?
    #[serde(skip_serializing_if = "Option::is_none")]
    anchor_exists: Option<bool>,
    /// Only for links that pin a version: is it a known one?
    #[serde(skip_serializing_if = "Option::is_none")]
    version_exists: Option<bool>,
    /// True when the page has moved on since the version that the link pins.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(default)]
    newer_exists: bool,
}

impl Tool for Resolve {
    const SPEC: Spec = Spec {
        name: "resolve",
        title: "Resolve a wikilink",
        aliases: &[],
        scope: Scope::Agent,
        execution: Execution::Deterministic,
        effect: Effect::Read,
        quota: Quota::Query,
        run: Run::Inline,
        argument_aliases: &[],
        numbered: &[],
        examples: &[
            ("a typed link", r#"{"wikilink": "[[customer::acme-corp]]"}"#),
            (
                "a heading of a pinned version",
                r#"{"wikilink": "[[customer::acme-corp#Signals@v1]]"}"#,
            ),
            ("a title", r#"{"wikilink": "[[Acme Corp]]"}"#),
        ],
        cli: Cli {
            positional: &["wikilink"],
            from_file: &[],
            table,
        },
    };
    type Output = Resolved;

    fn call(self, cx: &Call<'_>) -> Result<Resolved, Refusal> {
        let r = cx
            .kb
            .resolve(cx.caller, &self.wikilink, self.scenario.as_deref())?;
        Ok(Resolved {
            parsed: r.parsed.into(),
            exists: r.page.is_some(),
            page: r.page.map(PageRef::from),
            candidates: r.candidates.into_iter().map(PageRef::from).collect(),
            anchor_exists: r.anchor_exists,
            version_exists: r.version_exists,
            newer_exists: r.newer_exists,
        })
    }
}

fn table(answer: &Value) -> Table {
    let columns = [
        ("Page", "/page_id"),
        ("Skill", "/skill"),
        ("Title", "/title"),
        ("Version", "/version"),
    ];
    let one = [answer["page"].clone()];
    let pages = if answer["exists"] == true {
        Value::from(one.to_vec())
    } else {
        answer["candidates"].clone()
    };
    let mut table = Table::of(&pages, "", &columns);
    if answer["exists"] != true {
        let none = table.rows.is_empty();
        table = table.footer(if none {
            "no such page"
        } else {
            "ambiguous: the name fits these pages"
        });
    }
    for (field, text) in [
        ("anchor_exists", "the page has no such anchor"),
        ("version_exists", "no such version"),
    ] {
        if answer[field] == false {
            table = table.note(text);
        }
    }
    if answer["newer_exists"] == true {
        table = table.note(format!(
            "newer than the pinned {}",
            cell(answer.pointer("/parsed/version"))
        ));
    }
    table
}
