//! Tells of outside changes, some 50 ms after they came to rest.
//!
//! On Linux each folder is watched by itself, so that the state folder and
//! what is skipped cost neither watches nor events.
//!
//! Invariant: whatever may have been missed ends in [`Changed::Rescan`].

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, after, never, select, unbounded};
use notify::event::{CreateKind, EventKind, ModifyKind, RemoveKind, RenameMode};
use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher};

use super::scan;
use crate::StoreError;
use crate::pathname;

/// Rest that a folder must have before its changes are told.
const QUIET: Duration = Duration::from_millis(50);
/// Changes that never rest are told after this time.
const LONGEST: Duration = Duration::from_millis(500);
/// More paths than this in one go are told as a rescan.
const MANY: usize = 10_000;

/// What may have changed on disk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Changed {
    /// Pages that were written, removed or renamed (both names), deduplicated.
    Paths(Vec<String>),
    /// Something was missed, or a whole folder went: look at everything.
    Rescan,
}

/// Dropping it stops the watching.
pub struct Watch {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Watch {
    pub(crate) fn start(
        root: &Path,
        pages: &Path,
        tx: Sender<Changed>,
    ) -> Result<Watch, StoreError> {
        let fail = |reason: String| StoreError::WatchFailed {
            path: pages.to_path_buf(),
            reason,
        };
        let (events_tx, events) = unbounded();
        let watcher = notify::recommended_watcher(move |event| {
            if wanted(&event) {
                let _ = events_tx.send(event);
            }
        })
        .map_err(|error| fail(error.to_string()))?;
        let mut task = Task {
            root: root.to_path_buf(),
            pages: pages.to_path_buf(),
            watcher,
            folders: HashSet::new(),
            changed: BTreeSet::new(),
            rescan: false,
            tx,
        };
        task.watch_all().map_err(|error| fail(error.to_string()))?;
        let (stop, stopped) = crossbeam_channel::bounded(0);
        let thread = std::thread::Builder::new()
            .name("escurel-watch".into())
            .spawn(move || task.run(&events, &stopped))
            .map_err(|error| fail(error.to_string()))?;
        Ok(Watch {
            stop: Some(stop),
            thread: Some(thread),
        })
    }
}

/// Opening and reading is no change; our own scans do it all the time.
fn wanted(event: &notify::Result<Event>) -> bool {
    use notify::event::{AccessKind, AccessMode};
    match event {
        Ok(event) => match event.kind {
            EventKind::Access(AccessKind::Close(AccessMode::Write)) => true,
            EventKind::Access(_) => false,
            _ => true,
        },
        Err(_) => true,
    }
}

struct Task {
    root: PathBuf,
    pages: PathBuf,
    watcher: RecommendedWatcher,
    /// Folders that are watched, where each is watched by itself.
    folders: HashSet<PathBuf>,
    /// Relative to the folder of pages.
    changed: BTreeSet<PathBuf>,
    rescan: bool,
    tx: Sender<Changed>,
}

const EACH_FOLDER: bool = cfg!(any(target_os = "linux", target_os = "android"));

impl Task {
    fn run(mut self, events: &Receiver<notify::Result<Event>>, stopped: &Receiver<()>) {
        let mut since: Option<Instant> = None;
        loop {
            let rest = match since {
                Some(first) => after(QUIET.min(LONGEST.saturating_sub(first.elapsed()))),
                None => never(),
            };
            select! {
                recv(stopped) -> _ => return,
                recv(rest) -> _ => {
                    since = None;
                    if !self.tell() {
                        return;
                    }
                }
                recv(events) -> event => match event {
                    Ok(event) => {
                        self.take(event);
                        let waits = self.rescan || !self.changed.is_empty();
                        since = since.or_else(|| waits.then(Instant::now));
                    }
                    Err(_) => return,
                },
            }
        }
    }

    /// `false` when nobody listens any more.
    fn tell(&mut self) -> bool {
        let paths = std::mem::take(&mut self.changed);
        let rescan = std::mem::take(&mut self.rescan) || paths.len() > MANY;
        let changed = match rescan {
            true => Changed::Rescan,
            false => Changed::Paths(self.wire(paths)),
        };
        changed == Changed::Paths(Vec::new()) || self.tx.send(changed).is_ok()
    }

    /// Without those that a person excludes.
    fn wire(&self, paths: BTreeSet<PathBuf>) -> Vec<String> {
        let mut rules = scan::builder(&self.pages).build_matchers();
        let mut excluded = |path: &Path| {
            rules
                .iter_mut()
                .any(|rule| rule.matched(path, false).is_ignore())
        };
        let kept = paths.into_iter().filter(|path| !excluded(path));
        kept.filter_map(|path| {
            let full = self.pages.join(path);
            full.strip_prefix(&self.root).ok().map(pathname::encode)
        })
        .collect()
    }

