//! All that cannot be rebuilt: page files, journal, objects, the applied mark,
//! the lock, the watcher, and the only sources of time and randomness.
//!
//! It refuses to know SQL, rights, or what a page means: paths and bytes come
//! in, paths and bytes go out.
//!
//! Invariant: what [`Store::append`] returned is on disk, and a page file is
//! never overwritten without its former bytes being handed to the caller.

mod canonical;
#[doc(hidden)]
pub mod conformance;
mod disk;
mod env;
mod error;
mod export;
pub mod fs;
mod hex;
mod journal;
mod kinds;
mod live;
mod memory;
mod pathname;
mod record;
mod store;
mod uid;

pub use canonical::{canonical, chain_hash};
pub use env::{
    Clock, Env, Failpoints, Ids, ManualClock, NoFailpoints, RandomIds, SeededIds, SystemClock,
};
pub use error::StoreError;
pub use export::export;
pub use fs::{Changed, FsStore, Holder, Kept, Layout, Lock, Paths, Unrecorded, Watch};
pub use journal::{BrokenChain, FileSum, Finding, JournalReport, RepairPlan};
pub use kinds::{KINDS, Kind, KindInfo};
pub use live::{Found, LiveLog, LiveLogs};
pub use memory::{Loss, MemStore};
pub use pathname::is_page;
pub use record::{Content, Draft, ObjectId, Record};
pub use store::{
    FAILPOINTS, LIVE_FAILPOINTS, REPAIR_FAILPOINTS, Removed, Replaced, RootState, Scan,
    ScannedFile, Stat, Store, Unreadable,
};
pub use uid::Uid;
