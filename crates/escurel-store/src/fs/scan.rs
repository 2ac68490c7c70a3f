//! One look at all page files, on all cores.
//!
//! Symbolic links are not followed: what they point to inside the folder is
//! listed under its own name, and what is outside is not ours.

use std::io;
use std::path::{Path, PathBuf};

use ignore::{DirEntry, WalkBuilder, WalkState};
use parking_lot::Mutex;
use rayon::prelude::*;

use super::sys;
use super::temp::Names;
use crate::pathname;
use crate::{ScannedFile, Unreadable};

/// Patterns of what is not looked at, in the syntax of `.gitignore`.
const IGNORE_FILE: &str = ".escurelignore";

/// Files looked at together.
const BATCH: usize = 512;

#[derive(Default)]
pub(crate) struct Found {
    pub(crate) files: Vec<ScannedFile>,
    pub(crate) unknown: Vec<Unreadable>,
    /// Temporary files that an earlier process left.
    pub(crate) leftovers: Vec<PathBuf>,
}

/// Walks `folder`, a part of `root`; paths are relative to `root`.
pub(crate) fn walk(root: &Path, folder: &Path, names: &Names) -> Found {
    let all = Mutex::default();
    builder(folder).build_parallel().run(|| {
        let mut local = Local {
            root,
            names,
            pages: Vec::new(),
            found: Found::default(),
            all: &all,
        };
        Box::new(move |entry| {
            local.visit(entry);
            WalkState::Continue
        })
    });
    let (mut found, pages) = all.into_inner();
    for looked in look_at_all(root, &pages).into_iter().flatten() {
        match looked {
            Ok(file) => found.files.push(file),
            Err(unknown) => found.unknown.push(unknown),
        }
    }
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
    pages: Vec<PathBuf>,
    found: Found,
    all: &'a Mutex<(Found, Vec<PathBuf>)>,
}

impl Drop for Local<'_> {
    fn drop(&mut self) {
        let (all, pages) = &mut *self.all.lock();
        pages.append(&mut self.pages);
        all.unknown.append(&mut self.found.unknown);
        all.leftovers.append(&mut self.found.leftovers);
    }
}

impl Local<'_> {
    fn visit(&mut self, entry: Result<DirEntry, ignore::Error>) {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => return self.failed(&error),
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
            self.pages.push(entry.into_path());
        }
    }

    /// A folder that vanished during the walk is gone; one that cannot be
    /// looked at is unknown.
    fn failed(&mut self, error: &ignore::Error) {
        let absent = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
        if !error.io_error().is_some_and(absent) {
            let path = path_of(error).map(|path| wire(self.root, path));
            self.found.unknown.push(Unreadable {
                path: path.unwrap_or_default(),
                is_dir: true,
                reason: error.to_string(),
            });
        }
    }
}

fn wire(root: &Path, path: &Path) -> String {
    pathname::encode(path.strip_prefix(root).unwrap_or(path))
}

type Looked = Result<ScannedFile, Unreadable>;

fn look_at_all(root: &Path, pages: &[PathBuf]) -> Vec<Vec<Looked>> {
    let batches = pages.par_chunks(BATCH);
    batches
        .map(|batch| {
            let folders = batch.chunk_by(|a, b| a.parent() == b.parent());
            folders.flat_map(|files| look_at(root, files)).collect()
        })
        .collect()
}

/// Files of one folder. What vanished meanwhile, or is no file any more, is gone.
fn look_at(root: &Path, files: &[PathBuf]) -> Vec<Looked> {
    let folder = files.first().and_then(|file| file.parent());
    let folder = sys::Folder::open(folder.unwrap_or(root));
    let look = |file: &PathBuf| {
        let looked = match &folder {
            Ok(folder) => folder.stat(file),
            Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
        };
        let path = wire(root, file);
        match looked {
            Ok(stat) => Some(Ok(ScannedFile { path, stat: stat? })),
            Err(error) if sys::is_absent(&error) => None,
            Err(error) => Some(Err(Unreadable {
                path,
                is_dir: false,
                reason: error.to_string(),
            })),
        }
    };
    files.iter().filter_map(look).collect()
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
