//! Values of a shape that their key cannot hold.
//!
//! Such a value is ignored in favour of the key's default, which would be a
//! silent change of what the page is: so it is reported, with its line.

use serde_json::Value;

use crate::issue::{self, Issue};
use crate::lines::Lines;
use crate::page::Layout;
use crate::yaml::Header;

const TEXTS: [&str; 7] = [
    "type",
    "skill",
    "id",
    "title",
    "description",
    "layer",
    "scenario",
];
const LISTS: [&str; 2] = ["aliases", "tags"];

pub(super) fn check(
    header: &Header,
    layout: Layout,
    lines: &mut Lines<'_>,
    issues: &mut Vec<Issue>,
) {
    for (key, value) in &header.map {
        let Some((message, instead)) = problem(key, value, layout) else {
            continue;
        };
        let place = header.keys.iter().rfind(|k| k.name == *key);
        let location = place.map_or_else(
            || format!("frontmatter.{key}"),
            |k| {
                let (line, col) = lines.position(k.span.start);
                issue::at(line, col)
            },
        );
        let issue = Issue::new("frontmatter_value_unreadable", location, message);
        issues.push(issue.suggest(instead));
    }
}

fn problem(key: &str, value: &Value, layout: Layout) -> Option<(String, String)> {
    if LISTS.contains(&key) {
        let bad = match value {
            Value::Array(items) => items.iter().any(is_nested),
            value => value.is_object(),
        };
        let message = format!("`{key}` is not a list of names; what cannot be read is ignored.");
        return bad.then(|| (message, format!("Write `{key}: [one, two]`.")));
    }
    if TEXTS.contains(&key) && is_nested(value) {
        let shape = if value.is_array() { "list" } else { "mapping" };
        let message = format!("`{key}` is a {shape} and is ignored.");
        return Some((message, format!("Write one text: `{key}: …`.")));
    }
    match value {
        // In a foreign vault `type` may mean anything.
        Value::String(word) if key == "type" && layout == Layout::Tenant => unknown_type(word),
        _ => None,
    }
}

/// What is wrong with a `type` that is neither of the two.
pub(crate) fn unknown_type(word: &str) -> Option<(String, String)> {
    let known = matches!(word.trim(), "" | "skill" | "instance");
    (!known).then(|| {
        (
            format!("`type` is `{word}`; the page is read as an instance."),
            "Use skill or instance.".to_owned(),
        )
    })
}

fn is_nested(value: &Value) -> bool {
    value.is_array() || value.is_object()
}
