//! The vector lane's upkeep: live pages get vectors, in the background, after
//! words can find them.
//!
//! Invariant: a page waits in `due` from the moment its version is published
//! until that version's vectors are in the index; so `due` is the lag.

mod lag;
mod questions;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use escurel_index::{Entry, PageNo};
use escurel_search::vectors::{
    Cache, CacheError, Code as Quantised, TextKey, VectorIndex, Version,
};
use escurel_search::{EmbedError, Embedder, MAX_QUERY_BYTES, Purpose, QueryVectors, quantised};
use parking_lot::{Condvar, Mutex, RwLock};
use serde::{Deserialize, Serialize};

use crate::api::LaneState;
use crate::facts::Parsed;
use crate::kb::Core;
use crate::meaning::questions::Questions;
use crate::sums::replace_file;
use crate::view::Past;

/// Whether pages are found by meaning, too.
#[derive(Clone)]
pub enum Vectors {
    /// They are not; the reason is for people.
    Off(String),
    By(Arc<dyn Embedder>),
}

impl Default for Vectors {
    fn default() -> Vectors {
        Vectors::Off("no embedding provider is set".to_owned())
    }
}

pub(crate) enum Meaning {
    Off(String),
    On(Box<Upkeep>),
}

pub(crate) struct Upkeep {
    embedder: Arc<dyn Embedder>,
    /// Where vectors outlive the index; without it they are made again.
    cache_dir: Option<PathBuf>,
    /// Read whole when it is opened, which the start does not wait for.
    cache: OnceLock<Cache>,
    index: VectorIndex,
    queue: Mutex<Queue>,
    more: Condvar,
    questions: Questions,
    /// Set for good; nothing is written from then on.
    closed: RwLock<bool>,
    /// Texts since the start; those that the cache had are none.
    embedded: AtomicU64,
}

#[derive(Default)]
struct Queue {
    /// Pages whose live version has no vectors yet, and those that are worked on.
    due: BTreeSet<PageNo>,
    taken: BTreeSet<PageNo>,
    /// Of `due`, those that changed a moment ago: whoever wrote them looks for them first.
    fresh: BTreeSet<PageNo>,
    /// What is there was put into `due` once.
    begun: bool,
    /// Not all of that has its vectors yet.
    backlog: bool,
    changed: bool,
    failure: Option<String>,
    /// The provider will not take texts until somebody changes the settings.
    refused: bool,
}

impl Queue {
    fn add(&mut self, pages: impl Iterator<Item = PageNo>) {
        for page in pages {
            self.due.insert(page);
            if self.begun {
                self.fresh.insert(page);
            }
        }
    }

    /// The next pages to do. One that is being done is not begun again: the older
    /// version would end up last.
    fn next(&mut self, only_fresh: bool) -> Vec<PageNo> {
        let free = |pages: &BTreeSet<PageNo>| -> Vec<PageNo> {
            pages.difference(&self.taken).take(BATCH).copied().collect()
        };
        let mut pages = free(&self.fresh);
        if pages.is_empty() && !only_fresh {
            pages = free(&self.due);
        }
        for page in &pages {
            self.due.remove(page);
            self.fresh.remove(page);
            self.taken.insert(*page);
        }
        pages
    }
}

/// Pages that one worker takes at a time.
const BATCH: usize = 16;
const WORKERS: usize = 4;
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// A row that no cache has.
const NO_ROW: u32 = u32::MAX;

impl Meaning {
    pub fn new(vectors: Vectors, cache_dir: Option<PathBuf>) -> Meaning {
        let embedder = match vectors {
            Vectors::Off(why) => return Meaning::Off(why),
            Vectors::By(embedder) => embedder,
        };
        Meaning::On(Box::new(Upkeep {
            index: VectorIndex::new(embedder.dimensions()),
            cache_dir,
            cache: OnceLock::new(),
            queue: Mutex::default(),
            more: Condvar::new(),
            questions: Questions::default(),
            closed: RwLock::new(false),
            embedded: AtomicU64::new(0),
            embedder,
        }))
    }

