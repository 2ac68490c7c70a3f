//! The store on disk, put together.

use std::io;
use std::sync::Arc;

use crossbeam_channel::Sender;

use super::pages::Pages;
use super::{Changed, Lock, Paths, Watch, repair, root};
use crate::disk::LocalDisk;
use crate::journal::{FileSum, Journal, Limits};
use crate::{
    Draft, Env, JournalReport, LiveLogs, ObjectId, Record, Removed, Replaced, Scan, Stat, Store,
    StoreError,
};

/// Pages, journal and objects on a file system.
pub struct FsStore {
    pub(super) env: Env,
    pub(super) paths: Paths,
    pages: Pages,
    pub(super) journal: Arc<Journal>,
    live: LiveLogs,
    pub(super) lock: Option<Lock>,
}

impl FsStore {
    /// Takes the lock, unless the state folder cannot be written.
    pub fn open(paths: &Paths, env: Env) -> Result<FsStore, StoreError> {
        FsStore::open_with(paths, env, Limits::default())
    }

    /// Small files, so that tests see many of them.
    #[doc(hidden)]
    pub fn open_small(
        paths: &Paths,
        env: Env,
        segment: u64,
        pack: u64,
    ) -> Result<FsStore, StoreError> {
        FsStore::open_with(paths, env, Limits { segment, pack })
    }

    fn open_with(paths: &Paths, env: Env, limits: Limits) -> Result<FsStore, StoreError> {
        let lock = lock(paths)?;
        let writable = lock.is_some();
        let disk = LocalDisk::new(&paths.journal, !writable);
        if writable {
            repair::finish(&paths.journal)
                .map_err(|error| StoreError::from_io(&paths.journal, error))?;
            for dir in ["audit", "objects"] {
                disk.clean(dir)
                    .map_err(|error| StoreError::from_io(&paths.journal, error))?;
            }
        }
        let live = LocalDisk::new(&paths.state, !writable);
        if writable {
            live.clean("live")
                .map_err(|error| StoreError::from_io(&paths.state, error))?;
        }
        let pages = Pages::open(paths, env.clone(), writable)?;
        let journal = Journal::open(Arc::new(disk), env.clone(), limits, writable)?;
        if repair::is_cut_short(&paths.journal) {
            journal.break_at(1, "its repair was cut short".into());
        }
        Ok(FsStore {
            live: LiveLogs::new(Arc::new(live), env.clone()),
            env,
            paths: paths.clone(),
            pages,
            journal: Arc::new(journal),
            lock,
        })
    }

    pub fn paths(&self) -> &Paths {
        &self.paths
    }

    /// `None` when nothing can be written.
    pub fn lock(&self) -> Option<&Lock> {
        self.lock.as_ref()
    }

    /// Why the journal cannot be gone on with, looking at what it has after `seq`.
    pub fn broken_after(&self, seq: u64) -> Option<StoreError> {
        let broken = || self.journal.writable().err();
        broken().or_else(|| {
            Journal::records(&self.journal, seq)
                .find(Result::is_err)?
                .err()?;
            broken()
        })
    }

    /// Sums of the journal's files as they are; `known` ones spare reading.
    pub fn journal_sums(&self, known: &[FileSum]) -> io::Result<Vec<FileSum>> {
        self.journal.sums(known)
    }

    /// Is what `known` was taken of still how the journal begins?
    pub fn begins_with(&self, known: &[FileSum]) -> bool {
        self.journal.begins_with(known).unwrap_or(false)
    }

    /// Packs of contents that were there when `known` was taken and are not.
    pub fn missing_packs(&self, known: &[FileSum]) -> Vec<String> {
        self.journal.missing_packs(known)
    }

    /// Sends what changes on disk until the answer is dropped.
    pub fn watch(&self, tx: Sender<Changed>) -> Result<Watch, StoreError> {
        Watch::start(&self.paths.root, &self.paths.pages, tx)
    }

    /// A person confirms that the pages were moved to another device on
    /// purpose; takes effect at the next open.
    pub fn accept_root(&self) -> io::Result<()> {
        root::forget(&self.paths)
    }

    pub(super) fn changing(&self) -> Result<(), StoreError> {
        match self.lock {
            Some(_) => Ok(()),
            None => Err(StoreError::ReadOnly),
        }
    }
}

/// A read-only vault has its state in the cache folder and locks that; a data
/// directory that cannot be written is opened without a lock.
fn lock(paths: &Paths) -> Result<Option<Lock>, StoreError> {
    match Lock::acquire(&paths.lock) {
        Ok(Ok(lock)) => Ok(Some(lock)),
        Ok(Err(holder)) => Err(StoreError::LockHeld {
            pid: holder.pid,
            address: holder.address,
        }),
        Err(StoreError::Permission(_)) if paths.read_only => Ok(None),
        Err(error) => Err(error),
    }
}

impl Drop for FsStore {
    fn drop(&mut self) {
        if self.lock.is_some() {
            self.journal.close();
        }
    }
}

impl Store for FsStore {
    fn env(&self) -> &Env {
        &self.env
    }

    fn read_only(&self) -> bool {
        self.paths.read_only
    }

    fn scan(&self) -> Scan {
        self.pages.scan()
    }

    fn stat(&self, path: &str) -> io::Result<Option<Stat>> {
        self.pages.stat(path)
    }

    fn read(&self, path: &str) -> io::Result<Option<(Vec<u8>, Stat)>> {
        self.pages.read(path)
    }

    fn replace(&self, path: &str, planned: Option<&[u8]>, new: &[u8]) -> io::Result<Replaced> {
        self.pages.replace(path, planned, new)
    }

    fn remove(&self, path: &str, planned: &[u8]) -> io::Result<Removed> {
        self.pages.remove(path, planned)
    }

    fn can_create(&self, path: &str) -> io::Result<()> {
        self.pages.can_create(path)
    }

    fn mark_unflushed(&self, path: &str) -> io::Result<()> {
        self.pages.mark_unflushed(path)
    }

    fn flush_files(&self) -> io::Result<()> {
        self.pages.flush()
    }

    fn live(&self) -> Result<LiveLogs, StoreError> {
        self.changing()?;
        Ok(self.live.clone())
    }

    fn append(&self, drafts: Vec<Draft>) -> Result<Vec<Record>, StoreError> {
        self.changing()?;
        self.journal.append(drafts)
    }

    fn head(&self) -> u64 {
        self.journal.head()
    }

    fn records(
        &self,
        after_seq: u64,
    ) -> Box<dyn Iterator<Item = Result<Record, StoreError>> + Send + '_> {
        Box::new(Journal::records(&self.journal, after_seq))
    }

    fn object(&self, id: &ObjectId) -> Result<Vec<u8>, StoreError> {
        self.journal.object(id)
    }

    fn erase(&self, ids: &[ObjectId]) -> Result<u64, StoreError> {
        self.changing()?;
        self.journal.erase(ids)
    }

    fn applied(&self) -> u64 {
        self.journal.applied()
    }

    fn set_applied(&self, seq: u64) -> Result<(), StoreError> {
        self.changing()?;
        self.journal.set_applied(seq)
    }

    fn verify_journal(&self) -> JournalReport {
        self.journal.verify()
    }

    fn warnings(&self) -> Vec<String> {
        let mut warnings = self.journal.warnings().to_vec();
        warnings.extend(self.pages.warnings());
        warnings
    }

    fn writable(&self) -> Result<(), StoreError> {
        self.changing()?;
        self.journal.writable()
    }
}
