//! Tests of the store as its users see it.
#![allow(clippy::unwrap_used)]

mod canonical;
mod crash;
mod damage;
mod pages;
mod places;
mod repair;
mod speed;
mod support;
mod watching;

use escurel_store::{MemStore, conformance};

#[test]
fn memory_store_conforms() {
    conformance::run(|| Box::new(MemStore::new(support::env())));
}

#[test]
fn file_store_conforms() {
    let dirs = std::cell::RefCell::new(Vec::new());
    conformance::run(|| {
        let dir = tempfile::tempdir().unwrap();
        let store = support::open(dir.path());
        dirs.borrow_mut().push(dir);
        Box::new(store)
    });
}

/// The same, with files that are full after a few records.
#[test]
fn file_store_of_small_files_conforms() {
    let dirs = std::cell::RefCell::new(Vec::new());
    conformance::run(|| {
        let dir = tempfile::tempdir().unwrap();
        let store = support::open_small(dir.path());
        dirs.borrow_mut().push(dir);
        Box::new(store)
    });
}
