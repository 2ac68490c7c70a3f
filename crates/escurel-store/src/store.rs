//! The seam between the rest of the system and what lasts.

use std::io;

use serde::{Deserialize, Serialize};

use crate::{Draft, Env, JournalReport, LiveLogs, ObjectId, Record, StoreError};

/// Every place at which [`crate::Failpoints::reach`] is called.
pub const FAILPOINTS: &[&str] = &[
    "journal.before_object_write",
    "journal.before_object_fsync",
    "journal.before_record_write",
    "journal.before_record_fsync",
    "journal.before_ack",
    "journal.before_seal",
    "journal.before_pack_roll",
    "journal.before_applied_write",
    "journal.before_erase_write",
    "journal.before_erase_swap",
    "pages.before_temp_write",
    "pages.before_exchange",
    "pages.before_compare",
    "pages.before_temp_remove",
    "pages.before_flush",
    "pages.before_remove",
];

/// Those of what is typed before it is committed.
pub const LIVE_FAILPOINTS: &[&str] = &[
    "live.before_append",
    "live.before_sync",
    "live.before_rewrite",
    "live.before_remove",
];

/// Those of a repair, which passes the places of `journal.` that concern records, too.
pub const REPAIR_FAILPOINTS: &[&str] = &[
    "repair.before_write",
    "repair.before_complete",
    "repair.before_index_removal",
    "repair.before_set_aside",
    "repair.before_put_in_place",
    "repair.before_cleaning",
];

/// What tells two states of a file apart without reading it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, Default)]
pub struct Stat {
    pub dev: u64,
    pub ino: u64,
    pub size: u64,
    pub mtime_ns: i64,
    pub ctime_ns: i64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScannedFile {
    pub path: String,
    pub stat: Stat,
}

/// A folder or file that could not be looked at: what it holds is unknown, and
/// never to be taken for deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    pub path: String,
    pub is_dir: bool,
    pub reason: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RootState {
    Ok,
    Missing,
    /// The folder is there, but on another device than when it was opened:
    /// unmounted, or something else mounted over it.
    OtherDevice,
    Unreadable(String),
}

/// One look at all page files.
#[derive(Clone, Debug)]
pub struct Scan {
    /// Sorted by path.
    pub files: Vec<ScannedFile>,
    pub unknown: Vec<Unreadable>,
    pub root: RootState,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Replaced {
    Done(Stat),
    /// The new bytes are in place, but what came out is not what was planned
    /// on; `None`: there was nothing any more.
    Displaced {
        stat: Stat,
        found: Option<Vec<u8>>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Removed {
    Done,
    /// Not removed: the file holds other bytes than planned.
    Changed {
        found: Vec<u8>,
    },
    Absent,
}

/// Page files, journal and objects of one vault or tenant.
///
/// `path` is the page path as used on the wire: relative, `/`-separated, bytes
/// of a file name that are not UTF-8 written as `\xE9`.
pub trait Store: Send + Sync + 'static {
    fn env(&self) -> &Env;
    fn read_only(&self) -> bool;

    fn scan(&self) -> Scan;
    /// `None`: not there. `Err`: could not look.
    fn stat(&self, path: &str) -> io::Result<Option<Stat>>;
    fn read(&self, path: &str) -> io::Result<Option<(Vec<u8>, Stat)>>;
    /// Puts `new` in place in one step and compares what came out with
    /// `planned` (`None`: nothing was there). Durable after [`Store::flush_files`].
    fn replace(&self, path: &str, planned: Option<&[u8]>, new: &[u8]) -> io::Result<Replaced>;
    fn remove(&self, path: &str, planned: &[u8]) -> io::Result<Removed>;
    /// Whether a new file of this name could be made now; why not, if not. Leaves nothing behind.
    fn can_create(&self, path: &str) -> io::Result<()>;
    /// The file may not be durable although nobody changed it through this
    /// store: who wrote it was killed. The next [`Store::flush_files`] sees to it.
    fn mark_unflushed(&self, path: &str) -> io::Result<()>;
    /// Makes all page files and folders changed since the last call durable.
    fn flush_files(&self) -> io::Result<()>;

    /// What is typed before it is committed.
    fn live(&self) -> Result<LiveLogs, StoreError>;

    /// All or nothing, and durable on return. Concurrent callers share fsyncs.
    fn append(&self, drafts: Vec<Draft>) -> Result<Vec<Record>, StoreError>;
    /// Sequence number of the newest durable record; 0 = empty.
    fn head(&self) -> u64;
    /// Records after `after_seq` up to the head of this moment, the chain
    /// checked on the way; ends after the first error.
    fn records(
        &self,
        after_seq: u64,
    ) -> Box<dyn Iterator<Item = Result<Record, StoreError>> + Send + '_>;
    fn object(&self, id: &ObjectId) -> Result<Vec<u8>, StoreError>;
    /// Removes contents for good; answers how many were there. The caller
    /// appends the `content_erased` record first.
    fn erase(&self, ids: &[ObjectId]) -> Result<u64, StoreError>;
    /// Page files are durable through this sequence number.
    fn applied(&self) -> u64;
    fn set_applied(&self, seq: u64) -> Result<(), StoreError>;
    /// Walks the chain and all objects; every finding names its item.
    fn verify_journal(&self) -> JournalReport;
    /// What was set right at open, such as a torn tail that was cut.
    fn warnings(&self) -> Vec<String>;
    /// `Err(journal_broken)` when a broken middle was found.
    fn writable(&self) -> Result<(), StoreError>;
}
