//! The inputs that one run of a skill takes.
//!
//! A parameter is never dropped because of its kind: a missing field in a
//! generated form loses data, a text field only checks less.

use serde_json::{Map, Value};

use super::{Param, ParamKind, text, truthy};
use crate::issue::Issue;

const LOCATION: &str = "frontmatter.params";

pub(super) fn read(value: Option<&Value>, issues: &mut Vec<Issue>) -> Vec<Param> {
    match value {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(items)) => items
            .iter()
            .filter_map(|item| from_list(item, issues))
            .collect(),
        Some(Value::Object(map)) => map
            .iter()
            .filter_map(|(name, v)| from_mapping(name, v, issues))
            .collect(),
        Some(_) => {
            malformed("`params` is neither a list nor a mapping.", issues);
            Vec::new()
        }
    }
}

fn from_list(item: &Value, issues: &mut Vec<Issue>) -> Option<Param> {
    let Value::Object(map) = item else {
        malformed("An entry of `params` is no mapping.", issues);
        return None;
    };
    let Some(name) = text(map.get("name")) else {
        malformed("An entry of `params` has no name.", issues);
        return None;
    };
    Some(param(name, map, issues))
}

fn from_mapping(name: &str, value: &Value, issues: &mut Vec<Issue>) -> Option<Param> {
    let name = name.trim();
    if name.is_empty() {
        malformed("An entry of `params` has no name.", issues);
        return None;
    }
    match value {
        Value::Object(map) => Some(param(name.to_owned(), map, issues)),
        Value::Null => Some(param(name.to_owned(), &Map::new(), issues)),
        // `window: string` is short for its kind.
        Value::String(_) => {
            let map = Map::from_iter([("kind".to_owned(), value.clone())]);
            Some(param(name.to_owned(), &map, issues))
        }
        _ => {
            malformed(&format!("The parameter `{name}` is no mapping."), issues);
            None
        }
    }
}

fn param(name: String, map: &Map<String, Value>, issues: &mut Vec<Issue>) -> Param {
    let declared = map
        .get("kind")
        .filter(|v| !v.is_null())
        .or_else(|| map.get("type"))
        .filter(|v| !v.is_null());
    let kind = declared.map_or(Some(ParamKind::String), kind);
    if kind.is_none() {
        let message = format!(
            "The parameter `{name}` has the unknown kind {}; it is read as string.",
            declared.unwrap_or(&Value::Null)
        );
        issues.push(
            Issue::new("frontmatter_param_kind_unknown", LOCATION, message)
                .suggest("Use string, integer or boolean."),
        );
    }
    Param {
        name,
        kind: kind.unwrap_or(ParamKind::String),
        required: map.get("required").is_some_and(truthy),
        label: text(map.get("label")),
        description: text(map.get("description")),
    }
}

fn kind(value: &Value) -> Option<ParamKind> {
    match text(Some(value))?.to_lowercase().as_str() {
        "string" | "text" => Some(ParamKind::String),
        "integer" | "int" => Some(ParamKind::Integer),
        "boolean" | "bool" => Some(ParamKind::Boolean),
        _ => None,
    }
}

fn malformed(message: &str, issues: &mut Vec<Issue>) {
    let issue = Issue::new("frontmatter_params_malformed", LOCATION, message);
    issues.push(issue.suggest("Write entries such as `{name: window, kind: string}`."));
}
