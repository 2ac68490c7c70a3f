//! The knowledge base, what surrounds it, and how both end and begin again.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use escurel_access::{Caller, OpenPolicy};
use escurel_core::{Kb, Refusal};
use escurel_md::Layout;
use escurel_store::{Clock, Env, Loss, ManualClock, MemStore, SeededIds, Store};
use parking_lot::Mutex;

use crate::index::{self, Fate, Part};
use crate::model::{Files, Model};
use crate::step::{self, Outside};
use crate::text::Change;
use crate::trap::Trap;

pub(crate) type Outcome<T = ()> = Result<T, String>;

/// 2026-01-01; the clock of every schedule begins here.
const START: i64 = 1_767_225_600_000_000;
/// Time between two steps, so that the past can be asked for. Microseconds.
const STEP: i64 = 1_000_000;

/// What takes part in a schedule.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cast {
    /// Without DuckDB and the files of the text index.
    pub bare: bool,
    /// Flushes that do nothing, as if the code lacked them; see [`MemStore::forgetting`].
    pub forgets: Option<&'static str>,
}

pub(crate) struct World {
    pub layout: Layout,
    pub cast: Cast,
    pub clock: Arc<ManualClock>,
    ids: Arc<SeededIds>,
    pub trap: Arc<Trap>,
    pub store: Arc<MemStore>,
    pub kb: Arc<Kb>,
    pub model: Model,
    folder: tempfile::TempDir,
    indexes: u32,
    /// An index of a former process, to come back from a stale disk.
    earlier: Option<PathBuf>,
}

/// What a crash left.
pub(crate) struct Survivor {
    store: Arc<MemStore>,
    fate: Fate,
}

impl World {
    pub fn new(seed: u64, layout: Layout, cast: Cast) -> Outcome<World> {
        let clock = Arc::new(ManualClock::new(START));
        let ids = Arc::new(SeededIds::new(seed));
        let trap = Arc::new(Trap::default());
        let env = Env {
            clock: clock.clone(),
            ids: ids.clone(),
            failpoints: trap.clone(),
        };
        let store = Arc::new(MemStore::forgetting(env, cast.forgets));
        let folder = scratch().map_err(text)?;
        let kb = begin(cast, &store, layout, &folder.path().join("0"));
        Ok(World {
            kb: kb.map_err(text)?,
            layout,
            cast,
            clock,
            ids,
            trap,
            store,
            model: Model::default(),
            folder,
            indexes: 0,
            earlier: None,
        })
    }

    pub fn me(&self) -> Caller {
        Caller::local()
    }

    pub fn now(&self) -> i64 {
        self.clock.now_micros()
    }

    pub fn path(&self, page: u32) -> String {
        step::path(page, self.layout)
    }

    pub fn tick(&self) {
        self.clock.advance(STEP);
    }

    pub fn files(&self) -> Outcome<Files> {
        files(&self.store)
    }

    fn index(&self, n: u32) -> PathBuf {
        self.folder.path().join(n.to_string())
    }

    fn env(&self) -> Env {
        Env {
            clock: self.clock.clone(),
            ids: self.ids.clone(),
            failpoints: self.trap.clone(),
        }
    }

    /// Where the next crash of this process puts what it leaves, once it happens.
    pub fn lay_crash(
        &self,
        after: u32,
        loss: Loss,
        fate: Fate,
        kb: Weak<Kb>,
    ) -> Arc<Mutex<Option<Survivor>>> {
        let slot = Arc::new(Mutex::new(None));
        let (out, env) = (slot.clone(), self.env());
        let store = self.store.clone();
        let (from, to) = (self.index(self.indexes), self.index(self.indexes + 1));
        let bare = self.cast.bare;
        let spring = move |_: &'static str| {
            if let Some(kb) = kb.upgrade().filter(|_| !bare) {
                quiet(&kb);
            }
            index::copy(&from, &to, Part::All)?;
            *out.lock() = Some(Survivor {
                store: Arc::new(store.after(loss, env)),
                fate,
            });
            Ok(())
        };
        self.trap.arm(after, Box::new(spring));
        slot
    }

    /// A crash between two steps.
    pub fn crash_now(&self, loss: Loss, fate: Fate) -> Outcome<Survivor> {
        if !self.cast.bare {
            quiet(&self.kb);
        }
        self.leave(loss, fate)
    }

    /// What is there when the process is no more.
    pub fn leave(&self, loss: Loss, fate: Fate) -> Outcome<Survivor> {
        let to = self.index(self.indexes + 1);
        let _ = fs::remove_dir_all(&to);
        index::copy(&self.index(self.indexes), &to, Part::All).map_err(text)?;
        Ok(Survivor {
            store: Arc::new(self.store.after(loss, self.env())),
            fate,
        })
    }

    /// The next process, over what the former one left. What this one leaves, if
    /// it dies while it recovers.
    pub fn go_on(
        &mut self,
        survivor: Survivor,
        again: Option<(u32, Loss, Fate)>,
    ) -> Outcome<Option<Survivor>> {
        self.trap.disarm();
        self.kb.close();
        self.store = survivor.store;
        self.indexes += 1;
        let index = self.index(self.indexes);
        survivor
            .fate
            .befall(&index, self.earlier.as_deref())
            .map_err(text)?;
        self.keep_index(&index)?;
        let slot = again.map(|(after, loss, fate)| self.lay_crash(after, loss, fate, Weak::new()));
        self.open()?;
        self.trap.disarm();
        Ok(slot.and_then(|slot| slot.lock().take()))
    }

    fn open(&mut self) -> Outcome {
        let index = self.index(self.indexes);
        let opened = begin(self.cast, &self.store, self.layout, &index);
        self.kb = opened.map_err(|refusal| format!("it does not open: {refusal}"))?;
        Ok(())
    }

    fn keep_index(&mut self, index: &Path) -> Outcome {
        let last = self.index(self.indexes - 1);
        let _ = fs::remove_dir_all(last);
        if self.indexes % 3 == 1 && index.exists() {
            let copy = self.folder.path().join(format!("earlier-{}", self.indexes));
            index::copy(index, &copy, Part::All).map_err(text)?;
            self.earlier = Some(copy);
        }
        Ok(())
    }

    /// Another program at work, seen by nobody yet.
    pub fn outside(&mut self, outside: &Outside) {
        let done = meddle(
            &self.store,
            self.layout,
            &self.model.files,
            &self.model,
            outside,
        );
        self.meddled(done);
    }
}

