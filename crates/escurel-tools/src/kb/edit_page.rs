use escurel_core::api::EditRequest;
use escurel_core::{Code, Edit, Part, Refusal};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::spec::{Cli, Effect, Execution, Quota, Run, Scope, Spec};
use crate::tool::{Call, Tool};
use crate::wire::{Outcome, VersionArgument, outcome_table};

/// Changes one place of a page and no byte beside it.
///
/// Name the place by exactly one of `heading` (the text under it), `block`,
/// `find` (text that stands there exactly once) or `key` (a header key, set to
/// `value`, or removed without one). `content` takes the place's text, or
/// stands before or after it. With `base_version` nothing is written if the
/// page is at another version. The answer has the change as a diff.
#[derive(Deserialize, JsonSchema)]
pub struct EditPage {
    /// The page: its path, its uid or [[skill::id]].
    page_id: String,
    /// The what-if scenario that the page belongs to; a path or uid says it by itself.
    scenario: Option<String>,
    /// The text under this heading, down to the next of its rank; its text or anchor.
    heading: Option<String>,
    /// This block: its `^id` or anchor, as in expand.
    block: Option<String>,
    /// Exactly this text.
    find: Option<String>,
    /// This key of the header.
    key: Option<String>,
    /// The new text; empty removes the place.
    content: Option<String>,
    /// The key's new value; null removes the key.
    #[schemars(transform = any_value)]
    value: Option<Value>,
    /// Where `content` goes.
    #[schemars(extend("default" = "replace"))]
    position: Option<Position>,
    /// The version that the page must be at, such as v3.
    base_version: Option<VersionArgument>,
    /// Only tell what would happen.
    #[schemars(extend("default" = false))]
    dry_run: Option<bool>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Position {
    Replace,
    Before,
    After,
}

fn any_value(schema: &mut schemars::Schema) {
    let types = ["string", "number", "boolean", "array", "object", "null"];
    schema.insert("type".to_owned(), types.into());
}

impl Tool for EditPage {
    const SPEC: Spec = Spec {
        name: "edit_page",
        title: "Change one place of a page",
        aliases: &[],
        scope: Scope::Agent,
        execution: Execution::Orchestration,
        effect: Effect::Write,
        quota: Quota::Write,
        run: Run::Blocking,
        argument_aliases: &[
            ("text", "content"),
            ("old_text", "find"),
            ("new_text", "content"),
        ],
        numbered: &[],
        examples: &[
            (
                "close a customer",
                r##"{"page_id": "[[customer::acme-corp]]", "key": "status", "value": "closed", "dry_run": true}"##,
            ),
            (
                "add a line at the end",
                r##"{"page_id": "[[customer::acme-corp]]", "heading": "Acme Corp", "content": "Called today.", "position": "after", "dry_run": true}"##,
            ),
        ],
        cli: Cli {
            positional: &["page_id"],
            from_file: &[],
            table: outcome_table,
        },
    };
    type Output = Outcome;

    fn call(self, cx: &Call<'_>) -> Result<Outcome, Refusal> {
        let dry_run = self.dry_run.unwrap_or(false);
        let (base_version, page_id) = (self.base_version, self.page_id);
        let places = [
            self.heading.map(Part::Heading),
            self.block.map(Part::Block),
            self.find.map(Part::Text),
        ];
        let mut places = places.into_iter().flatten();
        let edit = match (self.key, places.next(), places.next()) {
            (Some(key), None, None) => key_edit(key, self.value, self.content, self.position)?,
            (None, Some(part), None) => passage(part, self.content, self.value, self.position)?,
            (None, None, None) => {
                return Err(unclear("Say which place: heading, block, find or key."));
            }
            _ => return Err(unclear("Give one of heading, block, find and key.")),
        };
        let request = EditRequest {
            page_id,
            scenario: self.scenario,
            base_version: VersionArgument::optional(base_version, "base_version")?,
            dry_run,
        };
        let answer = cx.kb.edit_page(cx.caller, &request, &edit)?;
        Ok(Outcome::of(answer, dry_run))
    }
}

fn unclear(why: &str) -> Refusal {
    Refusal::new(Code::InvalidArgument, why)
}

fn key_edit(
    key: String,
    value: Option<Value>,
    content: Option<String>,
    position: Option<Position>,
) -> Result<Edit, Refusal> {
    if content.is_some() {
        return Err(unclear("A key takes `value`, not `content`.").at("content"));
    }
    if position.is_some() {
        return Err(unclear("A key has no position.").at("position"));
    }
    let value = value.filter(|value| !value.is_null());
    Ok(Edit::Key { key, value })
}

fn passage(
    part: Part,
    content: Option<String>,
    value: Option<Value>,
    position: Option<Position>,
) -> Result<Edit, Refusal> {
    if value.is_some() {
        return Err(unclear("A place of the text takes `content`, not `value`.").at("value"));
    }
    let Some(text) = content else {
        return Err(
            unclear("Give the new text as `content`; an empty one removes the place.")
                .at("content"),
        );
    };
    if matches!(&part, Part::Text(text) if text.is_empty()) {
        return Err(unclear("The text to find is empty.").at("find"));
    }
    let position = match position {
        None | Some(Position::Replace) => escurel_core::Position::Replace,
        Some(Position::Before) => escurel_core::Position::Before,
        Some(Position::After) => escurel_core::Position::After,
    };
    Ok(Edit::Passage {
        part,
        position,
        text,
    })
}
