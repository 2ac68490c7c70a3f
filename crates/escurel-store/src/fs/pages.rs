//! Page files in their folder.

use std::collections::HashSet;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use super::root::Root;
use super::temp::{self, Names};
use super::{Paths, scan, sys};
use crate::disk::sync_dir;
use crate::pathname;
use crate::{Env, RootState, Scan, Stat, StoreError, Unreadable};

/// From so many files on, one call for the whole file system is quicker.
const SYNC_ALL_FROM: usize = 64;

pub(crate) struct Pages {
    pub(super) env: Env,
    root: PathBuf,
    pages: PathBuf,
    rescue: PathBuf,
    pub(super) read_only: bool,
    pub(super) names: Names,
    state: Root,
    /// Leftovers of a crash are cleaned by the first scan, which sees them.
    cleaned: AtomicBool,
    warnings: Mutex<Vec<String>>,
    dirty: Mutex<Dirty>,
}

#[derive(Default)]
struct Dirty {
    files: HashSet<PathBuf>,
    folders: HashSet<PathBuf>,
}

impl Pages {
    pub(crate) fn open(paths: &Paths, env: Env, state_writable: bool) -> Result<Pages, StoreError> {
        Ok(Pages {
            names: Names::new(env.ids.salt()),
            env,
            root: paths.root.clone(),
            pages: paths.pages.clone(),
            rescue: paths.state.join("rescued"),
            read_only: paths.read_only,
            state: Root::open(paths, state_writable)?,
            cleaned: AtomicBool::new(paths.read_only),
            warnings: Mutex::new(Vec::new()),
            dirty: Mutex::new(Dirty::default()),
        })
    }

    pub(crate) fn warnings(&self) -> Vec<String> {
        self.warnings.lock().clone()
    }

    pub(crate) fn scan(&self) -> Scan {
        let before = self.state.state();
        if before != RootState::Ok {
            return Scan {
                files: Vec::new(),
                unknown: Vec::new(),
                root: before,
            };
        }
        let mut found = scan::walk(&self.root, &self.pages, &self.names);
        // Unmounted while we walked: what was not seen is not gone.
        let mut root = self.state.state();
        let top = pathname::encode(self.pages.strip_prefix(&self.root).unwrap_or(Path::new("")));
        if let Some(at) = found.unknown.iter().position(|unknown| unknown.path == top) {
            root = RootState::Unreadable(found.unknown.swap_remove(at).reason);
        }
        if !self.cleaned.swap(true, Ordering::SeqCst) {
            self.clean(&found.leftovers);
        }
        let mut unknown: Vec<Unreadable> = found.unknown;
        unknown.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        Scan {
            files: found.files,
            unknown,
            root,
        }
    }

    fn clean(&self, leftovers: &[PathBuf]) {
        for leftover in leftovers {
            let warning = match temp::clean(leftover, &self.rescue) {
                Ok(None) => continue,
                Ok(Some(kept)) => format!(
                    "{} held a save that a crash interrupted; it is kept as {}",
                    leftover.display(),
                    kept.display()
                ),
                Err(error) => format!("{} could not be cleaned up: {error}", leftover.display()),
            };
            self.warnings.lock().push(warning);
        }
    }

    /// Where a page is on disk. The path's form is checked, nothing is opened.
    pub(super) fn locate(&self, path: &str) -> io::Result<PathBuf> {
        let refuse = |error: StoreError| io::Error::new(io::ErrorKind::InvalidInput, error);
        let full = self.root.join(pathname::decode(path).map_err(refuse)?);
        let why = match full.strip_prefix(&self.pages) {
            Ok(inside) if inside.as_os_str().is_empty() => "it names the folder of pages itself",
            Ok(_) => return Ok(full),
            Err(_) => "it is outside the folder of pages; paths begin with `markdown/`",
        };
        Err(refuse(StoreError::BadPath {
            path: path.chars().take(256).collect(),
            why,
        }))
    }

    /// "Not there" holds only while the folder of pages itself is there.
    fn absent<T>(&self, error: io::Error) -> io::Result<Option<T>> {
        if !sys::is_absent(&error) {
            return Err(error);
        }
        match self.state.state() {
            RootState::Ok => Ok(None),
            other => Err(io::Error::other(format!(
                "the folder of pages cannot be looked at: {other:?}"
            ))),
        }
    }

    pub(crate) fn stat(&self, path: &str) -> io::Result<Option<Stat>> {
        match sys::look(&self.locate(path)?) {
            Ok(found) if found.is_file() => Ok(Some(sys::stat_of(&found))),
            Ok(_) => Ok(None),
            Err(error) => self.absent(error),
        }
    }

    pub(crate) fn read(&self, path: &str) -> io::Result<Option<(Vec<u8>, Stat)>> {
        let full = self.locate(path)?;
        // A file that is written while we read is read again, so that the bytes
        // belong to the stat that is answered.
        for _ in 0..8 {
            let mut file = match sys::open_plain(&full) {
                Ok(file) => file,
                Err(error) => return self.absent(error),
            };
            let before = file.metadata()?;
            if !before.is_file() {
                return Ok(None);
            }
            let mut bytes = Vec::with_capacity(usize::try_from(before.len()).unwrap_or(0) + 1);
            file.read_to_end(&mut bytes)?;
            let stat = sys::stat_of(&before);
            if stat == sys::stat_of(&file.metadata()?) && stat.size == bytes.len() as u64 {
                return Ok(Some((bytes, stat)));
            }
        }
        Err(io::Error::new(
            io::ErrorKind::ResourceBusy,
            "the file is being written; try again",
        ))
    }

    pub(super) fn mark_dirty(&self, file: Option<&Path>, folder: &Path) {
        let mut dirty = self.dirty.lock();
        dirty.files.extend(file.map(Path::to_path_buf));
        dirty.folders.insert(folder.to_path_buf());
    }

    /// With the folders above it, which may be new as well.
    pub(crate) fn mark_unflushed(&self, path: &str) -> io::Result<()> {
        let full = self.locate(path)?;
        let folders = full.ancestors().skip(1);
        let inside = folders.take_while(|folder| folder.starts_with(&self.pages));
        inside.for_each(|folder| self.mark_dirty(Some(&full), folder));
        Ok(())
    }

    pub(crate) fn flush(&self) -> io::Result<()> {
        let taken = std::mem::take(&mut *self.dirty.lock());
        if taken.files.is_empty() && taken.folders.is_empty() {
            return Ok(());
        }
        let flushed = self
            .env
            .failpoints
            .reach("pages.before_flush")
            .and_then(|()| self.sync(&taken));
        if flushed.is_err() {
            let mut dirty = self.dirty.lock();
            dirty.files.extend(taken.files);
            dirty.folders.extend(taken.folders);
        }
        flushed
    }

    fn sync(&self, dirty: &Dirty) -> io::Result<()> {
        if dirty.files.len() >= SYNC_ALL_FROM && sys::sync_file_system(&self.pages)? {
            return Ok(());
        }
        for file in &dirty.files {
            gone_is_fine(fs::File::open(file).and_then(|file| file.sync_all()))?;
        }
        for folder in &dirty.folders {
            gone_is_fine(sync_dir(folder))?;
        }
        Ok(())
    }
}

/// What was removed since needs no fsync of its own.
fn gone_is_fine(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if sys::is_absent(&error) => Ok(()),
        other => other,
    }
}
