//! The few file operations that the journal needs, on a real disk or in memory.
//!
//! Invariant of both: after [`Disk::sync`] or [`Disk::put`] has returned, the
//! bytes and the file's existence survive a power loss.

mod local;
mod memory;

use std::io;
use std::path::PathBuf;

pub(crate) use local::{LocalDisk, sync_dir};
pub(crate) use memory::MemDisk;

/// Names are relative, `/`-separated, at most one folder deep.
pub(crate) trait Disk: Send + Sync {
    /// Names of the files in a folder, sorted; a folder that is not there is empty.
    fn list(&self, dir: &str) -> io::Result<Vec<String>>;
    fn len(&self, name: &str) -> io::Result<Option<u64>>;
    /// Fewer bytes than asked for only at the end of the file.
    fn read_at(&self, name: &str, offset: u64, len: usize) -> io::Result<Vec<u8>>;
    /// Creates the file when it is not there.
    fn write_at(&self, name: &str, offset: u64, bytes: &[u8]) -> io::Result<()>;
    fn sync(&self, name: &str) -> io::Result<()>;
    /// Cuts the file, durably.
    fn truncate(&self, name: &str, len: u64) -> io::Result<()>;
    /// Replaces the whole file in one step, durably.
    fn put(&self, name: &str, bytes: &[u8]) -> io::Result<()>;
    fn remove(&self, name: &str) -> io::Result<()>;
    /// For messages.
    fn path(&self, name: &str) -> PathBuf;

    fn read_all(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        match self.len(name)? {
            None => Ok(None),
            Some(len) => {
                let len = usize::try_from(len).map_err(|_| io::ErrorKind::FileTooLarge)?;
                self.read_at(name, 0, len).map(Some)
            }
        }
    }
}
