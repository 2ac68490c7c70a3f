//! Page files as people and editors leave them.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use escurel_store::{Env, FsStore, Paths, Removed, Replaced, RootState, Store};

use crate::support::{open, vault};

fn listed(store: &FsStore) -> Vec<String> {
    store
        .scan()
        .files
        .into_iter()
        .map(|file| file.path)
        .collect()
}

fn write(dir: &Path, path: &str) {
    let full = dir.join(path);
    fs::create_dir_all(full.parent().unwrap()).unwrap();
    fs::write(full, path).unwrap();
}

#[test]
fn only_pages_are_listed() {
    let dir = tempfile::tempdir().unwrap();
    let pages = ["A.MD", "a b/ü.md", "deep/er/x.markdown", "4913.md"];
    let others = [
        "a.txt",
        ".hidden.md",
        ".git/x.md",
        "node_modules/x/y.md",
        "x.md~",
        ".#x.md",
        "x.md.tmp",
        "4913",
        "x.md.swp",
        ".escurel/x.md",
        "tmp/.x.md.swp",
        "private/x.md",
        "drafts/y.md",
        "deep/er/own.md",
    ];
    for path in pages.iter().chain(&others) {
        write(dir.path(), path);
    }
    fs::write(dir.path().join(".escurelignore"), "private/\n/drafts\n").unwrap();
    fs::write(dir.path().join("deep/.escurelignore"), "own.md\n").unwrap();
    fs::write(dir.path().join(".gitignore"), "*.MD\n").unwrap();
    let store = open(dir.path());
    assert_eq!(
        listed(&store),
        ["4913.md", "A.MD", "a b/ü.md", "deep/er/x.markdown"]
    );
}

#[test]
fn links_are_not_followed() {
    let (dir, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    write(outside.path(), "secret.md");
    write(dir.path(), "in/a.md");
    symlink(outside.path(), dir.path().join("out")).unwrap();
    symlink(outside.path().join("secret.md"), dir.path().join("s.md")).unwrap();
    symlink(dir.path(), dir.path().join("in/circle")).unwrap();
    symlink("gone.md", dir.path().join("dangling.md")).unwrap();
    let store = open(dir.path());
    assert_eq!(listed(&store), ["in/a.md"]);
    for path in ["out/secret.md", "s.md", "in/circle/in/a.md", "dangling.md"] {
        assert_eq!(store.read(path).unwrap(), None, "{path}");
        assert_eq!(store.stat(path).unwrap(), None, "{path}");
        assert!(store.replace(path, None, b"x").is_err(), "{path}");
        let removed = store.remove(path, path.as_bytes());
        assert!(!matches!(removed, Ok(Removed::Done)), "{path}");
    }
    assert!(store.replace("out/new/x.md", None, b"x").is_err());
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
    assert_eq!(
        fs::read_to_string(outside.path().join("secret.md")).unwrap(),
        "secret.md"
    );
}

#[test]
fn names_outside_utf8_are_read() {
    let dir = tempfile::tempdir().unwrap();
    let folder = std::ffi::OsStr::from_bytes(b"d\xff");
    fs::create_dir(dir.path().join(folder)).unwrap();
    let name = std::ffi::OsStr::from_bytes(b"caf\xe9\\.md");
    fs::write(dir.path().join(folder).join(name), b"\xe9").unwrap();
    let store = open(dir.path());
    let path = &listed(&store)[0];
    assert_eq!(path, "d\\xFF/caf\\xE9\\x5C.md");
    assert_eq!(store.read(path).unwrap().unwrap().0, b"\xe9");
    assert!(matches!(
        store.replace(path, Some(b"\xe9"), b"e").unwrap(),
        Replaced::Done(_)
    ));
    assert_eq!(fs::read(dir.path().join(folder).join(name)).unwrap(), b"e");
}

#[test]
fn special_files_are_not_pages() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("folder.md")).unwrap();
    write(dir.path(), "folder.md/x.md");
    let fifo = dir.path().join("pipe.md");
    assert!(
        std::process::Command::new("mkfifo")
            .arg(&fifo)
            .status()
            .unwrap()
            .success()
    );
    let store = open(dir.path());
    assert_eq!(listed(&store), ["folder.md/x.md"]);
    assert_eq!(store.read("pipe.md").unwrap(), None);
    assert_eq!(store.read("folder.md").unwrap(), None);
    assert!(store.replace("folder.md", None, b"x").is_err());
    assert!(store.replace("folder.md/x.md/y.md", None, b"x").is_err());
    assert_eq!(store.read("folder.md/x.md/y.md").unwrap(), None);
}

