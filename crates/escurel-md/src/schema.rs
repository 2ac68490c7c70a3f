//! What a skill page declares about its instances and its runs.
//!
//! Never fails: what cannot be read degrades in the safe direction and is
//! reported. Invariant: an access list that cannot be read grants nothing.

mod params;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::issue::Issue;

#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct SkillSchema {
    pub id: String,
    pub description: String,
    pub required_frontmatter: Vec<String>,
    pub optional_frontmatter: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub autonomy: Option<Autonomy>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub params: Vec<Param>,
    pub backend: Backend,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visibility: Option<Visibility>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner_field: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acl: Option<Acl>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acl_defaults: Option<Acl>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layer: Option<String>,
    #[serde(default)]
    pub promotable: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Autonomy {
    Auto,
    Review,
    Confirm,
}

/// An input of one run of a skill.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct Param {
    pub name: String,
    pub kind: ParamKind,
    pub required: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ParamKind {
    String,
    Integer,
    Boolean,
}

/// Where the instances of a skill live.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct Backend {
    pub kind: BackendKind,
    /// The keys of the `backend` block beside `kind`; an object.
    pub config: Value,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BackendKind {
    Markdown,
    SqlView,
    Document,
    Openapi,
    Mcp,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Visibility {
    Public,
    Owner,
}

/// Group names per verb; an absent verb falls through, an empty list denies.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq, Eq)]
pub struct Acl {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub create: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delete: Option<Vec<String>>,
}

impl SkillSchema {
    pub fn is_event_typed(&self) -> bool {
        self.required_frontmatter.iter().any(|k| k == "at")
    }
}

/// The `acl` block of an instance page.
pub fn instance_acl(frontmatter: &Map<String, Value>) -> Option<Acl> {
    acl(frontmatter.get("acl")?).0
}

/// Reads the declarations of the skill `id`; what is wrong goes to `issues`.
pub(crate) fn read(id: &str, map: &Map<String, Value>, issues: &mut Vec<Issue>) -> SkillSchema {
    SkillSchema {
        id: id.to_owned(),
        description: text(map.get("description")).unwrap_or_default(),
        required_frontmatter: names(map.get("required_frontmatter")),
        optional_frontmatter: names(map.get("optional_frontmatter")),
        autonomy: autonomy(map, issues),
        params: params::read(map.get("params"), issues),
        backend: backend(map.get("backend"), issues),
        visibility: visibility(map, issues),
        owner_field: text(map.get("owner_field")),
        acl: map.get("acl").and_then(|v| acl(v).0),
        acl_defaults: map.get("acl_defaults").and_then(|v| acl(v).0),
        layer: text(map.get("layer")),
        promotable: map.get("promotable").is_some_and(truthy),
    }
}

/// Says what is wrong with the access lists of any page.
pub(crate) fn check_acl(map: &Map<String, Value>, issues: &mut Vec<Issue>) {
    for key in ["acl", "acl_defaults"] {
        if let Some((_, Some(problem))) = map.get(key).map(acl) {
            issues.push(Issue::new(
                "acl_malformed",
                format!("frontmatter.{key}"),
                problem,
            ));
        }
    }
}

/// An unreadable block or verb denies: an empty list matches no group.
fn acl(value: &Value) -> (Option<Acl>, Option<String>) {
    let deny = || Some(Vec::new());
    let Value::Object(map) = value else {
        if value.is_null() {
            return (None, None);
        }
        let acl = Acl {
            read: deny(),
            create: deny(),
            update: deny(),
            delete: deny(),
        };
        return (
            Some(acl),
            Some(
                "An access list is a mapping from read, create, update and delete to groups."
                    .to_owned(),
            ),
        );
    };
    let mut acl = Acl::default();
    let mut problem = None;
    for (verb, groups) in map {
        let slot = match verb.trim() {
            "read" => &mut acl.read,
            "create" => &mut acl.create,
            "update" => &mut acl.update,
            "delete" => &mut acl.delete,
            _ => {
                problem.get_or_insert_with(|| {
                    format!("`{verb}` is none of read, create, update, delete.")
                });
                continue;
            }
        };
        match groups_of(groups) {
            Some(groups) => *slot = groups,
            None => {
                *slot = deny();
                problem.get_or_insert_with(|| {
                    format!("The groups of `{verb}` cannot be read, so nobody has this right.")
                });
            }
        }
    }
    (Some(acl), problem)
}

/// Outer none: unreadable. Inner none: nothing declared.
fn groups_of(value: &Value) -> Option<Option<Vec<String>>> {
    match value {
        Value::Null => Some(None),
        Value::Array(items) => items
            .iter()
            .map(|v| text(Some(v)))
            .collect::<Option<Vec<_>>>()
            .map(Some),
        other => text(Some(other)).map(|group| Some(vec![group])),
    }
}

/// Only the exact word may switch a human gate off.
fn autonomy(map: &Map<String, Value>, issues: &mut Vec<Issue>) -> Option<Autonomy> {
    let value = map.get("autonomy").filter(|v| !v.is_null())?;
    let word = text(Some(value)).map(|w| w.to_lowercase());
    match word.as_deref() {
        Some("auto") => Some(Autonomy::Auto),
        Some("review") => Some(Autonomy::Review),
        Some("confirm") => Some(Autonomy::Confirm),
        _ => {
            let message = format!(
                "`autonomy` is {value}, which is no known policy; the skill is held for review."
            );
            let issue = Issue::new(
                "frontmatter_autonomy_unknown",
                "frontmatter.autonomy",
                message,
            );
            issues.push(issue.suggest("Use auto, review or confirm."));
            None
        }
    }
}

/// A word that cannot be read protects rather than publishes.
fn visibility(map: &Map<String, Value>, issues: &mut Vec<Issue>) -> Option<Visibility> {
    let value = map.get("visibility").filter(|v| !v.is_null())?;
    match text(Some(value)).map(|w| w.to_lowercase()).as_deref() {
        Some("public") => Some(Visibility::Public),
        Some("owner") => Some(Visibility::Owner),
        _ => {
            let message = format!("`visibility` is {value}; instances are treated as private.");
            let issue = Issue::new(
                "frontmatter_value_unreadable",
                "frontmatter.visibility",
                message,
            );
            issues.push(issue.suggest("Use public or owner."));
            Some(Visibility::Owner)
        }
    }
}

fn backend(value: Option<&Value>, issues: &mut Vec<Issue>) -> Backend {
    let empty = || Value::Object(Map::new());
    let Some(value) = value.filter(|v| !v.is_null()) else {
        return Backend {
            kind: BackendKind::Markdown,
            config: empty(),
        };
    };
    let (word, config) = match value {
        Value::Object(map) => {
            let mut config = map.clone();
            (
                config
                    .shift_remove("kind")
                    .as_ref()
                    .and_then(|k| text(Some(k))),
                Value::Object(config),
            )
        }
        other => (text(Some(other)), empty()),
    };
    let kind = match word.as_deref().map(str::to_lowercase).as_deref() {
        Some("markdown") => Some(BackendKind::Markdown),
        Some("sql_view") => Some(BackendKind::SqlView),
        Some("document") => Some(BackendKind::Document),
        Some("openapi") => Some(BackendKind::Openapi),
        Some("mcp") => Some(BackendKind::Mcp),
        _ => None,
    };
    if kind.is_none() {
        let message = format!(
            "`backend` has kind {:?}; its instances are treated as markdown.",
            word.unwrap_or_default()
        );
        let issue = Issue::new("backend_malformed", "frontmatter.backend", message);
        issues.push(issue.suggest("Use markdown, sql_view, document, openapi or mcp."));
    }
    Backend {
        kind: kind.unwrap_or(BackendKind::Markdown),
        config,
    }
}

/// A scalar as trimmed text; nothing for an empty one, a list or a mapping.
pub(crate) fn text(value: Option<&Value>) -> Option<String> {
    let text = match value? {
        Value::String(s) => s.trim().to_owned(),
        Value::Number(n) => n.to_string(),
        Value::Bool(b) => b.to_string(),
        Value::Null | Value::Array(_) | Value::Object(_) => return None,
    };
    (!text.is_empty()).then_some(text)
}

/// A list of names; one name or names with commas count as a list.
pub(crate) fn names(value: Option<&Value>) -> Vec<String> {
    match value {
        Some(Value::Array(items)) => items.iter().filter_map(|v| text(Some(v))).collect(),
        Some(Value::String(s)) => s
            .split(',')
            .filter_map(|v| text(Some(&Value::String(v.to_owned()))))
            .collect(),
        other => text(other).into_iter().collect(),
    }
}

pub(crate) fn truthy(value: &Value) -> bool {
    match value {
        Value::Bool(b) => *b,
        Value::String(s) => matches!(
            s.trim().to_ascii_lowercase().as_str(),
            "true" | "yes" | "on"
        ),
        _ => false,
    }
}