    pub fn upkeep(&self) -> Option<&Upkeep> {
        match self {
            Meaning::On(upkeep) => Some(upkeep),
            Meaning::Off(_) => None,
        }
    }

    /// These pages have other versions now.
    pub fn changed(&self, pages: impl Iterator<Item = PageNo>) {
        if let Some(upkeep) = self.upkeep() {
            upkeep.queue.lock().add(pages);
            upkeep.more.notify_one();
        }
    }

    /// The vectors of a query's texts, and how the lane takes part.
    pub fn query(
        &self,
        texts: &[String],
        past: Option<&Past>,
    ) -> (Option<QueryVectors>, LaneState) {
        match self {
            Meaning::Off(why) => (None, lane("off", Some(why.clone()))),
            Meaning::On(upkeep) => {
                let (vectors, state) = upkeep.query(texts);
                match past {
                    Some(past) => (vectors.map(|v| of_then(v, past)), state_then(state, past)),
                    None => (vectors, state),
                }
            }
        }
    }

    /// Leaves nothing of these texts in the cache.
    pub fn forget_texts(&self, texts: &[String]) -> Result<(), CacheError> {
        self.upkeep().map_or(Ok(()), |upkeep| upkeep.forget(texts))
    }

    pub fn stop(&self) {
        if let Some(upkeep) = self.upkeep() {
            *upkeep.closed.write() = true;
            // Whoever looked whether to stop is waiting by now, and is woken.
            drop(upkeep.queue.lock());
            upkeep.more.notify_all();
        }
    }
}

fn of_then(query: QueryVectors, past: &Past) -> QueryVectors {
    QueryVectors {
        snapshot: Arc::new(query.snapshot.with(&past.vectors)),
        vectors: query.vectors,
    }
}

/// Texts that nobody embedded while they were live are found by their words only.
fn state_then(now: LaneState, past: &Past) -> LaneState {
    match (now.state, past.without) {
        ("off", _) | (_, 0) => now,
        (_, without) => {
            let told = format!("{without} pages of then have no vectors");
            lane("lagging", Some(told))
        }
    }
}

fn lane(state: &'static str, detail: Option<String>) -> LaneState {
    LaneState {
        lane: "vector",
        state,
        detail,
    }
}

impl Upkeep {
    fn query(&self, texts: &[String]) -> (Option<QueryVectors>, LaneState) {
        let snapshot = self.index.snapshot();
        let vector = |text: &String| {
            let read = &text[..text.floor_char_boundary(MAX_QUERY_BYTES)];
            self.questions.vector(&*self.embedder, read)
        };
        let vectors: Result<Vec<_>, EmbedError> = texts.iter().map(vector).collect();
        match vectors {
            Err(error) => (None, lane("off", Some(error.to_string()))),
            Ok(vectors) if vectors.iter().all(Option::is_none) => (
                None,
                lane(
                    "off",
                    Some("the model does not know the query's language".to_owned()),
                ),
            ),
            Ok(vectors) => (Some(QueryVectors { snapshot, vectors }), self.state()),
        }
    }

    fn open_cache(&self) {
        let embedder = &self.embedder;
        let open = |dir: &PathBuf| Cache::open(dir, embedder.id(), embedder.dimensions());
        match self.cache_dir.as_ref().map(open) {
            Some(Ok(cache)) => drop(self.cache.set(cache)),
            Some(Err(error)) => tracing::warn!(%error, "vectors are not kept for the next start"),
            None => {}
        }
    }

    /// The next pages to do; `None` when there is nothing to do now.
    fn take(&self, only_fresh: bool) -> Option<Vec<PageNo>> {
        let mut queue = self.queue.lock();
        if !queue.begun || queue.refused {
            return None;
        }
        let pages = queue.next(only_fresh);
        (!pages.is_empty()).then_some(pages)
    }

