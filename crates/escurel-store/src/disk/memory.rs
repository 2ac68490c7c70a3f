//! Journal files in memory that know how much of them was synced.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use parking_lot::Mutex;

use super::Disk;

#[derive(Default)]
pub(crate) struct MemDisk {
    files: Mutex<BTreeMap<String, MemFile>>,
    /// A flush of such files is not carried out, as if the code lacked it.
    forgets: Option<&'static str>,
}

/// Files only grow or are cut, so what is durable is always a prefix.
#[derive(Default, Clone)]
struct MemFile {
    bytes: Vec<u8>,
    /// `None`: not even the file's name is durable.
    durable: Option<usize>,
}

impl MemDisk {
    pub(crate) fn forgetting(forgets: Option<&'static str>) -> MemDisk {
        MemDisk {
            forgets,
            ..MemDisk::default()
        }
    }

    /// What a power loss leaves: the synced bytes and at most `torn` more of
    /// each file. Whoever still writes to the old disk changes nothing of it.
    pub(crate) fn after_crash(&self, torn: usize) -> MemDisk {
        let mut files = self.files.lock().clone();
        files.retain(|_, file| file.durable.is_some());
        for file in files.values_mut() {
            let keep = file
                .durable
                .unwrap_or(0)
                .saturating_add(torn)
                .min(file.bytes.len());
            file.bytes.truncate(keep);
            file.durable = Some(keep);
        }
        MemDisk {
            files: Mutex::new(files),
            forgets: self.forgets,
        }
    }

    /// A killed process loses nothing that it wrote, synced or not.
    pub(crate) fn after_kill(&self) -> MemDisk {
        MemDisk {
            files: Mutex::new(self.files.lock().clone()),
            forgets: self.forgets,
        }
    }

    fn with<T>(&self, name: &str, f: impl FnOnce(&mut MemFile) -> T) -> io::Result<T> {
        let mut files = self.files.lock();
        files
            .get_mut(name)
            .map(f)
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

impl Disk for MemDisk {
    fn list(&self, dir: &str) -> io::Result<Vec<String>> {
        let prefix = format!("{dir}/");
        let files = self.files.lock();
        Ok(files
            .keys()
            .filter_map(|name| name.strip_prefix(&prefix))
            .map(str::to_owned)
            .collect())
    }

    fn len(&self, name: &str) -> io::Result<Option<u64>> {
        Ok(self
            .files
            .lock()
            .get(name)
            .map(|file| file.bytes.len() as u64))
    }

    fn read_at(&self, name: &str, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        self.with(name, |file| {
            let start = usize::try_from(offset)
                .unwrap_or(usize::MAX)
                .min(file.bytes.len());
            let end = start.saturating_add(len).min(file.bytes.len());
            file.bytes[start..end].to_vec()
        })
    }

    fn write_at(&self, name: &str, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut files = self.files.lock();
        let file = files.entry(name.to_owned()).or_default();
        let start = usize::try_from(offset).map_err(|_| io::ErrorKind::FileTooLarge)?;
        if start > file.bytes.len() {
            file.bytes.resize(start, 0);
        }
        file.durable = file.durable.map(|durable| durable.min(start));
        file.bytes.truncate(start);
        file.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn sync(&self, name: &str) -> io::Result<()> {
        if self.forgets.is_some_and(|folder| name.starts_with(folder)) {
            return Ok(());
        }
        self.with(name, |file| file.durable = Some(file.bytes.len()))
    }

    fn truncate(&self, name: &str, len: u64) -> io::Result<()> {
        self.with(name, |file| {
            file.bytes
                .truncate(usize::try_from(len).unwrap_or(usize::MAX));
            file.durable = Some(file.bytes.len());
        })
    }

    fn put(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let file = MemFile {
            bytes: bytes.to_vec(),
            durable: Some(bytes.len()),
        };
        self.files.lock().insert(name.to_owned(), file);
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.files.lock().remove(name);
        Ok(())
    }

    fn path(&self, name: &str) -> PathBuf {
        PathBuf::from("memory").join(name)
    }
}
