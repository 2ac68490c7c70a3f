//! Journal files in a folder.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use super::Disk;

/// Suffix of files that are being replaced; leftovers of a crash are removed.
const TEMP_SUFFIX: &str = ".new";

pub(crate) struct LocalDisk {
    root: PathBuf,
    read_only: bool,
    open: Mutex<HashMap<String, Arc<File>>>,
}

impl LocalDisk {
    pub(crate) fn new(root: &Path, read_only: bool) -> LocalDisk {
        LocalDisk {
            root: root.to_path_buf(),
            read_only,
            open: Mutex::new(HashMap::new()),
        }
    }

    /// Removes what a crash left in the middle of [`Disk::put`]; what it left
    /// otherwise has a durable name from here on.
    pub(crate) fn clean(&self, dir: &str) -> io::Result<()> {
        for name in self.list(dir)? {
            if name.ends_with(TEMP_SUFFIX) {
                fs::remove_file(self.root.join(dir).join(name))?;
            }
        }
        match sync_dir(&self.root.join(dir)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    fn existing(&self, name: &str) -> io::Result<Option<Arc<File>>> {
        if let Some(file) = self.open.lock().get(name) {
            return Ok(Some(file.clone()));
        }
        let opened = OpenOptions::new()
            .read(true)
            .write(!self.read_only)
            .open(self.root.join(name));
        match opened {
            Ok(file) => Ok(Some(self.keep(name, file))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn existing_or_err(&self, name: &str) -> io::Result<Arc<File>> {
        self.existing(name)?
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn created(&self, name: &str) -> io::Result<Arc<File>> {
        if let Some(file) = self.existing(name)? {
            return Ok(file);
        }
        let path = self.root.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .open(&path)?;
        self.sync_parent(name)?;
        Ok(self.keep(name, file))
    }

    fn keep(&self, name: &str, file: File) -> Arc<File> {
        let file = Arc::new(file);
        self.open.lock().insert(name.to_owned(), file.clone());
        file
    }

    /// The folder's and, for a new folder, the root's entry.
    fn sync_parent(&self, name: &str) -> io::Result<()> {
        let path = self.root.join(name);
        if let Some(parent) = path.parent() {
            sync_dir(parent)?;
            if parent != self.root {
                sync_dir(&self.root)?;
            }
        }
        Ok(())
    }
}

impl Disk for LocalDisk {
    fn list(&self, dir: &str) -> io::Result<Vec<String>> {
        let entries = match fs::read_dir(self.root.join(dir)) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut names = Vec::new();
        for entry in entries {
            if let Ok(name) = entry?.file_name().into_string() {
                names.push(name);
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    fn len(&self, name: &str) -> io::Result<Option<u64>> {
        match self.existing(name)? {
            Some(file) => Ok(Some(file.metadata()?.len())),
            None => Ok(None),
        }
    }

    fn read_at(&self, name: &str, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        let file = self.existing_or_err(name)?;
        let mut bytes = vec![0; len];
        let mut filled = 0;
        while filled < len {
            match read_at(&file, &mut bytes[filled..], offset + filled as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        bytes.truncate(filled);
        Ok(bytes)
    }

    fn write_at(&self, name: &str, mut offset: u64, mut bytes: &[u8]) -> io::Result<()> {
        let file = self.created(name)?;
        while !bytes.is_empty() {
            match write_at(&file, bytes, offset) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => {
                    bytes = &bytes[count..];
                    offset += count as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn sync(&self, name: &str) -> io::Result<()> {
        self.existing_or_err(name)?.sync_data()
    }

    fn truncate(&self, name: &str, len: u64) -> io::Result<()> {
        let file = self.existing_or_err(name)?;
        file.set_len(len)?;
        file.sync_data()
    }

    fn put(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let path = self.root.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        let mut temp = path.clone().into_os_string();
        temp.push(TEMP_SUFFIX);
        let temp = PathBuf::from(temp);
        let mut file = File::create(&temp)?;
        let written = file.write_all(bytes).and_then(|()| file.sync_all());
        drop(file);
        self.open.lock().remove(name);
        if let Err(error) = written.and_then(|()| fs::rename(&temp, &path)) {
            let _ = fs::remove_file(&temp);
            return Err(error);
        }
        // A reader may have opened the former file in between.
        self.open.lock().remove(name);
        self.sync_parent(name)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.open.lock().remove(name);
        match fs::remove_file(self.root.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => self.sync_parent(name),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }
}

/// Folders cannot be synced on every system; there the rename is enough.
pub(crate) fn sync_dir(folder: &Path) -> io::Result<()> {
    match cfg!(unix) {
        true => File::open(folder)?.sync_all(),
        false => Ok(()),
    }
}

#[cfg(unix)]
fn read_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, bytes, offset)
}

#[cfg(unix)]
fn write_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::write_at(file, bytes, offset)
}

#[cfg(windows)]
fn read_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, bytes, offset)
}

#[cfg(windows)]
fn write_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_write(file, bytes, offset)
}
