//! What a skill page declares about its instances and its runs.
//!
//! Never fails: what cannot be read degrades in the safe direction and is
//! reported. Invariant: an access list that cannot be read grants nothing.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

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
    let _ = frontmatter;
    None
}
