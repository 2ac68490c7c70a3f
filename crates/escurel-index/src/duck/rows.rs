//! What goes into and comes out of DuckDB.

use std::path::PathBuf;
use std::sync::Arc;

use escurel_md::{BlockKind, LinkKind};
use escurel_store::Uid;

use crate::{Facts, PageNo};

/// One version of a page, from one journal record.
#[derive(Clone, Debug)]
pub struct VersionChange {
    pub no: PageNo,
    pub uid: Uid,
    pub version: u64,
    pub seq: u64,
    pub path: Arc<str>,
    /// Start of validity, UTC microseconds.
    pub from: i64,
    pub at: i64,
    pub actor: Arc<str>,
    pub origin: Box<str>,
    /// Hex name of the content object; empty for a tombstone.
    pub object: String,
    pub bytes: u64,
    /// None: the page was deleted.
    pub content: Option<Arc<Facts>>,
    pub blocks: Vec<BlockRow>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockRow {
    pub anchor: String,
    pub kind: BlockKind,
    pub line: u32,
}

/// How a DuckDB file was found at open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DuckState {
    Intact,
    Created,
    /// What was there could not be used; a fresh file takes its place.
    MovedAside {
        to: PathBuf,
        reason: String,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionRow {
    pub no: PageNo,
    pub uid: Uid,
    pub version: u64,
    pub seq: u64,
    pub from: i64,
    /// End of validity, exclusive; none while it is the newest.
    pub to: Option<i64>,
    pub at: i64,
    pub actor: String,
    pub origin: String,
    pub path: String,
    pub object: String,
    pub bytes: u64,
    pub deleted: bool,
}

/// What the index says of the page version that held at some time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageRow {
    pub no: PageNo,
    pub version: u64,
    pub path: String,
    pub skill: String,
    pub id: String,
    pub title: String,
    pub at: Option<i64>,
    /// JSON text.
    pub frontmatter: String,
    pub from: i64,
    pub to: Option<i64>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    In,
    Out,
    Both,
}

/// A link as it stood at some time; the target is the page that it leads to now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EdgeRow {
    pub src: PageNo,
    pub dst: Option<PageNo>,
    pub kind: LinkKind,
    pub relation: Option<String>,
    pub skill: Option<String>,
    pub id: Option<String>,
    pub anchor: Option<String>,
    pub version: Option<String>,
    pub alias: Option<String>,
    pub src_anchor: Option<String>,
    pub line: u32,
}

/// A decision that rests on an expectation which was replaced later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriftRow {
    pub decision: PageNo,
    pub expectation: PageNo,
    pub superseding: PageNo,
    pub decided_at: String,
    pub superseded_at: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AbandonedRow {
    pub page: PageNo,
    pub skill: String,
    /// The relation that retired the page, or `status`.
    pub via: String,
}

/// A live page as DuckDB has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeadRow {
    pub uid: Uid,
    pub no: PageNo,
    pub path: String,
    pub version: u64,
    pub seq: u64,
    pub skill: String,
    pub id: String,
}
