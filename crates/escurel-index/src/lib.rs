//! Everything that can be derived from the versions of pages and asked again:
//! the page directory in memory, which answers reads of the present in
//! microseconds, and a DuckDB file, which answers history, provenance and SQL.
//!
//! Refuses to own anything: both halves can be deleted and come back the same.
//! Knows neither callers nor rights; who may see a page is a predicate or a
//! set of page numbers passed in with the question.
//!
//! Invariant: names are resolved in one place, [`Directory::resolve`], when
//! they are read; link lists, search and the rows in DuckDB follow it.

mod bitmap;
mod directory;
mod duck;
mod entry;
mod error;
mod facts;
mod intern;
#[cfg(test)]
mod testing;
mod texts;
mod walk;

pub use bitmap::{Bitmap, PageNo};
pub use directory::{
    Cursor, Directory, Edge, Filter, FilterError, LinkCounts, Order, Resolution, Scope, Upserted,
    folder, join, stem, strip_md,
};
pub use duck::{
    AbandonedRow, BlockRow, Direction, DriftRow, Duck, DuckState, EdgeRow, HeadRow, PageRow,
    VersionChange, VersionRow,
};
pub use entry::{Entry, EntryDraft};
pub use error::IndexError;
pub use facts::{Facts, LinkFact, json_value};
pub use texts::Texts;
pub use walk::{Hop, MOST_HOPS, Walk, path_to};
