//! Frontmatter filters.

#[derive(Clone, Debug, Default)]
pub struct Filter {}

/// Why a filter cannot be asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct FilterError {
    /// `unknown_key`, `unknown_operator` or `type_mismatch`.
    pub code: &'static str,
    pub key: String,
    /// The nearest known key or operator.
    pub nearest: Option<String>,
    pub message: String,
}