    fn give_back(&self, pages: &[PageNo], done: Result<(), EmbedError>) {
        let mut queue = self.queue.lock();
        for page in pages {
            queue.taken.remove(page);
        }
        match done {
            Ok(()) => {
                queue.failure = None;
                queue.changed = true;
                if queue.backlog && queue.due.is_empty() && queue.taken.is_empty() {
                    queue.backlog = false;
                    tracing::info!("every page has its vectors");
                }
            }
            Err(error) => {
                queue.due.extend(pages);
                queue.refused |= matches!(error, EmbedError::Refused(_));
                let failure = Some(error.to_string());
                if queue.failure != failure && !*self.closed.read() {
                    tracing::warn!(%error, "pages wait for their vectors");
                }
                queue.failure = failure;
            }
        }
    }

    fn forget(&self, texts: &[String]) -> Result<(), CacheError> {
        if self.cache.get().is_none() {
            self.open_cache();
        }
        let keys: Vec<TextKey> = texts.iter().map(|text| TextKey::of(text)).collect();
        self.cache.get().map_or(Ok(()), |cache| cache.forget(&keys))
    }

    /// The vectors of texts that were all embedded before.
    pub fn known(&self, texts: &[String]) -> Option<Vec<(u32, Quantised)>> {
        texts
            .iter()
            .map(|text| self.cached(TextKey::of(text)))
            .collect()
    }

    fn cached(&self, key: TextKey) -> Option<(u32, Quantised)> {
        let cache = self.cache.get()?;
        let row = cache.row(key)?;
        Some((row, cache.code(row)?))
    }

    /// Vectors of texts, those that were never seen made now, each once. `between` runs
    /// before each call of the embedder, which may take a second.
    fn codes(
        &self,
        texts: &[String],
        between: &dyn Fn(),
    ) -> Result<Vec<(u32, Quantised)>, EmbedError> {
        let keys: Vec<TextKey> = texts.iter().map(|text| TextKey::of(text)).collect();
        let mut known: HashMap<TextKey, (u32, Quantised)> = HashMap::new();
        let mut lacking: Vec<(TextKey, &str)> = Vec::new();
        let mut seen = HashSet::new();
        for (key, text) in keys.iter().zip(texts) {
            if seen.insert(*key) {
                match self.cached(*key) {
                    Some(code) => drop(known.insert(*key, code)),
                    None => lacking.push((*key, text)),
                }
            }
        }
        for chunk in lacking.chunks(self.embedder.batch().max(1)) {
            if *self.closed.read() {
                return Err(EmbedError::retry("the knowledge base closes"));
            }
            between();
            let batch: Vec<&str> = chunk.iter().map(|(_, text)| *text).collect();
            let vectors = self.embedder.embed(&batch, Purpose::Document)?;
            self.embedded
                .fetch_add(batch.len() as u64, Ordering::Relaxed);
            self.questions.rested();
            let made = quantised(&*self.embedder, batch.len(), &vectors)?;
            let made: Vec<(TextKey, Quantised)> =
                chunk.iter().map(|(key, _)| *key).zip(made).collect();
            let rows = self.keep(&made);
            for ((key, code), row) in made.into_iter().zip(rows) {
                known.insert(key, (row, code));
            }
        }
        Ok(keys
            .iter()
            .filter_map(|key| known.get(key).cloned())
            .collect())
    }

    fn keep(&self, made: &[(TextKey, Quantised)]) -> Vec<u32> {
        // Another process may own the file by now.
        let closed = self.closed.read();
        let cache = self.cache.get().filter(|_| !*closed);
        let kept = cache.map(|cache| cache.put(made));
        match kept {
            Some(Ok(rows)) => rows,
            Some(Err(error)) => {
                tracing::warn!(%error, "vectors are not kept for the next start");
                vec![NO_ROW; made.len()]
            }
            None => vec![NO_ROW; made.len()],
        }
    }
}

