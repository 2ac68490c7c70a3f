//! Setting one frontmatter key without touching any other byte.

use serde_json::Value;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct EditError {
    pub code: &'static str,
    pub message: String,
}

pub fn set_frontmatter_key(bytes: &[u8], key: &str, value: Option<&Value>) -> Result<Vec<u8>, EditError> {
    let _ = (key, value);
    Ok(bytes.to_vec())
}
