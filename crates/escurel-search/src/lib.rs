//! Text search: which units of which pages fit some words best.
//!
//! Owns the text index, its in-memory delta, the reading of queries, fusion and
//! snippets. It never decides who may see what: the caller's [`Candidates`] are
//! asked before anything is ranked. Invariant: an answer holds only (page, seq)
//! pairs that were admitted, each unit at most once, and `k` of them whenever
//! `k` exist.

mod analysis;
mod api;
mod audience;
mod census;
mod dates;
mod embed;
pub mod eval;
mod house;
mod index;
mod lanes;
mod open;
mod query;
mod rerank;
mod schema;
mod snippet;
pub mod vectors;
mod view;

pub use api::{
    AdmitAll, Answer, Candidates, Doc, DocUnit, Generation, Hit, MAX_K, MAX_QUERY_BYTES, MAX_TEXTS,
    OpenState, Query, SCHEMA_VERSION, SearchError, Stats, UnitBlock,
};
pub use audience::Audience;
pub use embed::{
    EmbedError, Embedder, EmbeddingGemma, Gemini, Local, OpenAi, Patience, Purpose, QueryVector,
    QueryVectors, RemoteSettings, SettingsError, quantised,
};
pub use index::{Opened, Snapshot, TextIndex};
pub use lanes::Why;
pub use rerank::Reranker;

/// Runs work on the index's files. tantivy asserts what it expects of them, so
/// a panic in there means damage, not a reason to end the process.
fn guard<T>(work: impl FnOnce() -> Result<T, SearchError>) -> Result<T, SearchError> {
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)) {
        Ok(result) => result,
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            Err(SearchError::Damaged(
                text.unwrap_or("a panic while reading").to_string(),
            ))
        }
    }
}

impl From<tantivy::TantivyError> for SearchError {
    fn from(error: tantivy::TantivyError) -> Self {
        use tantivy::TantivyError as E;
        match error {
            E::LockFailure(..) => SearchError::Locked,
            E::IoError(error) => from_io(&error),
            error @ (E::OpenDirectoryError(_) | E::OpenWriteError(_) | E::ErrorInThread(_)) => {
                SearchError::Io(error.to_string())
            }
            error => SearchError::Damaged(error.to_string()),
        }
    }
}

impl From<std::io::Error> for SearchError {
    fn from(error: std::io::Error) -> Self {
        from_io(&error)
    }
}

/// What the system refuses is no damage; what a reader of the files refuses, or
/// does not find, is.
fn from_io(error: &std::io::Error) -> SearchError {
    let refused = error.raw_os_error().is_some() && error.kind() != std::io::ErrorKind::NotFound;
    if refused {
        SearchError::Io(error.to_string())
    } else {
        SearchError::Damaged(error.to_string())
    }
}
