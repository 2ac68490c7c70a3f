//! Page files as they stand, while the journal beside them cannot be used.
//!
//! Refuses every change. What reading needs a journal for goes to a throw-away
//! one in a folder of the caller's choice. Invariant: the broken journal is
//! only looked at, and [`Store::verify_journal`] is about that one.

use std::io;
use std::path::Path;
use std::sync::Arc;

use super::FsStore;
use crate::disk::LocalDisk;
use crate::journal::{Journal, Limits};
use crate::{
    Draft, Env, JournalReport, LiveLogs, ObjectId, Record, Removed, Replaced, Scan, Stat, Store,
    StoreError,
};

pub struct Unrecorded {
    files: Arc<FsStore>,
    journal: Arc<Journal>,
    why: StoreError,
}

impl Unrecorded {
    /// `scratch`: an empty folder that may be deleted afterwards.
    pub fn new(
        files: Arc<FsStore>,
        scratch: &Path,
        why: StoreError,
    ) -> Result<Unrecorded, StoreError> {
        for dir in ["audit", "objects"] {
            let dir = scratch.join(dir);
            std::fs::create_dir_all(&dir).map_err(|error| StoreError::from_io(&dir, error))?;
        }
        let disk = Arc::new(LocalDisk::new(scratch, false));
        let journal = Journal::open(disk, files.env().clone(), Limits::default(), true)?;
        Ok(Unrecorded {
            files,
            journal: Arc::new(journal),
            why,
        })
    }

    fn refuse<T>(&self) -> io::Result<T> {
        Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            self.why.clone(),
        ))
    }
}

impl Store for Unrecorded {
    fn env(&self) -> &Env {
        self.files.env()
    }

    fn read_only(&self) -> bool {
        true
    }

    fn scan(&self) -> Scan {
        self.files.scan()
    }

    fn stat(&self, path: &str) -> io::Result<Option<Stat>> {
        self.files.stat(path)
    }

    fn read(&self, path: &str) -> io::Result<Option<(Vec<u8>, Stat)>> {
        self.files.read(path)
    }

    fn replace(&self, _: &str, _: Option<&[u8]>, _: &[u8]) -> io::Result<Replaced> {
        self.refuse()
    }

    fn remove(&self, _: &str, _: &[u8]) -> io::Result<Removed> {
        self.refuse()
    }

    fn can_create(&self, _: &str) -> io::Result<()> {
        self.refuse()
    }

    fn mark_unflushed(&self, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn flush_files(&self) -> io::Result<()> {
        Ok(())
    }

    fn live(&self) -> Result<LiveLogs, StoreError> {
        Err(self.why.clone())
    }

    fn append(&self, drafts: Vec<Draft>) -> Result<Vec<Record>, StoreError> {
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

    fn erase(&self, _: &[ObjectId]) -> Result<u64, StoreError> {
        Err(self.why.clone())
    }

    fn applied(&self) -> u64 {
        self.journal.applied()
    }

    fn set_applied(&self, seq: u64) -> Result<(), StoreError> {
        self.journal.set_applied(seq)
    }

    fn verify_journal(&self) -> JournalReport {
        self.files.verify_journal()
    }

    fn warnings(&self) -> Vec<String> {
        let mut warnings = self.files.warnings();
        warnings.push(self.why.to_string());
        warnings
    }

    fn writable(&self) -> Result<(), StoreError> {
        Err(self.why.clone())
    }
}
