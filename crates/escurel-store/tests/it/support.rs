//! Stores and faults for tests.

use std::path::Path;
use std::sync::Arc;

use escurel_store::{Env, FsStore, ManualClock, NoFailpoints, Paths, Record, SeededIds, Store};

pub fn env() -> Env {
    Env {
        clock: Arc::new(ManualClock::new(1_700_000_000_000_000)),
        ids: Arc::new(SeededIds::new(7)),
        failpoints: Arc::new(NoFailpoints),
    }
}

pub fn vault(folder: &Path) -> Paths {
    Paths::vault(folder, &folder.join("../unused-cache")).unwrap()
}

pub fn open(folder: &Path) -> FsStore {
    FsStore::open(&vault(folder), Env::system()).unwrap()
}

pub fn open_small(folder: &Path) -> FsStore {
    FsStore::open_small(&vault(folder), Env::system(), 3000, 5000).unwrap()
}

pub fn all(store: &dyn Store) -> Vec<Record> {
    store.records(0).collect::<Result<_, _>>().unwrap()
}

/// Files below a folder with the given extension, sorted.
pub fn files(folder: &Path, extension: &str) -> Vec<std::path::PathBuf> {
    let mut found: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == extension))
        .collect();
    found.sort();
    found
}
