//! The beginning of a download. It lies in the model's folder and is locked by
//! whoever works there, so that two never do.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::FetchError;
use crate::model::sha256;

pub(crate) struct Part {
    file: File,
    path: PathBuf,
    /// Bytes that its folder must take, for the message when it cannot.
    needed: u64,
}

impl Part {
    /// Opens or begins the part and locks it; `waits` hears that somebody else
    /// holds it.
    pub fn claim(
        dir: &Path,
        name: &str,
        needed: u64,
        waits: &mut dyn FnMut(),
    ) -> Result<Part, FetchError> {
        let failed = |error| FetchError::writing(dir, needed, error);
        std::fs::create_dir_all(dir).map_err(failed)?;
        let path = Part::path(dir, name);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let file = options.open(&path).map_err(failed)?;
        if let Err(TryLockError::WouldBlock) = file.try_lock() {
            waits();
        }
        // Also for one that could not be tried.
        file.lock().map_err(failed)?;
        Ok(Part { file, path, needed })
    }

    pub fn path(dir: &Path, name: &str) -> PathBuf {
        dir.join(format!("{name}.part"))
    }

    pub fn len(&self) -> Result<u64, FetchError> {
        let metadata = self.file.metadata().map_err(|e| self.failed(e))?;
        Ok(metadata.len())
    }

    /// Leaves the first `bytes`; what is appended comes behind them.
    pub fn cut(&mut self, bytes: u64) -> Result<(), FetchError> {
        self.file.set_len(bytes).map_err(|e| self.failed(e))?;
        let end = self.file.seek(SeekFrom::End(0));
        end.map(drop).map_err(|e| self.failed(e))
    }

    pub fn append(&mut self, bytes: &[u8]) -> Result<(), FetchError> {
        self.file.write_all(bytes).map_err(|e| self.failed(e))
    }

    /// From the beginning.
    pub fn read(&mut self) -> Result<&mut File, FetchError> {
        self.file.rewind().map_err(|e| self.failed(e))?;
        Ok(&mut self.file)
    }

    pub fn sha256(&mut self) -> Result<String, FetchError> {
        let sum = sha256(self.read()?);
        sum.map_err(|e| self.failed(e))
    }

    /// Nobody needs it any more.
    pub fn remove(self) {
        let _ = std::fs::remove_file(&self.path);
    }

    fn failed(&self, error: std::io::Error) -> FetchError {
        let dir = self.path.parent().unwrap_or(&self.path);
        FetchError::writing(dir, self.needed, error)
    }
}