/// What the next start reads instead of all pages.
#[derive(Serialize, Deserialize)]
struct Saved {
    model: String,
    generation: u128,
    versions: Vec<(u32, u64, Vec<u32>)>,
}

const SAVED: &str = "vectors.bin";

impl Core {
    /// Are pages found by meaning, too?
    pub fn embeds(&self) -> bool {
        self.meaning.upkeep().is_some()
    }

    /// One of the background threads: runs until the knowledge base closes. The
    /// `first` one loads what was kept, once words find every page.
    pub(crate) fn keep_meaning(&self, first: bool) {
        let Some(upkeep) = self.meaning.upkeep() else {
            return;
        };
        step_back();
        if first && self.wait_ready(&mut |_| {}) {
            self.begin_meaning(upkeep);
        }
        let mut pause = FIRST_PAUSE;
        while !self.stopping() {
            match self.embed_some(upkeep) {
                Some(Ok(())) => pause = FIRST_PAUSE,
                Some(Err(error)) => {
                    self.pause(
                        upkeep,
                        error.retry_after().map_or(pause, |after| after.max(pause)),
                    );
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
                None => self.rest(upkeep, FIRST_PAUSE),
            }
        }
    }

    /// Until there is more to do, `most` at the longest.
    fn rest(&self, upkeep: &Upkeep, most: Duration) {
        let mut queue = upkeep.queue.lock();
        if !self.stopping() {
            upkeep.more.wait_for(&mut queue, most);
        }
    }

    /// The whole time, unless the knowledge base closes.
    fn pause(&self, upkeep: &Upkeep, time: Duration) {
        let end = Instant::now() + time;
        let mut queue = upkeep.queue.lock();
        while !self.stopping() && !upkeep.more.wait_until(&mut queue, end).timed_out() {}
    }

    /// Loads what was saved, and lets everything else wait for its turn.
    fn begin_meaning(&self, upkeep: &Upkeep) {
        upkeep.open_cache();
        self.load_vectors(upkeep);
        let (view, snapshot) = (self.view.load_full(), upkeep.index.snapshot());
        let lacking = view.dir.iter().filter(|e| !snapshot.has(e.no.0, e.seq));
        let lacking: Vec<PageNo> = lacking.map(|e| e.no).collect();
        if !lacking.is_empty() {
            tracing::info!(
                pages = lacking.len(),
                "pages get their vectors; words find them meanwhile"
            );
        }
        let mut queue = upkeep.queue.lock();
        queue.backlog = !lacking.is_empty();
        queue.due.extend(lacking);
        queue.begun = true;
        drop(queue);
        upkeep.more.notify_all();
    }

    /// Does some of what is due. `None`: nothing was.
    fn embed_some(&self, upkeep: &Upkeep) -> Option<Result<(), EmbedError>> {
        let pages = upkeep.take(false)?;
        let done = self.embed_pages(upkeep, &pages, &|| self.embed_fresh(upkeep));
        upkeep.give_back(&pages, done.clone());
        Some(done)
    }

    /// Pages that were just written do not wait behind a long one. What fails is
    /// tried again in its turn.
    fn embed_fresh(&self, upkeep: &Upkeep) {
        if let Some(pages) = upkeep.take(true) {
            let done = self.embed_pages(upkeep, &pages, &|| {});
            upkeep.give_back(&pages, done);
        }
    }

    fn embed_pages(
        &self,
        upkeep: &Upkeep,
        pages: &[PageNo],
        between: &dyn Fn(),
    ) -> Result<(), EmbedError> {
        let view = self.view.load_full();
        let snapshot = upkeep.index.snapshot();
        let mut texts = Vec::new();
        let mut whose: Vec<(Arc<Entry>, usize)> = Vec::new();
        let mut gone = Vec::new();
        for page in pages {
            match view.dir.get(*page) {
                None => gone.push(page.0),
                Some(entry) if snapshot.has(entry.no.0, entry.seq) => {}
                Some(entry) => {
                    let bytes = self.head_text(entry).unwrap_or_default();
                    let units = Parsed::of(&entry.path, &bytes, self.layout).meaning_texts();
                    whose.push((entry.clone(), units.len()));
                    texts.extend(units);
                }
            }
        }
        let mut codes = upkeep.codes(&texts, between)?.into_iter();
        let version = |(entry, units): (Arc<Entry>, usize)| Version {
            page: entry.no.0,
            seq: entry.seq,
            units: codes.by_ref().take(units).collect(),
        };
        let versions: Vec<Version> = whose.into_iter().map(version).collect();
        upkeep.index.put(&versions);
        upkeep.index.remove(gone.into_iter());
        Ok(())
    }

    fn load_vectors(&self, upkeep: &Upkeep) {
        let Some(saved) = self.saved_vectors(upkeep) else {
            return;
        };
        let Some(cache) = upkeep.cache.get() else {
            return;
        };
        let view = self.view.load_full();
        let live = |page: u32, seq: u64| view.dir.get(PageNo(page)).is_some_and(|e| e.seq == seq);
        let mut versions = Vec::new();
        for (page, seq, rows) in saved.versions {
            let units: Option<Vec<_>> = match live(page, seq) {
                true => rows
                    .iter()
                    .map(|row| Some((*row, cache.code(*row)?)))
                    .collect(),
                false => None,
            };
            versions.extend(units.map(|units| Version { page, seq, units }));
            if self.stopping() {
                return;
            }
            if versions.len() >= 1_024 {
                upkeep.index.put(&versions);
                versions.clear();
            }
        }
        upkeep.index.put(&versions);
    }

    /// What was saved for this model and this index; anything else is made again.
    fn saved_vectors(&self, upkeep: &Upkeep) -> Option<Saved> {
        let bytes = std::fs::read(self.index.join(SAVED)).ok()?;
        let (body, sum) = bytes.split_last_chunk::<4>()?;
        if crc32fast::hash(body) != u32::from_le_bytes(*sum) {
            tracing::warn!("the saved vectors were damaged and are put together again");
            return None;
        }
        let saved: Saved = postcard::from_bytes(body).ok()?;
        (saved.model == upkeep.embedder.id() && saved.generation == self.generation)
            .then_some(saved)
    }

    /// Writes what the next start reads. Failing is harmless.
    pub(crate) fn save_vectors(&self) {
        let Some(upkeep) = self
            .meaning
            .upkeep()
            .filter(|upkeep| upkeep.cache.get().is_some())
        else {
            return;
        };
        if !std::mem::take(&mut upkeep.queue.lock().changed) {
            return;
        }
        let mut versions = upkeep.index.snapshot().rows();
        versions.retain(|(_, _, rows)| !rows.contains(&NO_ROW));
        let saved = Saved {
            model: upkeep.embedder.id().to_owned(),
            generation: self.generation,
            versions,
        };
        let written = postcard::to_stdvec(&saved)
            .map_err(std::io::Error::other)
            .and_then(|mut bytes| {
                bytes.extend_from_slice(&crc32fast::hash(&bytes).to_le_bytes());
                replace_file(&self.index.join(SAVED), &bytes)
            });
        if let Err(error) = written {
            tracing::warn!(%error, "vectors were not saved; the next start puts them together again");
        }
    }
}

/// How many threads embed.
pub(crate) fn workers() -> usize {
    std::thread::available_parallelism()
        .map_or(1, usize::from)
        .min(WORKERS)
}

/// Whoever asks comes first: embedding takes what the cores have left.
fn step_back() {
    #[cfg(target_os = "linux")]
    {
        let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), 19);
    }
}
