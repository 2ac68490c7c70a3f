//! One owner per store: an advisory lock that ends with its process.
//!
//! It holds on one host only; a folder that is shared over a network needs an
//! agreement of its own.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::sys;
use crate::StoreError;

/// Held until dropped or until the process ends, however it ends.
pub struct Lock {
    file: Mutex<File>,
}

impl Drop for Lock {
    fn drop(&mut self) {
        sys::unlock(&self.file.lock());
    }
}

/// Who has the lock.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Holder {
    /// 0 when the holder has not said yet.
    pub pid: u32,
    pub address: Option<String>,
}

impl Lock {
    /// The inner `Err` names the process that has it.
    pub fn acquire(path: &Path) -> Result<Result<Lock, Holder>, StoreError> {
        let fail = |error| StoreError::from_io(path, error);
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(fail)?;
        if !sys::try_lock(&file).map_err(fail)? {
            return Ok(Err(read_holder(&mut file)));
        }
        let lock = Lock {
            file: Mutex::new(file),
        };
        lock.write_holder(None).map_err(fail)?;
        Ok(Ok(lock))
    }

    /// Tells others where the owner listens.
    pub fn publish(&self, address: &str) -> Result<(), StoreError> {
        self.write_holder(Some(address.to_owned()))
            .map_err(|error| StoreError::from_io(Path::new("the lock file"), error))
    }

    fn write_holder(&self, address: Option<String>) -> io::Result<()> {
        let mut text = serde_json::to_vec(&Holder {
            pid: std::process::id(),
            address,
        })?;
        text.push(b'\n');
        let mut file = self.file.lock();
        file.seek(SeekFrom::Start(0))?;
        file.write_all(&text)?;
        file.set_len(text.len() as u64)
    }
}

/// A holder that is just writing its line is read again once it is whole.
fn read_holder(file: &mut File) -> Holder {
    for _ in 0..20 {
        let mut text = String::new();
        let read = file
            .seek(SeekFrom::Start(0))
            .and_then(|_| file.read_to_string(&mut text));
        let line = text.lines().next().unwrap_or_default();
        if read.is_ok()
            && let Ok(holder) = serde_json::from_str(line)
        {
            return holder;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    Holder {
        pid: 0,
        address: None,
    }
}
