//! Where everything is, for a vault and for a tenant of a data directory.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::{StoreError, hex};

/// How pages and state are arranged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Layout {
    /// Any folder of markdown, served in place.
    Vault,
    /// One tenant of a data directory.
    Tenant,
}

/// Where things are. Vault: pages = folder, state = `folder/.escurel`, or the
/// user's cache folder when the folder is read-only. Tenant: pages =
/// `<t>/markdown`, state = `<t>`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Paths {
    pub layout: Layout,
    /// Wire paths are relative to this.
    pub root: PathBuf,
    pub pages: PathBuf,
    pub state: PathBuf,
    pub journal: PathBuf,
    pub index: PathBuf,
    pub cache: PathBuf,
    pub lock: PathBuf,
    pub socket: PathBuf,
    pub read_only: bool,
}

/// Where the state of a folder that was opened before is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kept {
    /// Beside the pages.
    Inside,
    /// In the user's cache folder: it was opened read-only.
    Cache,
}

/// Name of the state folder of a vault.
pub(crate) const STATE_DIR: &str = ".escurel";

impl Paths {
    /// A folder that holds `tenants/` is a data directory, anything else a vault.
    pub fn detect(path: &Path, tenant: &str, cache_home: &Path) -> Result<Paths, StoreError> {
        match is_data_dir(path) {
            true => Paths::tenant(path, tenant),
            false => Paths::vault(path, cache_home),
        }
    }

    /// Whether the folder was opened before. Creates nothing.
    pub fn kept(path: &Path, tenant: &str, cache_home: &Path) -> Result<Option<Kept>, StoreError> {
        if is_data_dir(path) {
            check_tenant(tenant)?;
            let state = path.join("tenants").join(tenant);
            return Ok(was_opened(&state).then_some(Kept::Inside));
        }
        let folder = existing_folder(path)?;
        if was_opened(&folder.join(STATE_DIR)) {
            return Ok(Some(Kept::Inside));
        }
        Ok(was_opened(&cache_state(&folder, cache_home)).then_some(Kept::Cache))
    }

    /// Reads the folder with all its state in `scratch`, so that it stays as it is.
    pub fn aside(path: &Path, tenant: &str, scratch: &Path) -> Result<Paths, StoreError> {
        make_state(scratch).map_err(|error| StoreError::from_io(scratch, error))?;
        let state = scratch.to_path_buf();
        if !is_data_dir(path) {
            let folder = existing_folder(path)?;
            return Ok(layout(Layout::Vault, folder.clone(), folder, state, true));
        }
        check_tenant(tenant)?;
        let root = existing_folder(&path.join("tenants").join(tenant))?;
        let pages = existing_folder(&root.join("markdown"))?;
        Ok(layout(Layout::Tenant, root, pages, state, true))
    }

    /// Adds only `.escurel/` to the folder, ignored by git.
    pub fn vault(folder: &Path, cache_home: &Path) -> Result<Paths, StoreError> {
        let folder = existing_folder(folder)?;
        let state = folder.join(STATE_DIR);
        match make_state(&state) {
            Ok(()) => Ok(layout(Layout::Vault, folder.clone(), folder, state, false)),
            Err(error) if is_refusal(&error) => Paths::vault_read_only(&folder, cache_home),
            Err(error) => Err(StoreError::from_io(&state, error)),
        }
    }

    /// Serves the folder without writing into it; its state is in the user's
    /// cache folder under a name derived from the absolute path.
    pub fn vault_read_only(folder: &Path, cache_home: &Path) -> Result<Paths, StoreError> {
        let folder = existing_folder(folder)?;
        let state = cache_state(&folder, cache_home);
        make_state(&state).map_err(|error| StoreError::from_io(&state, error))?;
        Ok(layout(Layout::Vault, folder.clone(), folder, state, true))
    }

    /// Creates the tenant's folders when they are not there.
    pub fn tenant(data_dir: &Path, tenant: &str) -> Result<Paths, StoreError> {
        check_tenant(tenant)?;
        let root = data_dir.join("tenants").join(tenant);
        for part in ["markdown", "journal", "index", "cache", "blobs"] {
            let folder = root.join(part);
            if let Err(error) = fs::create_dir_all(&folder)
                && !(is_refusal(&error) && root.join("markdown").is_dir())
            {
                return Err(StoreError::from_io(&folder, error));
            }
        }
        let root = existing_folder(&root)?;
        let read_only = !can_write(&root);
        Ok(layout(
            Layout::Tenant,
            root.clone(),
            root.join("markdown"),
            root,
            read_only,
        ))
    }
}

fn cache_state(folder: &Path, cache_home: &Path) -> PathBuf {
    let digest = Sha256::digest(folder.as_os_str().as_encoded_bytes());
    cache_home.join("escurel").join(hex::encode(&digest[..12]))
}

fn was_opened(state: &Path) -> bool {
    state.join("lock").exists() || state.join("journal/audit").exists()
}

/// Whether the folder is a data directory rather than a vault.
fn is_data_dir(path: &Path) -> bool {
    path.join("tenants").is_dir()
}

fn layout(layout: Layout, root: PathBuf, pages: PathBuf, state: PathBuf, read_only: bool) -> Paths {
    Paths {
        layout,
        root,
        pages,
        journal: state.join("journal"),
        index: state.join("index"),
        cache: state.join("cache"),
        lock: state.join("lock"),
        socket: state.join("socket"),
        state,
        read_only,
    }
}

fn existing_folder(folder: &Path) -> Result<PathBuf, StoreError> {
    let real = fs::canonicalize(folder).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => StoreError::FolderNotFound(folder.to_path_buf()),
        io::ErrorKind::NotADirectory => StoreError::NotAFolder(folder.to_path_buf()),
        _ => StoreError::from_io(folder, error),
    })?;
    if !real.is_dir() {
        return Err(StoreError::NotAFolder(folder.to_path_buf()));
    }
    match fs::read_dir(&real) {
        Ok(_) => Ok(real),
        Err(error) => Err(StoreError::from_io(folder, error)),
    }
}

fn make_state(state: &Path) -> io::Result<()> {
    for part in ["journal", "index", "cache"] {
        fs::create_dir_all(state.join(part))?;
    }
    let ignore = state.join(".gitignore");
    if !ignore.exists() {
        fs::write(&ignore, "*\n")?;
    }
    match can_write(state) {
        true => Ok(()),
        false => Err(io::ErrorKind::PermissionDenied.into()),
    }
}

/// Permission bits do not tell on read-only mounts, so one file is made.
fn can_write(folder: &Path) -> bool {
    let probe = folder.join(format!(".probe-{}", std::process::id()));
    let made = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .open(&probe);
    made.is_ok() && fs::remove_file(&probe).is_ok()
}

fn is_refusal(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem
    )
}

fn check_tenant(tenant: &str) -> Result<(), StoreError> {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let bytes = tenant.as_bytes();
    let good = (1..=63).contains(&bytes.len())
        && plain(bytes[0])
        && bytes.iter().all(|b| plain(*b) || matches!(b, b'_' | b'-'));
    match good {
        true => Ok(()),
        false => Err(StoreError::BadTenant {
            tenant: tenant.chars().take(80).collect(),
        }),
    }
}
