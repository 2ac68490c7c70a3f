//! A broken chain is set aside, and a new one takes its place.
//!
//! Invariant: at every moment one of the two is whole and on disk under a name
//! that the next opening knows. The new chain is written in a folder of its own,
//! is called [`NEW`] once it is complete, and the old one is moved only then.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{FsStore, sys};
use crate::disk::{LocalDisk, sync_dir};
use crate::{BrokenChain, Env, RepairPlan, StoreError};

const CHAIN: &str = "audit";
/// A new chain that is complete.
const NEW: &str = "audit.new";
/// Where it is written.
const PART: &str = "audit.part";

impl FsStore {
    /// Reads all of the journal, and changes nothing.
    pub fn plan_repair(&self) -> Result<RepairPlan, StoreError> {
        let journal = &self.paths.journal;
        let free = |name: &String| fs::symlink_metadata(journal.join(name)).is_err();
        let mut names = (1..u32::MAX).map(|n| format!("{CHAIN}.broken-{n}"));
        self.journal
            .plan_repair(names.find(free).unwrap_or_default())
    }

    /// Carries out [`FsStore::plan_repair`]: keeps the broken chain beside the new one and
    /// deletes the index, which belongs to the numbers of the old one. Does nothing
    /// when the chain is whole.
    pub fn repair(mut self, plan: &RepairPlan, actor: &str) -> Result<(), StoreError> {
        self.changing()?;
        let Some(broken) = &plan.broken else {
            return Ok(());
        };
        let swap = Swap {
            journal: self.paths.journal.clone(),
            index: self.paths.index.clone(),
            env: self.env.clone(),
        };
        let fail = |error| StoreError::from_io(&swap.journal, error);
        swap.reach("repair.before_write").map_err(fail)?;
        let part = Arc::new(LocalDisk::new(&swap.part(), false));
        self.journal.write_repaired(part, broken, actor)?;
        // Not every system moves folders whose files are open.
        let _held_to_the_end = self.lock.take();
        drop(self);
        swap.run(broken).map_err(fail)
    }
}

struct Swap {
    journal: PathBuf,
    index: PathBuf,
    env: Env,
}

impl Swap {
    fn run(&self, broken: &BrokenChain) -> io::Result<()> {
        let at = |name: &str| self.journal.join(name);
        self.reach("repair.before_complete")?;
        sys::rename_new(&self.part().join(CHAIN), &at(NEW))?;
        sync_dir(&self.journal)?;
        self.reach("repair.before_index_removal")?;
        remove_folder(&self.index)?;
        self.reach("repair.before_set_aside")?;
        sys::rename_new(&at(CHAIN), &at(&broken.set_aside))?;
        sync_dir(&self.journal)?;
        self.reach("repair.before_put_in_place")?;
        put_in_place(&self.journal)?;
        self.reach("repair.before_cleaning")?;
        remove_folder(&self.part())
    }

    fn part(&self) -> PathBuf {
        self.journal.join(PART)
    }

    fn reach(&self, point: &'static str) -> io::Result<()> {
        self.env.failpoints.reach(point)
    }
}

fn put_in_place(journal: &Path) -> io::Result<()> {
    sys::rename_new(&journal.join(NEW), &journal.join(CHAIN))?;
    sync_dir(journal)
}

/// Durably, and if it is there.
fn remove_folder(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
        Ok(()) => folder.parent().map_or(Ok(()), sync_dir),
    }
}

/// The old chain was set aside, and the new one is not in its place yet.
pub(super) fn is_cut_short(journal: &Path) -> bool {
    journal.join(NEW).is_dir() && !journal.join(CHAIN).is_dir()
}

/// Goes on where a repair was cut short; while the old chain is in its place, that is
/// the beginning, and the next repair's work.
pub(super) fn finish(journal: &Path) -> io::Result<()> {
    if is_cut_short(journal) {
        put_in_place(journal)?;
    }
    remove_folder(&journal.join(NEW))?;
    remove_folder(&journal.join(PART))
}
