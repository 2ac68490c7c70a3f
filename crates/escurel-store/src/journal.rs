//! The append-only, hash-chained history and its objects.
//!
//! It refuses to change what is there: a torn tail is cut, a broken middle
//! stops writes until a person restores or repairs it.
//!
//! Invariant: `head` names a record that is durable, whose objects are
//! durable, and that has every record from 1 before it.

mod append;
mod frame;
mod open;
mod pack_index;
mod packs;
mod read;
mod repair;
mod report;
mod segments;
mod sums;
mod verify;

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, RwLock};

use crate::disk::Disk;
use crate::{Env, ObjectId, StoreError};

pub use repair::{BrokenChain, RepairPlan};
pub use report::{Finding, JournalReport};
pub use sums::FileSum;

/// Folder of the chain that holds the history of pages.
const CHAIN: &str = "audit";
const APPLIED: &str = "audit/applied";

/// When to begin a new file.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) segment: u64,
    pub(crate) pack: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            segment: 64 << 20,
            pack: 64 << 20,
        }
    }
}

pub(crate) struct Journal {
    disk: Arc<dyn Disk>,
    env: Env,
    limits: Limits,
    packs: packs::Packs,
    queue: Mutex<append::Queue>,
    writer: Mutex<append::Writer>,
    segments: RwLock<Vec<segments::Segment>>,
    head: AtomicU64,
    applied: AtomicU64,
    applied_lock: Mutex<()>,
    /// Objects are not moved while they are checked.
    maintenance: Mutex<()>,
    warnings: Vec<String>,
    /// First broken record, once somebody came across it.
    broken: OnceLock<(u64, String)>,
}

impl Journal {
    pub(crate) fn head(&self) -> u64 {
        self.head.load(Ordering::Acquire)
    }

    pub(crate) fn warnings(&self) -> &[String] {
        &self.warnings
    }

    pub(crate) fn writable(&self) -> Result<(), StoreError> {
        match self.broken.get() {
            Some((seq, detail)) => Err(StoreError::JournalBroken {
                seq: *seq,
                detail: detail.clone(),
            }),
            None => Ok(()),
        }
    }

    /// Remembers the break, so that writes are refused from now on.
    pub(crate) fn break_at(&self, seq: u64, detail: String) -> StoreError {
        let _ = self.broken.set((seq, detail.clone()));
        StoreError::JournalBroken { seq, detail }
    }

    pub(crate) fn object(&self, id: &ObjectId) -> Result<Vec<u8>, StoreError> {
        self.packs.get(id)
    }

    pub(crate) fn erase(&self, ids: &[ObjectId]) -> Result<u64, StoreError> {
        self.writable()?;
        let _not_while_checking = self.maintenance.lock();
        self.packs.erase(ids)
    }

    pub(crate) fn applied(&self) -> u64 {
        self.applied.load(Ordering::Acquire)
    }

    /// Never moves back.
    pub(crate) fn set_applied(&self, seq: u64) -> Result<(), StoreError> {
        let _one_at_a_time = self.applied_lock.lock();
        if seq <= self.applied() {
            return Ok(());
        }
        if seq > self.head() {
            let why = format!(
                "record {seq} cannot be marked as applied, the newest is {}",
                self.head()
            );
            return Err(StoreError::BadRecord(why));
        }
        self.env
            .failpoints
            .reach("journal.before_applied_write")
            .and_then(|()| self.disk.put(APPLIED, format!("{seq}\n").as_bytes()))
            .map_err(|error| StoreError::from_io(&self.disk.path(APPLIED), error))?;
        self.applied.store(seq, Ordering::Release);
        Ok(())
    }
}
