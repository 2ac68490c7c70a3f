//! A store in memory, for tests and simulation. Its journal is the real one on
//! a disk in memory, so that a crash loses exactly what was not synced.

mod pages;

use std::io;
use std::sync::Arc;

use parking_lot::RwLock;

use crate::disk::MemDisk;
use crate::journal::{Journal, Limits};
use crate::{
    Draft, Env, JournalReport, LiveLogs, ObjectId, Record, Removed, Replaced, RootState, Scan,
    Stat, Store, StoreError,
};
use pages::MemPages;

pub struct MemStore {
    env: Env,
    state: RwLock<State>,
    pages: MemPages,
}

/// How a process ends that is not closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// It was killed: all it wrote is there, but what of it was not synced is
    /// not known any more.
    Kill,
    /// The power went: of what was not synced, at most `torn` bytes of each
    /// file survive.
    Power { torn: usize },
}

struct State {
    disk: Arc<MemDisk>,
    journal: Result<Arc<Journal>, StoreError>,
}

impl MemStore {
    pub fn new(env: Env) -> Self {
        MemStore::forgetting(env, None)
    }

    /// A store whose flushes of one kind do nothing: of files in this folder of the journal
    /// (`audit/`, `objects/`, `live/`), or of pages (`pages`).
    pub fn forgetting(env: Env, forgets: Option<&'static str>) -> Self {
        let disk = MemDisk::forgetting(forgets);
        MemStore {
            pages: MemPages::new(env.clone(), forgets == Some("pages")),
            state: RwLock::new(open(disk, &env)),
            env,
        }
    }

    /// As if a person had saved the file with another program.
    pub fn put_file(&self, path: &str, bytes: &[u8]) {
        self.pages.put_outside(path, bytes);
    }

    /// As if a person had deleted the file with another program.
    pub fn delete_file(&self, path: &str) {
        self.pages.delete_outside(path);
    }

    /// As if a person had renamed the file: it keeps its inode.
    pub fn rename_file(&self, from: &str, to: &str) {
        self.pages.rename_outside(from, to);
    }

    /// What the next scans say of the folder itself.
    pub fn set_root(&self, state: RootState) {
        self.pages.set_root(state);
    }

    /// Power loss and restart: everything not synced is forgotten. A call that
    /// is under way in another thread goes on, but changes nothing any more.
    pub fn crash(&self) {
        self.crash_torn(0);
    }

    /// The same, but up to `torn` unsynced bytes of each journal file survive.
    pub fn crash_torn(&self, torn: usize) {
        let mut state = self.state.write();
        self.pages.crash();
        *state = open(state.disk.after_crash(torn), &self.env);
    }

    /// What the next process finds. This store is as before, for those who
    /// still hold it, and nothing that they do reaches the other.
    pub fn after(&self, loss: Loss, env: Env) -> MemStore {
        let state = self.state.read();
        let disk = match loss {
            Loss::Kill => state.disk.after_kill(),
            Loss::Power { torn } => state.disk.after_crash(torn),
        };
        MemStore {
            pages: self.pages.after(loss, env.clone()),
            state: RwLock::new(open(disk, &env)),
            env,
        }
    }

    fn journal(&self) -> Result<Arc<Journal>, StoreError> {
        self.state.read().journal.clone()
    }
}

fn open(disk: MemDisk, env: &Env) -> State {
    let disk = Arc::new(disk);
    let journal = Journal::open(disk.clone(), env.clone(), Limits::default(), true).map(Arc::new);
    State { disk, journal }
}

impl Store for MemStore {
    fn env(&self) -> &Env {
        &self.env
    }

    fn read_only(&self) -> bool {
        false
    }

    fn scan(&self) -> Scan {
        self.pages.scan()
    }

    fn stat(&self, path: &str) -> io::Result<Option<Stat>> {
        Ok(self.pages.read(path)?.map(|(_, stat)| stat))
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
        let disk = self.state.read().disk.clone();
        Ok(LiveLogs::new(disk, self.env.clone()))
    }

    fn append(&self, drafts: Vec<Draft>) -> Result<Vec<Record>, StoreError> {
        self.journal()?.append(drafts)
    }

    fn head(&self) -> u64 {
        self.journal().map_or(0, |journal| journal.head())
    }

    fn records(
        &self,
        after_seq: u64,
    ) -> Box<dyn Iterator<Item = Result<Record, StoreError>> + Send + '_> {
        match self.journal() {
            Ok(journal) => Box::new(Journal::records(&journal, after_seq)),
            Err(error) => Box::new(std::iter::once(Err(error))),
        }
    }

    fn object(&self, id: &ObjectId) -> Result<Vec<u8>, StoreError> {
        self.journal()?.object(id)
    }

    fn erase(&self, ids: &[ObjectId]) -> Result<u64, StoreError> {
        self.journal()?.erase(ids)
    }

    fn applied(&self) -> u64 {
        self.journal().map_or(0, |journal| journal.applied())
    }

    fn set_applied(&self, seq: u64) -> Result<(), StoreError> {
        self.journal()?.set_applied(seq)
    }

    fn verify_journal(&self) -> JournalReport {
        self.journal()
            .map(|journal| journal.verify())
            .unwrap_or_default()
    }

    fn warnings(&self) -> Vec<String> {
        self.journal()
            .map(|journal| journal.warnings().to_vec())
            .unwrap_or_default()
    }

    fn writable(&self) -> Result<(), StoreError> {
        self.journal()?.writable()
    }
}
