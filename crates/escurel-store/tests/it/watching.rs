//! Outside changes are told.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, unbounded};
use escurel_store::{Changed, FsStore, Store, Watch};

use crate::support::open;

struct Watched {
    store: FsStore,
    changes: Receiver<Changed>,
    _watch: Watch,
}

fn watch(folder: &Path) -> Watched {
    let store = open(folder);
    let (tx, changes) = unbounded();
    let watch = store.watch(tx).unwrap();
    Watched {
        store,
        changes,
        _watch: watch,
    }
}

impl Watched {
    /// Collects until all of `paths` were told, or a rescan was.
    fn told(&self, paths: &[&str]) -> (BTreeSet<String>, bool) {
        let (mut told, mut rescan) = (BTreeSet::new(), false);
        let until = Instant::now() + Duration::from_secs(5);
        while let Ok(changed) = self.changes.recv_deadline(until) {
            match changed {
                Changed::Paths(paths) => told.extend(paths),
                Changed::Rescan => rescan = true,
            }
            if rescan || paths.iter().all(|path| told.contains(*path)) {
                break;
            }
        }
        (told, rescan)
    }

    fn exactly(&self, paths: &[&str]) {
        let (mut told, mut rescan) = self.told(paths);
        while let Ok(more) = self.changes.recv_timeout(Duration::from_millis(200)) {
            match more {
                Changed::Paths(paths) => told.extend(paths),
                Changed::Rescan => rescan = true,
            }
        }
        assert!(!rescan);
        assert_eq!(told, paths.iter().map(|path| path.to_string()).collect());
    }

    fn silent(&self) {
        assert_eq!(
            self.changes.recv_timeout(Duration::from_millis(200)).ok(),
            None
        );
    }
}

#[test]
fn saves_renames_and_removals_are_told() {
    let dir = tempfile::tempdir().unwrap();
    let at = |path: &str| dir.path().join(path);
    fs::create_dir(at("sub")).unwrap();
    fs::write(at("sub/a.md"), "1").unwrap();
    let watched = watch(dir.path());
    fs::write(at("b.md"), "1").unwrap();
    fs::write(at("b.md"), "2").unwrap();
    watched.exactly(&["b.md"]);
    fs::rename(at("sub/a.md"), at("c.md")).unwrap();
    watched.exactly(&["sub/a.md", "c.md"]);
    fs::remove_file(at("c.md")).unwrap();
    watched.exactly(&["c.md"]);
    // An editor that saves by rename.
    fs::write(at("4913"), "").unwrap();
    fs::remove_file(at("4913")).unwrap();
    fs::rename(at("b.md"), at("b.md~")).unwrap();
    fs::write(at("b.md"), "3").unwrap();
    fs::remove_file(at("b.md~")).unwrap();
    watched.exactly(&["b.md"]);
    watched.silent();
}

#[test]
fn what_is_skipped_is_not_told() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("private")).unwrap();
    fs::write(dir.path().join(".escurelignore"), "private\n").unwrap();
    let watched = watch(dir.path());
    fs::write(dir.path().join("a.txt"), "").unwrap();
    fs::write(dir.path().join(".hidden.md"), "").unwrap();
    fs::write(dir.path().join("private/x.md"), "").unwrap();
    fs::create_dir(dir.path().join(".git")).unwrap();
    fs::write(dir.path().join(".git/x.md"), "").unwrap();
    watched
        .store
        .append(vec![escurel_store::conformance::version("a.md", 1, b"x")])
        .unwrap();
    watched.store.scan();
    watched.store.read("private/x.md").unwrap();
    watched.silent();
    fs::write(dir.path().join(".escurelignore"), "").unwrap();
    assert!(watched.told(&[]).1, "other rules ask for a rescan");
}

#[test]
fn new_folders_are_told_with_what_is_in_them() {
    let dir = tempfile::tempdir().unwrap();
    let aside = tempfile::tempdir().unwrap();
    fs::create_dir_all(aside.path().join("whole/deep")).unwrap();
    fs::write(aside.path().join("whole/deep/m.md"), "").unwrap();
    let watched = watch(dir.path());
    fs::create_dir_all(dir.path().join("x/y/z")).unwrap();
    fs::write(dir.path().join("x/y/z/a.md"), "").unwrap();
    watched.exactly(&["x/y/z/a.md"]);
    fs::rename(aside.path().join("whole"), dir.path().join("whole")).unwrap();
    watched.exactly(&["whole/deep/m.md"]);
    fs::write(dir.path().join("whole/deep/n.md"), "").unwrap();
    watched.exactly(&["whole/deep/n.md"]);
    fs::rename(dir.path().join("x"), dir.path().join("w")).unwrap();
    assert!(watched.told(&[]).1, "a folder that went asks for a rescan");
    while watched
        .changes
        .recv_timeout(Duration::from_millis(200))
        .is_ok()
    {}
    fs::write(dir.path().join("w/y/z/b.md"), "").unwrap();
    watched.exactly(&["w/y/z/b.md"]);
}

#[test]
fn our_own_writes_are_told_once() {
    let dir = tempfile::tempdir().unwrap();
    let watched = watch(dir.path());
    watched.store.replace("a.md", None, b"1").unwrap();
    watched.store.replace("a.md", Some(b"1"), b"2").unwrap();
    watched.exactly(&["a.md"]);
    watched.silent();
}

#[test]
fn the_watch_ends_when_dropped() {
    let dir = tempfile::tempdir().unwrap();
    let Watched {
        store,
        changes,
        _watch,
    } = watch(dir.path());
    drop(_watch);
    store.replace("a.md", None, b"1").unwrap();
    assert!(changes.recv_timeout(Duration::from_secs(2)).is_err());
}
