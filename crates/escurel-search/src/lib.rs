//! Text search: which units of which pages fit some words best.
//!
//! Owns the text index, its in-memory delta, the reading of queries, fusion and
//! snippets. It never decides who may see what: the caller's [`Candidates`] are
//! asked before anything is ranked. Invariant: an answer holds only (page, seq)
//! pairs that were admitted, each unit at most once, and `k` of them whenever
//! `k` exist.

mod api;
mod index;

pub use api::{
    AdmitAll, Answer, Candidates, Doc, DocUnit, Generation, Hit, Lane, LaneState, MAX_K, MAX_TEXTS,
    OpenState, Query, SCHEMA_VERSION, SearchError, Stats, UnitBlock,
};
pub use index::{Opened, Snapshot, TextIndex};
