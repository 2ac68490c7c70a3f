//! One error type: a stable code for programs, a sentence with the next step
//! for people.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::ObjectId;

/// Cheap to clone: one failed group commit answers several callers.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    #[error("there is no folder {0}. Check the spelling, or create it first")]
    FolderNotFound(PathBuf),
    #[error("{0} is not a folder. Give the folder that holds the pages")]
    NotAFolder(PathBuf),
    #[error("no permission for {0}. Give this user access to it, or run as the user who owns it")]
    Permission(PathBuf),
    #[error("no space left while writing {0}. Free some space and try again; nothing was changed")]
    DiskFull(PathBuf),
    #[error(
        "the folder is in use by process {pid}{}",
        address.as_deref().map(|a| format!(" at {a}")).unwrap_or_default()
    )]
    LockHeld { pid: u32, address: Option<String> },
    #[error("the store was opened read-only. Open it with write permission to change something")]
    ReadOnly,
    #[error(
        "the journal is broken at record {seq}: {detail}. Pages are read from their files as they stand, without history, and writes are refused. Stop the server and restore the folder `journal` from a backup, or run `escurel journal repair`: it goes on with all history that can be read, and keeps the broken part beside it"
    )]
    JournalBroken { seq: u64, detail: String },
    #[error(
        "the journal has a record that is whole and not understood: {detail}. A newer release wrote it; repair the journal with that one. Nothing was changed"
    )]
    NotUnderstood { detail: String },
    #[error(
        "the journal could not be brought back to a known state after a failed write ({detail}). Restart the server"
    )]
    JournalPoisoned { detail: String },
    #[error(
        "the content {0} is not in the journal's objects. Run `escurel verify`, then restore it from a backup"
    )]
    ObjectMissing(ObjectId),
    #[error(
        "the content {id} is damaged in {file} at byte {offset}. Run `escurel verify`, then restore it from a backup"
    )]
    ObjectDamaged {
        id: ObjectId,
        file: String,
        offset: u64,
    },
    #[error("the content {0} was erased on purpose and cannot be brought back")]
    ContentErased(ObjectId),
    #[error(
        "`{tenant}` is not a tenant id. Use 1 to 63 of a-z, 0-9, - and _, the first a letter or digit"
    )]
    BadTenant { tenant: String },
    #[error("`{path}` cannot be a page path: {why}")]
    BadPath { path: String, why: &'static str },
    #[error(
        "`{text}` is not a page uid. A uid has 26 characters, such as 01J9Z3T8Q6W2N5K7M4R1C0XABV"
    )]
    BadUid { text: String },
    #[error("the record cannot be written: {0}")]
    BadRecord(String),
    #[error("the number {0} cannot be hashed. Give an integer within ±(2^53−1), or text")]
    BadNumber(String),
    #[error(
        "{what} is damaged: {detail}. Restore it from a backup, or delete it where it can be derived"
    )]
    Damaged { what: String, detail: String },
    #[error(
        "changes in {path} cannot be watched: {reason}. Changes are found by a regular rescan instead"
    )]
    WatchFailed { path: PathBuf, reason: String },
    #[error("{what}: {source}")]
    Io {
        what: String,
        source: Arc<io::Error>,
    },
}

impl StoreError {
    /// Stable name for programs; never changes once released.
    pub fn code(&self) -> &'static str {
        match self {
            StoreError::FolderNotFound(_) => "folder_not_found",
            StoreError::NotAFolder(_) => "not_a_folder",
            StoreError::Permission(_) => "permission_denied",
            StoreError::DiskFull(_) => "disk_full",
            StoreError::LockHeld { .. } => "lock_held",
            StoreError::ReadOnly => "read_only",
            StoreError::JournalBroken { .. } => "journal_broken",
            StoreError::NotUnderstood { .. } => "not_supported",
            StoreError::JournalPoisoned { .. } => "journal_poisoned",
            StoreError::ObjectMissing(_) => "object_missing",
            StoreError::ObjectDamaged { .. } => "object_damaged",
            StoreError::ContentErased(_) => "content_erased",
            StoreError::BadTenant { .. } => "bad_tenant",
            StoreError::BadPath { .. } => "bad_path",
            StoreError::BadUid { .. } => "bad_uid",
            StoreError::BadRecord(_) => "bad_record",
            StoreError::BadNumber(_) => "bad_number",
            StoreError::Damaged { .. } => "damaged",
            StoreError::WatchFailed { .. } => "watch_failed",
            StoreError::Io { .. } => "io",
        }
    }

    /// Whether the same call may succeed later without anybody repairing anything.
    pub fn retryable(&self) -> bool {
        matches!(
            self,
            StoreError::DiskFull(_) | StoreError::LockHeld { .. } | StoreError::Io { .. }
        )
    }

    /// Sorts an IO failure at `path` into the case a person can act on.
    pub fn from_io(path: &Path, error: io::Error) -> StoreError {
        match error.kind() {
            io::ErrorKind::PermissionDenied => StoreError::Permission(path.to_path_buf()),
            io::ErrorKind::ReadOnlyFilesystem => StoreError::Permission(path.to_path_buf()),
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                StoreError::DiskFull(path.to_path_buf())
            }
            _ => StoreError::Io {
                what: path.display().to_string(),
                source: Arc::new(error),
            },
        }
    }
}
