//! Failures of the parts, told in the system's own codes.

use escurel_index::IndexError;
use escurel_search::SearchError;
use escurel_search::vectors::CacheError;
use escurel_store::StoreError;

use crate::{Code, Refusal};

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Refusal {
        let code = match error.code() {
            "disk_full" => Code::DiskFull,
            "journal_broken" => Code::JournalBroken,
            "store_locked" | "lock_held" => Code::StoreLocked,
            "read_only" => Code::ReadOnly,
            "not_supported" => Code::NotSupported,
            "content_erased" => Code::ContentErased,
            "page_id_invalid" | "bad_path" => Code::PageIdInvalid,
            _ => Code::Io,
        };
        Refusal::new(code, sentence(&error.to_string()))
    }
}

impl From<IndexError> for Refusal {
    fn from(error: IndexError) -> Refusal {
        Refusal::new(Code::IndexDamaged, sentence(&error.to_string()))
    }
}

impl From<CacheError> for Refusal {
    fn from(error: CacheError) -> Refusal {
        Refusal::new(Code::Io, error.to_string())
    }
}

impl From<SearchError> for Refusal {
    fn from(error: SearchError) -> Refusal {
        let code = match error.code() {
            "invalid_query" => Code::InvalidArgument,
            "index_damaged" => Code::IndexDamaged,
            _ => Code::Io,
        };
        Refusal::new(code, sentence(&error.to_string()))
    }
}

impl From<std::io::Error> for Refusal {
    fn from(error: std::io::Error) -> Refusal {
        let code = match error.kind() {
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => Code::DiskFull,
            std::io::ErrorKind::ReadOnlyFilesystem => Code::ReadOnly,
            _ => Code::Io,
        };
        Refusal::new(code, sentence(&error.to_string()))
    }
}

/// Capital letter first, full stop last.
pub(crate) fn sentence(text: &str) -> String {
    let text = text.trim();
    let mut chars = text.chars();
    let mut sentence: String = chars
        .next()
        .map(|c| c.to_uppercase().chain(chars).collect())
        .unwrap_or_default();
    if !sentence.ends_with(['.', '!', '?']) {
        sentence.push('.');
    }
    sentence
}
