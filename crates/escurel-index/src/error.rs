//! What can go wrong with derived data.

use std::path::{Path, PathBuf};

/// Every cause has a stable code; none of them loses anything, because the
/// index can be built again.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    #[error("{what} {path}: {source}")]
    Io {
        what: &'static str,
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("{path} is damaged: {reason}")]
    Damaged { path: PathBuf, reason: String },
    #[error("{path} was written by another version ({found})")]
    OtherVersion { path: PathBuf, found: u32 },
    #[error("{what}: {source}")]
    Sql {
        what: &'static str,
        source: duckdb::Error,
    },
}

impl IndexError {
    pub fn code(&self) -> &'static str {
        match self {
            IndexError::Io { .. } => "index_io",
            IndexError::Damaged { .. } => "index_damaged",
            IndexError::OtherVersion { .. } => "index_other_version",
            IndexError::Sql { .. } => "index_sql",
        }
    }

    pub(crate) fn io(what: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> IndexError {
        let path = path.to_owned();
        move |source| IndexError::Io { what, path, source }
    }

    pub(crate) fn sql(what: &'static str) -> impl Fn(duckdb::Error) -> IndexError {
        move |source| IndexError::Sql { what, source }
    }
}