    fn take(&mut self, event: notify::Result<Event>) {
        let event = match event {
            Ok(event) => event,
            Err(error) => {
                tracing::warn!(%error, "watching the folder of pages");
                self.rescan = true;
                return;
            }
        };
        if event.need_rescan() {
            self.rescan = true;
        }
        for path in &event.paths {
            self.take_path(&event.kind, path);
        }
    }

    fn take_path(&mut self, kind: &EventKind, path: &Path) {
        let Ok(inside) = path.strip_prefix(&self.pages) else {
            // The folder of pages itself was moved or removed.
            self.rescan |= self.pages.starts_with(path);
            return;
        };
        if inside.as_os_str().is_empty() {
            self.rescan |= matches!(
                kind,
                EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(_))
            );
            return;
        }
        // What a person excludes changes what is a page.
        self.rescan |= inside
            .file_name()
            .is_some_and(|name| name == ".escurelignore");
        if inside
            .iter()
            .any(|name| pathname::skipped(&name.to_string_lossy()))
        {
            return;
        }
        let known = self.folders.contains(path);
        match kind {
            EventKind::Remove(RemoveKind::Folder) => self.lost(path),
            EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(RenameMode::From))
                if known =>
            {
                self.lost(path);
            }
            EventKind::Create(CreateKind::Folder) => self.found(path),
            EventKind::Create(_) | EventKind::Modify(ModifyKind::Name(_)) if is_folder(path) => {
                self.found(path);
            }
            // Permissions decide what can be looked at below, also in folders that
            // could not be watched so far.
            EventKind::Modify(ModifyKind::Metadata(_)) if known || is_folder(path) => {
                self.found(path);
            }
            _ => self.page(path),
        }
    }

    fn page(&mut self, path: &Path) {
        let is_page = path
            .file_name()
            .is_some_and(|name| pathname::is_page(&name.to_string_lossy()));
        if is_page && let Ok(inside) = path.strip_prefix(&self.pages) {
            self.changed.insert(inside.to_path_buf());
        }
    }

    /// The pages below a folder that went are known only to whoever listens.
    fn lost(&mut self, folder: &Path) {
        self.folders.retain(|known| !known.starts_with(folder));
        self.rescan = true;
        // Late news of a folder that has come back by now.
        if is_folder(folder) {
            self.found(folder);
        }
    }

    /// What came into a new folder before it was watched is listed.
    fn found(&mut self, folder: &Path) {
        if let Err(error) = self.watch_below(folder, true) {
            tracing::warn!(%error, folder = %folder.display(), "a new folder is not watched");
            self.rescan = true;
        }
    }

    fn watch_all(&mut self) -> notify::Result<()> {
        let pages = self.pages.clone();
        match EACH_FOLDER {
            true => self.watch_below(&pages, false),
            false => self.watcher.watch(&pages, RecursiveMode::Recursive),
        }
    }

    /// Watches each folder before it is listed, so that nothing slips through.
    fn watch_below(&mut self, folder: &Path, list: bool) -> notify::Result<()> {
        let mut waiting = vec![folder.to_path_buf()];
        while let Some(folder) = waiting.pop() {
            if EACH_FOLDER {
                match self.watcher.watch(&folder, RecursiveMode::NonRecursive) {
                    Ok(()) => {}
                    Err(error) if gone(&error) && folder != self.pages => continue,
                    Err(error) => return Err(error),
                }
                self.folders.insert(folder.clone());
            }
            let Ok(entries) = std::fs::read_dir(&folder) else {
                self.rescan |= list;
                continue;
            };
            for entry in entries.flatten() {
                let skip = pathname::skipped(&entry.file_name().to_string_lossy());
                match entry.file_type() {
                    _ if skip => {}
                    Ok(kind) if kind.is_dir() => waiting.push(entry.path()),
                    Ok(kind) if kind.is_file() && list => self.page(&entry.path()),
                    _ => {}
                }
            }
        }
        Ok(())
    }
}

fn is_folder(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|found| found.is_dir())
}

/// The folder vanished, or may not be looked at; the scan reports the latter.
fn gone(error: &notify::Error) -> bool {
    match &error.kind {
        notify::ErrorKind::PathNotFound => true,
        notify::ErrorKind::Io(error) => matches!(
            error.kind(),
            std::io::ErrorKind::NotFound
                | std::io::ErrorKind::PermissionDenied
                | std::io::ErrorKind::NotADirectory
        ),
        _ => false,
    }
}
