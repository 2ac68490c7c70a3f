//! Opening a store on disk.

use std::io;

use crossbeam_channel::Sender;

use super::{Changed, Lock, Paths, Watch};
use crate::*;

/// Pages, journal and objects on a file system.
pub struct FsStore {
    paths: Paths,
    memory: MemStore,
    lock: Option<Lock>,
}

impl FsStore {
    /// Takes the lock unless the store is read-only.
    pub fn open(paths: &Paths, env: Env) -> Result<FsStore, StoreError> {
        let lock = match paths.read_only {
            true => None,
            false => match Lock::acquire(&paths.lock)? {
                Ok(lock) => Some(lock),
                Err(holder) => {
                    return Err(StoreError::LockHeld { pid: holder.pid, address: holder.address });
                }
            },
        };
        Ok(FsStore { paths: paths.clone(), memory: MemStore::new(env), lock })
    }

    pub fn paths(&self) -> &Paths {
        &self.paths
    }

    /// `None` when read-only.
    pub fn lock(&self) -> Option<&Lock> {
        self.lock.as_ref()
    }

    /// Sends what changes on disk until the answer is dropped.
    pub fn watch(&self, tx: Sender<Changed>) -> Result<Watch, StoreError> {
        Watch::start(&self.paths.root, &self.paths.pages, tx)
    }
}

impl Store for FsStore {
    fn env(&self) -> &Env {
        self.memory.env()
    }
    fn read_only(&self) -> bool {
        self.paths.read_only
    }
    fn scan(&self) -> Scan {
        self.memory.scan()
    }
    fn stat(&self, path: &str) -> io::Result<Option<Stat>> {
        self.memory.stat(path)
    }
    fn read(&self, path: &str) -> io::Result<Option<(Vec<u8>, Stat)>> {
        self.memory.read(path)
    }
    fn replace(&self, path: &str, planned: Option<&[u8]>, new: &[u8]) -> io::Result<Replaced> {
        self.memory.replace(path, planned, new)
    }
    fn remove(&self, path: &str, planned: &[u8]) -> io::Result<Removed> {
        self.memory.remove(path, planned)
    }
    fn flush_files(&self) -> io::Result<()> {
        self.memory.flush_files()
    }
    fn append(&self, drafts: Vec<Draft>) -> Result<Vec<Record>, StoreError> {
        self.memory.append(drafts)
    }
    fn head(&self) -> u64 {
        self.memory.head()
    }
    fn records(
        &self,
        after_seq: u64,
    ) -> Box<dyn Iterator<Item = Result<Record, StoreError>> + Send + '_> {
        self.memory.records(after_seq)
    }
    fn object(&self, id: &ObjectId) -> Result<Vec<u8>, StoreError> {
        self.memory.object(id)
    }
    fn erase(&self, ids: &[ObjectId]) -> Result<u64, StoreError> {
        self.memory.erase(ids)
    }
    fn applied(&self) -> u64 {
        self.memory.applied()
    }
    fn set_applied(&self, seq: u64) -> Result<(), StoreError> {
        self.memory.set_applied(seq)
    }
    fn verify_journal(&self) -> JournalReport {
        self.memory.verify_journal()
    }
    fn warnings(&self) -> Vec<String> {
        self.memory.warnings()
    }
    fn writable(&self) -> Result<(), StoreError> {
        self.memory.writable()
    }
}