fn begin(
    cast: Cast,
    store: &Arc<MemStore>,
    layout: Layout,
    index: &Path,
) -> Result<Arc<Kb>, Refusal> {
    let (store, policy) = (store.clone(), Arc::new(OpenPolicy));
    match cast.bare {
        true => Kb::bare(store, layout, policy, index),
        false => Kb::stepped(store, layout, policy, index),
    }
}

/// A folder for the index: in memory where there is such a place, because what is
/// derived is synced often and none of it is waited for here.
fn scratch() -> std::io::Result<tempfile::TempDir> {
    let memory = Path::new("/dev/shm");
    tempfile::tempdir_in(memory).or_else(|_| tempfile::tempdir())
}

/// What files became what.
pub(crate) type Meddled = Vec<(String, Option<Vec<u8>>)>;

/// Does to the store what the step says, given the files as they are.
pub(crate) fn meddle(
    store: &MemStore,
    layout: Layout,
    files: &Files,
    model: &Model,
    outside: &Outside,
) -> Meddled {
    let path = |page: &u32| step::path(*page, layout);
    let old = |path: &str| files.get(path).cloned();
    match outside {
        Outside::Save { page, change } => save(store, path(page), old(&path(page)), change),
        Outside::SaveByRename { page, change } => {
            let path = path(page);
            let new = change.apply(&old(&path).unwrap_or_default());
            store.put_file(".saving", &new);
            store.rename_file(".saving", &path);
            vec![(path, Some(new))]
        }
        Outside::Delete { page } => {
            store.delete_file(&path(page));
            vec![(path(page), None)]
        }
        Outside::Rename { from, to } => rename(store, path(from), path(to), files),
        Outside::Swap { one, other } => {
            let (one, other) = (path(one), path(other));
            let (Some(first), Some(second)) = (old(&one), old(&other)) else {
                return Vec::new();
            };
            store.rename_file(&one, ".swapping");
            store.rename_file(&other, &one);
            store.rename_file(".swapping", &other);
            vec![(one, Some(second)), (other, Some(first))]
        }
        Outside::Copy { from, to } => match old(&path(from)) {
            Some(text) if path(from) != path(to) => {
                store.put_file(&path(to), &text);
                vec![(path(to), Some(text))]
            }
            _ => Vec::new(),
        },
        Outside::Revert { page, which } => revert(store, path(page), *which, model),
        Outside::DeleteAll => {
            let all = files.keys().cloned();
            all.map(|path| {
                store.delete_file(&path);
                (path, None)
            })
            .collect()
        }
    }
}

fn save(store: &MemStore, path: String, old: Option<Vec<u8>>, change: &Change) -> Meddled {
    let new = change.apply(&old.unwrap_or_default());
    store.put_file(&path, &new);
    vec![(path, Some(new))]
}

fn rename(store: &MemStore, from: String, to: String, files: &Files) -> Meddled {
    match files.get(&from) {
        Some(text) if from != to => {
            store.rename_file(&from, &to);
            vec![(from, None), (to, Some(text.clone()))]
        }
        _ => Vec::new(),
    }
}

fn revert(store: &MemStore, path: String, which: u32, model: &Model) -> Meddled {
    let past = model.past.get(&path).map_or(&[][..], |past| past);
    match past.get(which as usize % past.len().max(1)) {
        Some(text) => {
            store.put_file(&path, text);
            vec![(path, Some(text.clone()))]
        }
        None => Vec::new(),
    }
}

pub(crate) fn files(store: &MemStore) -> Outcome<Files> {
    let mut files = Files::new();
    for file in store.scan().files {
        let found = store.read(&file.path).map_err(text)?;
        files.extend(found.map(|(bytes, _)| (file.path, bytes)));
    }
    Ok(files)
}

/// Waits until DuckDB contains what was published, so that a copy of its file is whole.
fn quiet(kb: &Kb) {
    let end = Instant::now() + Duration::from_secs(5);
    loop {
        let status = kb.phase();
        if status.sql_seq >= status.text_seq || Instant::now() > end {
            return;
        }
        std::thread::sleep(Duration::from_micros(200));
    }
}

pub(crate) fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
