//! A store in memory, for tests and simulation.

use std::io;

use crate::*;

pub struct MemStore {
    env: Env,
}

impl MemStore {
    pub fn new(env: Env) -> Self {
        Self { env }
    }

    /// As if a person had saved the file outside.
    pub fn put_file(&self, _path: &str, _bytes: &[u8]) {}

    /// As if a person had deleted the file outside.
    pub fn delete_file(&self, _path: &str) {}

    /// Power loss and restart: everything not fsynced is forgotten.
    pub fn crash(&self) {}
}

impl Store for MemStore {
    fn env(&self) -> &Env {
        &self.env
    }
    fn read_only(&self) -> bool {
        false
    }
    fn scan(&self) -> Scan {
        Scan { files: Vec::new(), unknown: Vec::new(), root: RootState::Ok }
    }
    fn stat(&self, _: &str) -> io::Result<Option<Stat>> {
        Ok(None)
    }
    fn read(&self, _: &str) -> io::Result<Option<(Vec<u8>, Stat)>> {
        Ok(None)
    }
    fn replace(&self, _: &str, _: Option<&[u8]>, _: &[u8]) -> io::Result<Replaced> {
        Ok(Replaced::Done(Stat::default()))
    }
    fn remove(&self, _: &str, _: &[u8]) -> io::Result<Removed> {
        Ok(Removed::Absent)
    }
    fn flush_files(&self) -> io::Result<()> {
        Ok(())
    }
    fn append(&self, _: Vec<Draft>) -> Result<Vec<Record>, StoreError> {
        Ok(Vec::new())
    }
    fn head(&self) -> u64 {
        0
    }
    fn records(
        &self,
        _: u64,
    ) -> Box<dyn Iterator<Item = Result<Record, StoreError>> + Send + '_> {
        Box::new(std::iter::empty())
    }
    fn object(&self, id: &ObjectId) -> Result<Vec<u8>, StoreError> {
        Err(StoreError::ObjectMissing(*id))
    }
    fn erase(&self, _: &[ObjectId]) -> Result<u64, StoreError> {
        Ok(0)
    }
    fn applied(&self) -> u64 {
        0
    }
    fn set_applied(&self, _: u64) -> Result<(), StoreError> {
        Ok(())
    }
    fn verify_journal(&self) -> JournalReport {
        JournalReport::default()
    }
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }
    fn writable(&self) -> Result<(), StoreError> {
        Ok(())
    }
}
