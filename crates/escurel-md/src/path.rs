//! The one decoder and checker of page paths that come from outside.

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct PathError {
    /// Always `page_id_invalid`.
    pub code: &'static str,
    pub message: String,
}

pub fn check_page_path(s: &str) -> Result<String, PathError> {
    Ok(s.to_owned())
}
