//! Folders, tenants, locks.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use escurel_store::{Env, FsStore, Layout, Lock, Paths, Store};

use crate::support::{open, vault};

#[test]
fn a_vault_gets_one_ignored_folder() {
    let dir = tempfile::tempdir().unwrap();
    let paths = vault(dir.path());
    assert_eq!((paths.layout, paths.read_only), (Layout::Vault, false));
    assert_eq!(
        fs::read_to_string(dir.path().join(".escurel/.gitignore")).unwrap(),
        "*\n"
    );
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn folders_that_cannot_be_served_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.md");
    fs::write(&file, "x").unwrap();
    let code = |path: &std::path::Path| Paths::vault(path, dir.path()).unwrap_err().code();
    assert_eq!(code(&dir.path().join("none")), "folder_not_found");
    assert_eq!(code(&file), "not_a_folder");
    assert_eq!(code(&file.join("below")), "not_a_folder");
}

#[test]
fn tenants_have_plain_names() {
    let dir = tempfile::tempdir().unwrap();
    let paths = Paths::tenant(dir.path(), "acme_1-x").unwrap();
    assert!(paths.pages.is_dir() && paths.journal.is_dir());
    assert!(paths.pages.ends_with("tenants/acme_1-x/markdown"));
    let long = "a".repeat(64);
    for bad in [
        "",
        "..",
        "a/b",
        "Acme",
        "-a",
        "_a",
        "a.b",
        "ä",
        long.as_str(),
        "a\0",
    ] {
        assert_eq!(
            Paths::tenant(dir.path(), bad).unwrap_err().code(),
            "bad_tenant",
            "{bad}"
        );
    }
    let found = Paths::detect(dir.path(), "acme_1-x", dir.path()).unwrap();
    assert_eq!(found, paths);
    assert_eq!(
        Paths::detect(&paths.pages, "default", dir.path())
            .unwrap()
            .layout,
        Layout::Vault
    );
}

#[test]
fn tenant_pages_are_below_markdown() {
    let dir = tempfile::tempdir().unwrap();
    let store = FsStore::open(&Paths::tenant(dir.path(), "t").unwrap(), Env::system()).unwrap();
    store
        .replace("markdown/instances/a/b.md", None, b"x")
        .unwrap();
    assert_eq!(store.scan().files[0].path, "markdown/instances/a/b.md");
    for path in ["journal/a.md", "a.md", "markdown"] {
        assert!(store.replace(path, None, b"x").is_err(), "{path}");
    }
}

#[test]
fn a_read_only_folder_keeps_its_state_elsewhere() {
    let (dir, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(dir.path().join("a.md"), "x").unwrap();
    let paths = Paths::vault_read_only(dir.path(), cache.path()).unwrap();
    assert!(paths.read_only && paths.state.starts_with(cache.path()));
    let store = FsStore::open(&paths, Env::system()).unwrap();
    assert!(store.read_only());
    assert_eq!(store.read("a.md").unwrap().unwrap().0, b"x");
    let error = store.replace("a.md", Some(b"x"), b"y").unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ReadOnlyFilesystem);
    assert!(store.remove("a.md", b"x").is_err());
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o555)).unwrap();
    let found = Paths::vault(dir.path(), cache.path()).unwrap();
    // The superuser may write in any folder.
    assert!(found.read_only || fs::write(dir.path().join("probe"), "").is_ok());
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn one_owner_at_a_time() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    store.lock().unwrap().publish("127.0.0.1:8080").unwrap();
    let error = FsStore::open(&vault(dir.path()), Env::system())
        .err()
        .unwrap();
    assert_eq!(error.code(), "lock_held");
    let text = error.to_string();
    assert!(
        text.contains(&std::process::id().to_string()) && text.contains("127.0.0.1:8080"),
        "{text}"
    );
    drop(store);
    assert!(Lock::acquire(&vault(dir.path()).lock).unwrap().is_ok());
}
