//! The words callers speak: documents in, queries in, answers out. Plain data
//! only; nothing here knows tantivy. A page is a dense number, a version is the
//! journal sequence it was indexed at, and the pair names a text for ever.

use std::path::PathBuf;
use std::sync::Arc;

use crate::audience::Audience;
use crate::embed::QueryVectors;
use crate::lanes::Why;
use crate::rerank::Reranker;

/// What one version of a page gives to the index.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Doc {
    pub page: u32,
    pub seq: u64,
    pub is_skill: bool,
    pub skill: String,
    pub title: String,
    pub aliases: Vec<String>,
    pub tags: Vec<String>,
    /// Frontmatter values as text.
    pub fields_text: String,
    /// Validity start in microseconds; the end is open.
    pub from: i64,
    pub units: Vec<DocUnit>,
}

/// One retrieval unit of a page: what a hit quotes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DocUnit {
    /// The heading path above the unit, as text.
    pub headings: String,
    pub text: String,
    pub blocks: Vec<UnitBlock>,
}

/// A block inside a unit's text.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct UnitBlock {
    pub anchor: String,
    /// Byte offset in the unit's `text`.
    pub start: u32,
}

/// The candidate filter: asked once per matching document before it can take
/// part in ranking. It must answer `false` for a sequence that is not the one
/// the caller wants to see, so that stale text never comes back.
pub trait Candidates: Sync {
    fn admits(&self, page: u32, seq: u64) -> bool;

    /// The start of the page's day in microseconds, for `after:` and `before:`.
    fn day(&self, _page: u32) -> Option<i64> {
        None
    }
}

/// Everything passes: for tests and tools that index one version per page.
#[derive(Debug, Clone, Copy, Default)]
pub struct AdmitAll;

impl Candidates for AdmitAll {
    fn admits(&self, _page: u32, _seq: u64) -> bool {
        true
    }
}

/// One search.
pub struct Query<'a> {
    /// One to eight phrasings; several are joined by reciprocal rank fusion.
    pub texts: &'a [String],
    /// Hits wanted, at most [`MAX_K`].
    pub k: usize,
    /// One hit per page instead of one per unit.
    pub by_page: bool,
    pub candidates: &'a dyn Candidates,
    /// Whose texts count in scores; `None`: all living ones.
    pub audience: Option<Arc<dyn Audience>>,
    pub only_page: Option<u32>,
    /// The texts' vectors; without them units are found by words only.
    pub vectors: Option<QueryVectors>,
    pub reranker: Option<&'a dyn Reranker>,
}

/// The largest `k` an answer is computed for.
pub const MAX_K: usize = 200;

/// The bytes of a query text that are read, by words and by meaning.
pub const MAX_QUERY_BYTES: usize = 8 * 1024;

/// The largest number of phrasings in one query.
pub const MAX_TEXTS: usize = 8;

#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    pub page: u32,
    /// The block of the best window inside the unit.
    pub anchor: Option<String>,
    pub snippet: String,
    /// Byte ranges of matched words in `snippet`, ascending and disjoint.
    pub matches: Vec<(u32, u32)>,
    /// Comparable within one answer only.
    pub score: f32,
    pub why: Why,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answer {
    pub hits: Vec<Hit>,
    /// What the reader should know about how the query was read.
    pub notes: Vec<String>,
}

/// The version of the index's layout and text analysis. Growing it rebuilds
/// every index at the next open.
pub const SCHEMA_VERSION: u32 = 2;

/// Which index the caller expects to find: files of another layout or another
/// store are not opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Generation {
    pub schema_version: u32,
    pub id: u128,
}

impl Generation {
    /// The current layout, for the store named by `id`.
    pub fn current(id: u128) -> Self {
        Generation {
            schema_version: SCHEMA_VERSION,
            id,
        }
    }
}

/// What an open found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OpenState {
    Intact,
    Created,
    /// The old files stand at the path; the reason is for logs and health.
    MovedAside(PathBuf, String),
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stats {
    pub segments: usize,
    /// Units in the files that are not deleted.
    pub docs: u64,
    /// Units in memory that are not in the files yet.
    pub delta_docs: u64,
    pub bytes_on_disk: u64,
}

/// Why the index could not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// The files cannot be read: move them aside and rebuild.
    #[error("index_damaged: {0}. Rebuild the text index.")]
    Damaged(String),
    #[error("index_io: {0}")]
    Io(String),
    #[error("index_locked: another process writes this index")]
    Locked,
    #[error("invalid_query: {0}")]
    InvalidQuery(String),
}

impl SearchError {
    pub fn code(&self) -> &'static str {
        match self {
            SearchError::Damaged(_) => "index_damaged",
            SearchError::Io(_) => "index_io",
            SearchError::Locked => "index_locked",
            SearchError::InvalidQuery(_) => "invalid_query",
        }
    }
}
