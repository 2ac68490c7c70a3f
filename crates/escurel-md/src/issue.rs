//! Findings about pages and the one table of their codes.
//!
//! Invariant: every code that this crate emits stands in [`CODES`].

use serde::Serialize;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    Error,
    Warning,
}

/// One finding. `location` is `line:32 col:8` or `frontmatter.at`.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct Issue {
    pub severity: Severity,
    pub code: &'static str,
    pub location: String,
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
}

/// A row of the code table.
#[derive(Clone, Copy, Debug)]
pub struct CodeInfo {
    pub code: &'static str,
    pub severity: Severity,
    pub meaning: &'static str,
    pub next_step: &'static str,
}

const fn error(code: &'static str, meaning: &'static str, next_step: &'static str) -> CodeInfo {
    CodeInfo {
        code,
        severity: Severity::Error,
        meaning,
        next_step,
    }
}

const fn warning(code: &'static str, meaning: &'static str, next_step: &'static str) -> CodeInfo {
    CodeInfo {
        code,
        severity: Severity::Warning,
        meaning,
        next_step,
    }
}

pub const CODES: &[CodeInfo] = &[
    error(
        "acl_malformed",
        "An `acl` block cannot be read; what it cannot express is denied.",
        "Write each verb as a list of group names.",
    ),
    error(
        "anchor_missing",
        "The linked page exists but has no such heading or block.",
        "Link to a heading or block id of that page.",
    ),
    error(
        "backend_malformed",
        "A `backend` block names no known kind.",
        "Use markdown, sql_view, document, openapi or mcp.",
    ),
    warning(
        "body_unparsable",
        "The body defeats the markdown parser and is read as plain text.",
        "Simplify the place that is nested most deeply.",
    ),
    error(
        "duplicate_id",
        "Another page has the same skill and id, so links to them are ambiguous.",
        "Give all but one of them another id.",
    ),
    error(
        "frontmatter_autonomy_unknown",
        "`autonomy` is none of the known policies and is ignored.",
        "Use auto, review or confirm.",
    ),
    error(
        "frontmatter_params_malformed",
        "`params` is no list or mapping, or an entry has no name.",
        "Give a list of entries with `name`, or a mapping from name to attributes.",
    ),
    error(
        "frontmatter_unclosed",
        "A header is opened and never closed; the whole file is read as body.",
        "Close the header with a line `---`.",
    ),
    error(
        "frontmatter_unparsable",
        "The header is not readable YAML; the page is body only.",
        "Correct the named line.",
    ),
    error(
        "identity_unclear",
        "`skill`, `id` or `type` is given more than once.",
        "Keep one of the lines.",
    ),
    error(
        "unknown_skill",
        "No skill of this name exists.",
        "Create the skill page or correct the name.",
    ),
    error(
        "version_unknown",
        "The linked page has no such version.",
        "Link to a version that exists, or to the head.",
    ),
    error(
        "wikilink_malformed",
        "A wikilink cannot be read.",
        "Write `[[skill::id#anchor@version|alias]]`.",
    ),
    warning(
        "frontmatter_at_unreadable",
        "`at` is neither an instant nor a date.",
        "Use RFC 3339 or YYYY-MM-DD.",
    ),
    warning(
        "frontmatter_duplicate_key",
        "A key is given more than once; the last one holds.",
        "Keep one of the lines.",
    ),
    warning(
        "frontmatter_param_kind_unknown",
        "A parameter's kind is unknown and read as string.",
        "Use string, integer or boolean.",
    ),
    warning(
        "frontmatter_required_key_missing",
        "A key that the skill requires is missing.",
        "Add the key.",
    ),
    warning(
        "frontmatter_value_unreadable",
        "A value has a shape that the key cannot hold; it is ignored.",
        "Correct the value.",
    ),
    warning(
        "identity_path_mismatch",
        "The path names another skill or id than the header.",
        "Move the file or correct the header.",
    ),
    warning(
        "link_ambiguous",
        "More than one page answers to the link.",
        "Write the typed form `[[skill::id]]`.",
    ),
    warning(
        "link_unresolved",
        "No page answers to the link.",
        "Create the page or correct the link.",
    ),
    warning(
        "not_utf8",
        "The file is not UTF-8; it is shown as far as it can be read and is read-only.",
        "Save it as UTF-8.",
    ),
];

/// The row of a code; unknown codes do not occur (a test walks the emitters).
pub(crate) fn info(code: &str) -> Option<&'static CodeInfo> {
    CODES.iter().find(|c| c.code == code)
}

impl Issue {
    /// A finding with the severity that the table gives its code.
    pub fn new(
        code: &'static str,
        location: impl Into<String>,
        message: impl Into<String>,
    ) -> Issue {
        let severity = info(code).map_or(Severity::Error, |c| c.severity);
        Issue {
            severity,
            code,
            location: location.into(),
            message: message.into(),
            suggestion: None,
        }
    }

    pub fn suggest(mut self, suggestion: impl Into<String>) -> Issue {
        self.suggestion = Some(suggestion.into());
        self
    }
}

/// `line:32 col:8`
pub(crate) fn at(line: u32, col: u32) -> String {
    format!("line:{line} col:{col}")
}
