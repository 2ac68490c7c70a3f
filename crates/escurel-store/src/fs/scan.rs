//! One look at all page files, on all cores.
//!
//! Symbolic links are not followed: what they point to inside the folder is
//! listed under its own name, and what is outside is not ours.

use std::io;
use std::path::{Path, PathBuf};

use ignore::{DirEntry, WalkBuilder, WalkState};
use parking_lot::Mutex;
use rayon::slice::ParallelSliceMut;

use super::sys;
use super::temp::Names;
use crate::pathname;
use crate::{ScannedFile, Unreadable};

/// Patterns of what is not looked at, in the syntax of `.gitignore`.
const IGNORE_FILE: &str = ".escurelignore";

#[derive(Default)]
pub(crate) struct Found {
    pub(crate) files: Vec<ScannedFile>,
    pub(crate) unknown: Vec<Unreadable>,
    /// Temporary files that an earlier process left.
    pub(crate) leftovers: Vec<PathBuf>,
}

/// Walks `folder`, a part of `root`; paths are relative to `root`.
pub(crate) fn walk(root: &Path, folder: &Path, names: &Names) -> Found {
    let all = Mutex::new(Found::default());
    builder(folder).build_parallel().run(|| {
        let mut local = Local {
            root,
            names,
            found: Found::default(),
            all: &all,
        };
        Box::new(move |entry| {
            local.visit(entry);
            WalkState::Continue
        })
    });
    let mut found = all.into_inner();
    found.files.par_sort_unstable_by(|a, b| a.path.cmp(&b.path));
    found.unknown.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    found
}

/// The walk's rules, without what depends on the visitor.
pub(crate) fn builder(folder: &Path) -> WalkBuilder {
    let mut builder = WalkBuilder::new(folder);
    builder
        .standard_filters(false)
        .add_custom_ignore_filename(IGNORE_FILE)
        .follow_links(false)
        .threads(std::thread::available_parallelism().map_or(2, |n| n.get().min(8)))
        .filter_entry(|entry| entry.depth() == 0 || !is_skipped_folder(entry));
    builder
}

fn is_skipped_folder(entry: &DirEntry) -> bool {
    let is_dir = entry.file_type().is_some_and(|kind| kind.is_dir());
    is_dir && entry.file_name().to_str().is_some_and(pathname::skipped)
}

/// What one thread found, handed over when the thread ends.
struct Local<'a> {
    root: &'a Path,
    names: &'a Names,
    found: Found,
    all: &'a Mutex<Found>,
}

impl Drop for Local<'_> {
    fn drop(&mut self) {
        let mut all = self.all.lock();
        all.files.append(&mut self.found.files);
        all.unknown.append(&mut self.found.unknown);
        all.leftovers.append(&mut self.found.leftovers);
    }
}

impl Local<'_> {
    fn visit(&mut self, entry: Result<DirEntry, ignore::Error>) {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => return self.failed(&error, None),
        };
        if let Some(error) = entry.error() {
            tracing::warn!(%error, path = %entry.path().display(), "a line of {IGNORE_FILE} is not understood");
        }
        if !entry.file_type().is_some_and(|kind| kind.is_file()) {
            return;
        }
        let name = entry.file_name().to_string_lossy();
        if self.names.is_leftover(&name) {
            self.found.leftovers.push(entry.into_path());
        } else if pathname::is_page(&name) && !pathname::skipped(&name) {
            match entry.metadata() {
                Ok(found) => {
                    let path = self.wire(entry.path());
                    self.found.files.push(ScannedFile {
                        path,
                        stat: sys::stat_of(&found),
                    });
                }
                Err(error) => self.failed(&error, Some(entry.path())),
            }
        }
    }

    fn wire(&self, path: &Path) -> String {
        pathname::encode(path.strip_prefix(self.root).unwrap_or(path))
    }

    /// What vanished during the walk is gone; what cannot be looked at is unknown.
    fn failed(&mut self, error: &ignore::Error, file: Option<&Path>) {
        if error
            .io_error()
            .is_some_and(|error| error.kind() == io::ErrorKind::NotFound)
        {
            return;
        }
        let path = file.or_else(|| path_of(error));
        let path = path.map(|path| self.wire(path)).unwrap_or_default();
        self.found.unknown.push(Unreadable {
            path,
            is_dir: file.is_none(),
            reason: error.to_string(),
        });
    }
}

fn path_of(error: &ignore::Error) -> Option<&Path> {
    match error {
        ignore::Error::WithPath { path, .. } => Some(path),
        ignore::Error::WithDepth { err, .. } | ignore::Error::WithLineNumber { err, .. } => {
            path_of(err)
        }
        ignore::Error::Loop { child, .. } => Some(child),
        _ => None,
    }
}
