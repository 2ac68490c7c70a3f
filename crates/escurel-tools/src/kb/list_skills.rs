use escurel_core::Refusal;
use escurel_core::api as core;
use escurel_md as md;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::spec::{Cli, Effect, Execution, Quota, Run, Scope, Spec};
use crate::table::{Table, cell};
use crate::tool::{Call, Tool};

/// Lists the kinds of pages there are and what each kind requires.
///
/// Call it once at the start: skill names are what `skill`, `skill_id` and
/// [[skill::id]] mean everywhere else, and the header keys are what `filter`
/// can ask for. The rules of a skill in full stand on its page; expand its
/// `page_id`. To list the pages of one skill use list_instances.
#[derive(Deserialize, JsonSchema)]
pub struct ListSkills {}

/// The skills that you may see.
#[derive(Serialize, JsonSchema)]
pub struct Skills {
    /// By id.
    skills: Vec<Skill>,
}

/// A kind of page.
#[derive(Serialize, JsonSchema)]
struct Skill {
    /// The skill's name.
    id: String,
    /// What its pages are for.
    description: String,
    /// The skill's own page; null for a skill that is used and not declared.
    page_id: Option<String>,
    /// How many pages of it you may read.
    instances: usize,
    /// Header keys that every page of it must have.
    required_frontmatter: Vec<String>,
    /// Header keys that its pages may have.
    optional_frontmatter: Vec<String>,
    /// True when its pages are dated events: `at` is required.
    is_event_typed: bool,
    /// Whether a person has to approve what follows from the skill. Hold for review when it is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    autonomy: Option<Autonomy>,
    /// What one run of the skill takes; left out when nothing is declared.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    params: Vec<Param>,
    backend: Backend,
    capabilities: Capabilities,
    /// `owner`: its pages are for their owner only.
    #[serde(skip_serializing_if = "Option::is_none")]
    visibility: Option<Visibility>,
    /// The header key that names a page's owner.
    #[serde(skip_serializing_if = "Option::is_none")]
    owner_field: Option<String>,
    /// Who may do what with its pages; only administrators see it.
    #[serde(skip_serializing_if = "Option::is_none")]
    acl: Option<Acl>,
    /// `overlay`: yours to edit. `base@<pack>@<version>`: from a pack, read-only.
    layer: String,
    /// The pack's skill that this one stands in front of.
    #[serde(skip_serializing_if = "Option::is_none")]
    shadows: Option<String>,
}

#[derive(Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Autonomy {
    Auto,
    Review,
    Confirm,
}

/// An input of one run.
#[derive(Serialize, JsonSchema)]
struct Param {
    /// The name under which the value is passed.
    name: String,
    kind: ParamKind,
    /// True when a run needs it.
    required: bool,
    /// What a form shows; the name when it is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<String>,
    /// What the value means.
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
}

/// The form field it needs.
#[derive(Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ParamKind {
    String,
    Integer,
    Boolean,
}

/// Where the skill's pages have their data.
#[derive(Serialize, JsonSchema)]
struct Backend {
    kind: BackendKind,
}

#[derive(Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum BackendKind {
    Markdown,
    SqlView,
    Document,
    Openapi,
    Mcp,
}

/// What can be done with the skill's pages.
#[derive(Serialize, JsonSchema)]
struct Capabilities {
    /// Their text can be edited.
    writable: bool,
    /// What a search hit is.
    granularity: super::search::Granularity,
    search: SearchKind,
    /// Several people can edit a page at once.
    supports_crdt: bool,
}

/// How search reaches the data.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum SearchKind {
    Hybrid,
    LateMaterialized,
    None,
}

#[derive(Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Visibility {
    Public,
    Owner,
}

/// Group names per action; an action that is left out follows the default.
#[derive(Serialize, JsonSchema)]
struct Acl {
    /// Groups that may read.
    #[serde(skip_serializing_if = "Option::is_none")]
    read: Option<Vec<String>>,
    /// Groups that may add pages.
    #[serde(skip_serializing_if = "Option::is_none")]
    create: Option<Vec<String>>,
    /// Groups that may change pages.
    #[serde(skip_serializing_if = "Option::is_none")]
    update: Option<Vec<String>>,
    /// Groups that may delete pages.
    #[serde(skip_serializing_if = "Option::is_none")]
    delete: Option<Vec<String>>,
}

impl Tool for ListSkills {
    const SPEC: Spec = Spec {
        name: "list_skills",
        title: "List skills",
        aliases: &[],
        scope: Scope::Agent,
        execution: Execution::Deterministic,
        effect: Effect::Read,
        quota: Quota::Query,
        run: Run::Inline,
        argument_aliases: &[],
        numbered: &[],
        examples: &[("all of them", "{}")],
        cli: Cli {
            positional: &[],
            from_file: &[],
            table,
        },
    };
    type Output = Skills;