#[test]
fn permissions_are_kept_and_respected() {
    let dir = tempfile::tempdir().unwrap();
    let mode = |name: &str, mode| {
        write(dir.path(), name);
        fs::set_permissions(dir.path().join(name), fs::Permissions::from_mode(mode)).unwrap();
    };
    mode("group.md", 0o660);
    mode("locked.md", 0o444);
    let store = open(dir.path());
    store.replace("group.md", Some(b"group.md"), b"x").unwrap();
    let now = fs::metadata(dir.path().join("group.md"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(now & 0o777, 0o660);
    let error = store
        .replace("locked.md", Some(b"locked.md"), b"x")
        .unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::PermissionDenied);
    assert_eq!(
        fs::read(dir.path().join("locked.md")).unwrap(),
        b"locked.md"
    );
    assert_eq!(
        fs::read_dir(dir.path()).unwrap().count(),
        3,
        "no temporary file is left"
    );
}

#[test]
fn a_save_in_between_is_handed_back() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    store.replace("a.md", None, b"planned").unwrap();
    let stop = std::sync::atomic::AtomicBool::new(false);
    let saves = std::thread::scope(|scope| {
        let saver = scope.spawn(|| {
            let mut count = 0u32;
            while !stop.load(std::sync::atomic::Ordering::SeqCst) {
                count += 1;
                let temp = dir.path().join(".editor");
                fs::write(&temp, format!("save {count}")).unwrap();
                fs::rename(&temp, dir.path().join("a.md")).unwrap();
            }
            count
        });
        let mut seen = std::collections::BTreeSet::new();
        for n in 0..300 {
            let planned = store.read("a.md").unwrap().map(|(bytes, _)| bytes);
            let new = format!("ours {n}");
            let replaced = store
                .replace("a.md", planned.as_deref(), new.as_bytes())
                .unwrap();
            if let Replaced::Displaced {
                found: Some(found), ..
            } = replaced
            {
                assert_ne!(Some(&found), planned.as_ref());
                seen.insert(found);
            }
        }
        stop.store(true, std::sync::atomic::Ordering::SeqCst);
        (saver.join().unwrap(), seen.len())
    });
    assert!(saves.0 > 0);
    let names: Vec<_> = fs::read_dir(dir.path())
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    assert!(
        names
            .iter()
            .all(|name| !name.to_string_lossy().contains(".tmp")),
        "{names:?}"
    );
}

#[test]
fn a_folder_that_went_is_not_an_empty_one() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("vault");
    let aside = dir.path().join("aside");
    fs::create_dir(&folder).unwrap();
    write(&folder, "a.md");
    let store = open(&folder);
    assert_eq!(store.scan().root, RootState::Ok);
    fs::rename(&folder, &aside).unwrap();
    let scan = store.scan();
    assert_eq!((scan.root, scan.files.len()), (RootState::Missing, 0));
    assert!(
        store.read("a.md").is_err() && store.stat("a.md").is_err(),
        "it could not be looked at"
    );
    fs::rename(&aside, &folder).unwrap();
    assert_eq!(listed(&store), ["a.md"]);
}

#[test]
fn pages_that_left_their_mount_are_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let paths = Paths::tenant(dir.path(), "t").unwrap();
    // As remembered from a time when the pages were on a mount of their own.
    fs::write(paths.state.join("root.json"), r#"{"own_device":true}"#).unwrap();
    let store = FsStore::open(&paths, Env::system()).unwrap();
    assert_eq!(store.scan().root, RootState::OtherDevice);
    store.accept_root().unwrap();
    drop(store);
    let store = FsStore::open(&paths, Env::system()).unwrap();
    assert_eq!(store.scan().root, RootState::Ok);
}

#[test]
fn unreadable_folders_are_unknown() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "a.md");
    write(dir.path(), "shut/b.md");
    fs::set_permissions(dir.path().join("shut"), fs::Permissions::from_mode(0o000)).unwrap();
    let superuser = fs::read_dir(dir.path().join("shut")).is_ok();
    let store = open(dir.path());
    let scan = store.scan();
    if !superuser {
        assert_eq!(scan.unknown.len(), 1);
        assert_eq!(
            (scan.unknown[0].path.as_str(), scan.unknown[0].is_dir),
            ("shut", true)
        );
        assert!(store.read("shut/b.md").is_err());
    }
    assert_eq!(scan.root, RootState::Ok);
    fs::set_permissions(dir.path().join("shut"), fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(listed(&store), ["a.md", "shut/b.md"]);
}

#[test]
fn leftovers_of_a_crash_are_cleaned_but_a_save_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    // SHA-256 of the empty text begins with e3b0c44298fc1c14.
    write(
        dir.path(),
        "sub/.escurel-e3b0c44298fc1c14-0000000000000000-abcdef01-3.tmp",
    );
    fs::write(
        dir.path()
            .join(".escurel-e3b0c44298fc1c14-e3b0c44298fc1c14-abcdef01-4.tmp"),
        "",
    )
    .unwrap();
    write(dir.path(), ".other.tmp");
    let store = open(dir.path());
    store.scan();
    assert_eq!(store.warnings().len(), 1, "{:?}", store.warnings());
    let rescued: Vec<_> = fs::read_dir(dir.path().join(".escurel/rescued"))
        .unwrap()
        .collect();
    assert_eq!(rescued.len(), 1);
    assert!(dir.path().join(".other.tmp").exists());
    assert_eq!(fs::read_dir(dir.path().join("sub")).unwrap().count(), 0);
    assert!(!vault(dir.path()).read_only);
}
