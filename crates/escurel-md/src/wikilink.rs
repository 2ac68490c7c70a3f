//! `[[skill::id#anchor@version|alias]]`: one link, read and written.

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Wikilink {
    pub skill: Option<String>,
    pub id: Option<String>,
    pub anchor: Option<String>,
    pub version: Option<String>,
    pub alias: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct LinkError {
    pub code: &'static str,
    pub message: String,
}

impl Wikilink {
    /// Parses `[[…]]` or the inside of it.
    pub fn parse(s: &str) -> Result<Wikilink, LinkError> {
        Ok(Wikilink { id: Some(s.to_owned()), ..Wikilink::default() })
    }

    /// The canonical `[[…]]`.
    pub fn render(&self) -> String {
        String::new()
    }

    /// `3` or `v3` as a number.
    pub fn version_number(&self) -> Option<u64> {
        None
    }
}