    fn call(self, cx: &Call<'_>) -> Result<Skills, Refusal> {
        // Group names tell who works on what, so they are for administrators.
        let admin = cx.caller.is_admin();
        let rows = cx.kb.list_skills(cx.caller)?;
        Ok(Skills {
            skills: rows.into_iter().map(|row| Skill::of(row, admin)).collect(),
        })
    }
}

impl Skill {
    fn of(row: core::SkillRow, admin: bool) -> Skill {
        let schema = &row.schema;
        let backend = BackendKind::from(schema.backend.kind);
        Skill {
            id: schema.id.clone(),
            description: schema.description.clone(),
            page_id: row.page_id,
            instances: row.instances,
            required_frontmatter: schema.required_frontmatter.clone(),
            optional_frontmatter: schema.optional_frontmatter.clone(),
            is_event_typed: schema.is_event_typed(),
            autonomy: schema.autonomy.map(Autonomy::from),
            params: schema.params.iter().map(Param::from).collect(),
            backend: Backend { kind: backend },
            capabilities: Capabilities::of(backend),
            visibility: schema.visibility.map(Visibility::from),
            owner_field: schema.owner_field.clone(),
            acl: schema.acl.as_ref().filter(|_| admin).map(Acl::from),
            layer: schema.layer.clone().unwrap_or_else(|| "overlay".to_owned()),
            shadows: row.shadows,
        }
    }
}

impl Capabilities {
    fn of(backend: BackendKind) -> Capabilities {
        use super::search::Granularity::{Block, Page};
        let (writable, granularity, search) = match backend {
            BackendKind::Markdown => (true, Block, SearchKind::Hybrid),
            BackendKind::Document => (false, Block, SearchKind::Hybrid),
            BackendKind::SqlView => (false, Page, SearchKind::LateMaterialized),
            BackendKind::Openapi | BackendKind::Mcp => (false, Page, SearchKind::None),
        };
        Capabilities {
            writable,
            granularity,
            search,
            supports_crdt: writable,
        }
    }
}

impl From<md::BackendKind> for BackendKind {
    fn from(kind: md::BackendKind) -> BackendKind {
        match kind {
            md::BackendKind::Markdown => BackendKind::Markdown,
            md::BackendKind::SqlView => BackendKind::SqlView,
            md::BackendKind::Document => BackendKind::Document,
            md::BackendKind::Openapi => BackendKind::Openapi,
            md::BackendKind::Mcp => BackendKind::Mcp,
        }
    }
}

impl From<md::Autonomy> for Autonomy {
    fn from(autonomy: md::Autonomy) -> Autonomy {
        match autonomy {
            md::Autonomy::Auto => Autonomy::Auto,
            md::Autonomy::Review => Autonomy::Review,
            md::Autonomy::Confirm => Autonomy::Confirm,
        }
    }
}

impl From<md::Visibility> for Visibility {
    fn from(visibility: md::Visibility) -> Visibility {
        match visibility {
            md::Visibility::Public => Visibility::Public,
            md::Visibility::Owner => Visibility::Owner,
        }
    }
}

impl From<&md::Param> for Param {
    fn from(p: &md::Param) -> Param {
        let kind = match p.kind {
            md::ParamKind::String => ParamKind::String,
            md::ParamKind::Integer => ParamKind::Integer,
            md::ParamKind::Boolean => ParamKind::Boolean,
        };
        let (label, description) = (p.label.clone(), p.description.clone());
        Param {
            name: p.name.clone(),
            kind,
            required: p.required,
            label,
            description,
        }
    }
}

impl From<&md::Acl> for Acl {
    fn from(acl: &md::Acl) -> Acl {
        let md::Acl {
            read,
            create,
            update,
            delete,
        } = acl.clone();
        Acl {
            read,
            create,
            update,
            delete,
        }
    }
}

fn table(answer: &Value) -> Table {
    let columns = [
        ("Skill", "/id"),
        ("Pages", "/instances"),
        ("Requires", "/required_frontmatter"),
        ("Description", "/description"),
    ];
    let table = Table::of(answer, "/skills", &columns);
    let pages = answer["skills"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|s| s["instances"].as_u64())
        .sum::<u64>();
    let skills = table.rows.len();
    table.footer(format!(
        "{skills} skills, {} pages",
        cell(Some(&pages.into()))
    ))
}
