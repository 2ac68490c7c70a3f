use std::collections::BTreeSet;

use escurel_core::api::{EraseRequest, EraseTarget, PageName};
use escurel_core::{Code, Refusal};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::spec::{Cli, Effect, Execution, Quota, Run, Scope, Spec};
use crate::table::Table;
use crate::tool::{Call, Tool};
use crate::wire::VersionArgument;

/// Removes texts for good: nobody can restore them.
///
/// Say what: a page with all its history, some earlier versions of a page, an event, a
/// conversation, or all that a person sent, captured and wrote. No byte of it stays in the data
/// folder; that something was there, when, by whom and why it was erased stays in the journal, and
/// reads answer `content_erased`. Backups and exports made before have to be erased by yourself.
#[derive(Deserialize, JsonSchema)]
pub struct Erase {
    /// The page: its path, its uid or [[skill::id]]; of a deleted page its path or uid.
    page_id: Option<String>,
    /// The what-if scenario that the page belongs to; a path or uid says it by itself.
    scenario: Option<String>,
    /// Only these versions of the page, such as v3; not the newest.
    versions: Option<Vec<VersionArgument>>,
    /// The event whose texts go.
    event_id: Option<String>,
    /// The conversation whose messages go.
    chat_group_id: Option<String>,
    /// The person whose messages, events and earlier texts go. Texts that pages still show are
    /// listed in `kept`.
    subject: Option<String>,
    /// Why; it stands in the journal for ever, so name nothing that is to be forgotten.
    reason: String,
    /// Must be true, unless dry_run is.
    #[schemars(extend("default" = false))]
    confirm: Option<bool>,
    /// Only tell what would go.
    #[schemars(extend("default" = false))]
    dry_run: Option<bool>,
}

/// What was erased.
#[derive(Serialize, JsonSchema)]
pub struct Erased {
    /// Always true; what is refused is an error.
    ok: bool,
    /// True when nothing was erased, only counted.
    dry_run: bool,
    /// How many texts: versions, events, messages, stored answers. Those erased before are counted again.
    contents: u64,
    /// Pages whose newest text the person wrote. It stands; erase these pages or write them anew.
    kept: Vec<String>,
}

impl Tool for Erase {
    const SPEC: Spec = Spec {
        name: "erase",
        title: "Erase for good",
        aliases: &[],
        scope: Scope::Admin,
        execution: Execution::Orchestration,
        effect: Effect::Destroy,
        quota: Quota::Write,
        run: Run::Blocking,
        argument_aliases: &[],
        numbered: &[],
        examples: &[(
            "what would go with a page",
            r##"{"page_id": "[[customer::acme-corp]]", "reason": "asked for by the customer", "dry_run": true}"##,
        )],
        cli: Cli {
            positional: &["page_id"],
            from_file: &[],
            table,
        },
    };
    type Output = Erased;

    fn call(self, cx: &Call<'_>) -> Result<Erased, Refusal> {
        let dry_run = self.dry_run.unwrap_or(false);
        if !dry_run && self.confirm != Some(true) {
            let why =
                "Nothing was erased: it cannot be undone. Try dry_run, then say confirm: true.";
            return Err(Refusal::new(Code::InvalidArgument, why).at("confirm"));
        }
        let reason = self.reason.clone();
        let request = EraseRequest {
            target: self.target()?,
            reason,
            dry_run,
        };
        let answer = cx.kb.erase(cx.caller, &request)?;
        Ok(Erased {
            ok: true,
            dry_run,
            contents: answer.contents,
            kept: answer.kept,
        })
    }
}

impl Erase {
    fn target(self) -> Result<EraseTarget, Refusal> {
        let versions: Result<BTreeSet<u64>, Refusal> = self
            .versions
            .into_iter()
            .flatten()
            .map(|version| version.number("versions"))
            .collect();
        let (versions, scenario) = (versions?, self.scenario);
        let of_a_page = !versions.is_empty() || scenario.is_some();
        let named = [
            self.page_id.map(|id| EraseTarget::Page {
                name: PageName { id, scenario },
                versions,
            }),
            self.event_id.map(EraseTarget::Event),
            self.chat_group_id.map(EraseTarget::Chat),
            self.subject.map(EraseTarget::Subject),
        ];
        let mut named = named.into_iter().flatten();
        let refuse = |why: &str, at: &str| Err(Refusal::new(Code::InvalidArgument, why).at(at));
        match (named.next(), named.next()) {
            (Some(_), Some(other)) => refuse(
                "Name one of page_id, event_id, chat_group_id and subject.",
                other.argument(),
            ),
            (None, _) => refuse(
                "Name what goes: page_id, event_id, chat_group_id or subject.",
                "page_id",
            ),
            (Some(target), None) if of_a_page && target.argument() != "page_id" => {
                refuse("Versions and scenarios are those of a page.", "page_id")
            }
            (Some(target), None) => Ok(target),
        }
    }
}

fn table(answer: &Value) -> Table {
    let verb = match answer["dry_run"] == true {
        true => "would be erased",
        false => "erased for good",
    };
    let table = Table::of(answer, "/kept", &[("Still says what they wrote", "")]);
    table.note(format!("{} texts {verb}", answer["contents"]))
}
