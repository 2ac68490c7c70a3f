//! The index: fresh versions in memory, the files, and the state that snapshots
//! hold. One writer at a time changes the files; readers never wait.
//!
//! Invariant: every publication happens under the state lock and holds each
//! version exactly once, in the files or in memory, also across a commit.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use arc_swap::ArcSwap;
use hashbrown::{HashMap, HashSet};
use parking_lot::Mutex;
use tantivy::indexer::{IndexWriterOptions, NoMergePolicy, UserOperation};
use tantivy::{Index, IndexReader, IndexWriter, TantivyDocument};

use crate::api::{Answer, Doc, Generation, OpenState, Query, SearchError, Stats};
use crate::schema::{Fields, Key};
use crate::view::{Delta, Forgotten, Layer, View, is_forgotten};
use crate::{guard, house, lanes, open};

/// Memory of each indexing thread, in bytes; with two threads the whole writer
/// stays below 64 MB.
const WRITER_BUDGET: usize = 24_000_000;
const WRITER_THREADS: usize = 2;
/// Entries of a commit that become one segment.
const FOLD_BATCH: usize = 4096;
/// Layers of one size in memory before they become one of the next size.
const DELTA_FAN: usize = 8;

/// The text index of one store.
pub struct TextIndex {
    inner: Arc<Inner>,
    house: house::Housekeeper,
}

/// An opened index and what it holds.
pub struct Opened {
    pub index: TextIndex,
    /// The journal sequence the files contain.
    pub seq: u64,
    pub state: OpenState,
}

pub(crate) struct Inner {
    pub fields: Fields,
    pub index: Index,
    reader: IndexReader,
    /// Absent until first needed, and after a failure until the next try.
    writer: Mutex<Option<IndexWriter>>,
    state: Mutex<State>,
    view: ArcSwap<View>,
    /// Set while `State::counted` holds something.
    outdated: AtomicBool,
    committed: AtomicU64,
    /// Set when the files turn out to be unreadable.
    pub damaged: AtomicBool,
    pub dir: Option<PathBuf>,
}

/// What only writers look at.
#[derive(Default)]
struct State {
    /// Versions in the committed files.
    known: HashSet<Key>,
    /// Versions given in bulk since the last commit.
    /// `true` where memory has got a newer text of the version meanwhile.
    bulk: HashMap<Key, bool>,
    /// Per page, the sequence below which versions may go.
    forgotten: Forgotten,
    /// Those of them that the published view still counts.
    counted: Forgotten,
    /// How many layers, from the oldest, a running commit is folding.
    folding: usize,
}

impl TextIndex {
    /// Opens the index in `dir`, or starts a new one there. Files that are not
    /// the expected ones, or damaged, are moved aside.
    pub fn open(dir: &Path, expect: Generation) -> Result<Opened, SearchError> {
        let fields = Fields::new();
        let found = open::open(dir, expect, &fields)?;
        let (mut seq, mut state, mut later) = (found.seq, found.state, found.verify_later);
        let inner = match Inner::new(fields.clone(), found.index, Some(dir.to_path_buf()), seq) {
            Err(SearchError::Damaged(reason)) => {
                let fresh = open::start_over(dir, expect, &fields, reason)?;
                (seq, state, later) = (fresh.seq, fresh.state, false);
                Inner::new(fields, fresh.index, Some(dir.to_path_buf()), seq)?
            }
            inner => inner?,
        };
        // Takes the lock of the folder, so that a second writer fails here.
        inner.with_writer(|_| Ok(()))?;
        Ok(Opened {
            index: TextIndex::keep(inner, later),
            seq,
            state,
        })
    }

    /// An index that lives and ends with the process.
    pub fn in_memory() -> TextIndex {
        let fields = Fields::new();
        let mut index = Index::create_in_ram(fields.schema.clone());
        fields.register(&mut index);
        match Inner::new(fields, index, None, 0) {
            Ok(inner) => TextIndex::keep(inner, false),
            // An empty index in memory touches neither disk nor input.
            Err(error) => unreachable!("empty index in memory: {error}"),
        }
    }

    fn keep(inner: Inner, verify: bool) -> TextIndex {
        let inner = Arc::new(inner);
        let house = house::Housekeeper::start(Arc::downgrade(&inner));
        if verify {
            house.verify();
        }
        TextIndex { inner, house }
    }

    /// Fresh versions: every snapshot taken after the return sees them. For
    /// small batches. A version given again replaces the earlier text of it.
    pub fn add(&self, docs: Vec<Doc>) {
        if let Err(error) = guard(|| self.inner.add(docs)) {
            // Building in memory fails on nothing a document can contain.
            tracing::error!(%error, "versions were not added to the text index");
            self.inner.damaged.store(true, Ordering::Relaxed);
        }
    }

    /// Many versions straight into the files, seen after the next `commit`. If
    /// that fails they are to be given again.
    pub fn add_bulk(&self, docs: Vec<Doc>) -> Result<(), SearchError> {
        guard(|| self.inner.add_bulk(&docs))
    }

    /// The page's versions older than `before_seq` are no more: the next
    /// snapshot does not count them, the next commits drop them. They need not
    /// be found meanwhile.
    pub fn forget(&self, page: u32, before_seq: u64) {
        let mut state = self.inner.state.lock();
        let bound = state.forgotten.entry(page).or_default();
        *bound = before_seq.max(*bound);
        let bound = *bound;
        state.counted.insert(page, bound);
        self.inner.outdated.store(true, Ordering::Release);
    }

    /// Folds the versions in memory into the files, durably; `seq` is what the
    /// files then contain.
    pub fn commit(&self, seq: u64) -> Result<(), SearchError> {
        guard(|| self.inner.commit(seq))?;
        self.house.tidy();
        Ok(())
    }

    /// As [`TextIndex::commit`], and no byte of what was forgotten stays in the files, once nobody
    /// holds an older snapshot and [`TextIndex::sweep`] was called.
    ///
    /// # Errors
    /// [`SearchError`]; what is there can be read all the same.
    pub fn purge(&self, seq: u64) -> Result<(), SearchError> {
        guard(|| self.inner.commit(seq))?;
        self.house.purge()
    }

    /// Removes files that no snapshot holds any more.
    ///
    /// # Errors
    /// [`SearchError`]
    pub fn sweep(&self) -> Result<(), SearchError> {
        guard(|| self.inner.refresh())
    }

    pub fn committed_seq(&self) -> u64 {
        self.inner.committed.load(Ordering::Acquire)
    }

    /// A consistent view; later writes do not change it. Take it after the
    /// candidates it will be asked with, so that no admitted version is newer.
    pub fn snapshot(&self) -> Snapshot {
        if self.inner.outdated.load(Ordering::Acquire)
            && let Err(error) = guard(|| self.inner.recount())
        {
            tracing::warn!(%error, "forgotten texts still count in the text index");
        }
        Snapshot {
            view: self.inner.view.load_full(),
            inner: self.inner.clone(),
        }
    }

    /// The versions present for a page, ascending.
    pub fn docs_of(&self, page: u32) -> Result<Vec<u64>, SearchError> {
        guard(|| {
            let term = self.inner.fields.page_term(page);
            let mut versions = BTreeSet::new();
            for layer in self.inner.view.load().layers() {
                versions.extend(layer.versions(&term)?.into_iter().map(|key| key.1));
            }
            Ok(versions.into_iter().collect())
        })
    }

    /// The distinct versions in files and memory, ascending.
    pub fn all_docs(&self) -> Result<Vec<Key>, SearchError> {
        guard(|| {
            let view = self.inner.view.load();
            let keys: HashSet<Key> = view.layers().flat_map(Layer::keys).collect();
            let mut keys: Vec<Key> = keys.into_iter().collect();
            keys.sort_unstable();
            Ok(keys)
        })
    }

    pub fn stats(&self) -> Stats {
        let view = self.inner.view.load();
        let docs = |layer: &Layer| layer.searcher.num_docs();
        Stats {
            segments: view.main.searcher.segment_readers().len(),
            docs: docs(&view.main),
            delta_docs: view.deltas.iter().map(|delta| docs(&delta.layer)).sum(),
            bytes_on_disk: self.inner.dir.as_deref().map_or(0, open::bytes_in),
        }
    }

    /// Waits until merges that are due have run: for measuring and for tests.
    pub fn settle(&self) {
        self.house.settle();
    }
}

impl Drop for TextIndex {
    /// Lets go of the folder at once, whoever still reads a snapshot.
    fn drop(&mut self) {
        // Without a writer a running merge ends and none begins.
        *self.inner.writer.lock() = None;
        self.house.stop();
    }
}

impl Inner {
    fn new(
        fields: Fields,
        index: Index,
        dir: Option<PathBuf>,
        seq: u64,
    ) -> Result<Inner, SearchError> {
        guard(|| {
            let manual = tantivy::ReloadPolicy::Manual;
            let reader: IndexReader = index.reader_builder().reload_policy(manual).try_into()?;
            let main = Layer::new(&fields, reader.searcher(), None)?;
            let state = State {
                known: main.keys(),
                ..State::default()
            };
            let view = View::new(&fields, main, Vec::new());
            Ok(Inner {
                fields,
                index,
                reader,
                writer: Mutex::new(None),
                state: Mutex::new(state),
                view: ArcSwap::from_pointee(view),
                outdated: AtomicBool::new(false),
                committed: AtomicU64::new(seq),
                damaged: AtomicBool::new(false),
                dir,
            })
        })
    }

    fn publish(
        &self,
        state: &mut State,
        mut main: Layer,
        mut deltas: Vec<Delta>,
    ) -> Result<(), SearchError> {
        let counted = std::mem::take(&mut state.counted);
        self.outdated.store(false, Ordering::Release);
        main.forget(&self.fields, &counted)?;
        for delta in &mut deltas {
            delta.layer.forget(&self.fields, &counted)?;
        }
        self.view
            .store(Arc::new(View::new(&self.fields, main, deltas)));
        Ok(())
    }

    /// Publishes what is there without what was forgotten.
    fn recount(&self) -> Result<(), SearchError> {
        let mut state = self.state.lock();
        let view = self.view.load();
        self.publish(&mut state, view.main.clone(), view.deltas.clone())
    }

    fn add(&self, docs: Vec<Doc>) -> Result<(), SearchError> {
        let docs = last_of_each(docs);
        if docs.is_empty() {
            return Ok(());
        }
        let mut state = self.state.lock();
        let view = self.view.load();
        let (mut main, mut deltas) = (view.main.clone(), view.deltas.clone());
        let keys: Vec<Key> = docs.iter().map(|doc| (doc.page, doc.seq)).collect();
        main.mask(
            &self.fields,
            keys.iter().copied().filter(|key| state.known.contains(key)),
        )?;
        for delta in &mut deltas {
            let again = |key: &Key| delta.docs.iter().any(|doc| (doc.page, doc.seq) == *key);
            let again: Vec<Key> = keys.iter().copied().filter(again).collect();
            delta.layer.mask(&self.fields, again.into_iter())?;
        }
        let mut fresh = Delta::build(&self.fields, docs)?;
        let bounds = keys
            .iter()
            .filter_map(|(page, _)| state.forgotten.get_key_value(page));
        fresh.layer.forget(
            &self.fields,
            &bounds.map(|(page, bound)| (*page, *bound)).collect(),
        )?;
        deltas.push(fresh);
        compact(&self.fields, &mut deltas, state.folding, &state.forgotten)?;
        self.publish(&mut state, main, deltas)?;
        for key in &keys {
            if let Some(superseded) = state.bulk.get_mut(key) {
                *superseded = true;
            }
        }
        Ok(())
    }

    /// Runs `work` with the writer of the files; on failure the writer goes, and
    /// with it whatever it was given since the last commit.
    fn with_writer<T>(
        &self,
        work: impl FnOnce(&mut IndexWriter) -> Result<T, SearchError>,
    ) -> Result<T, SearchError> {
        let mut slot = self.writer.lock();
        if slot.is_none() {
            *slot = Some(self.open_writer()?);
        }
        let Some(writer) = slot.as_mut() else {
            return Err(SearchError::Locked);
        };
        let result = guard(|| work(writer));
        if result.is_err() {
            *slot = None;
            self.state.lock().bulk.clear();
        }
        result
    }

    fn open_writer(&self) -> Result<IndexWriter, SearchError> {
        let options = IndexWriterOptions::builder()
            .num_worker_threads(WRITER_THREADS)
            .memory_budget_per_thread(WRITER_BUDGET)
            .num_merge_threads(1)
            .build();
        let writer: IndexWriter = self.index.writer_with_options(options)?;
        writer.set_merge_policy(Box::new(NoMergePolicy));
        // What a commit left behind that did not come to its end: files named after operations
        // whose numbers are given once more, and which are never written over.
        writer.garbage_collect_files().wait()?;
        Ok(writer)
    }

    fn add_bulk(&self, docs: &[Doc]) -> Result<(), SearchError> {
        self.with_writer(|writer| {
            for doc in docs {
                let key = (doc.page, doc.seq);
                let mut state = self.state.lock();
                if state.known.contains(&key) || state.bulk.contains_key(&key) {
                    writer.delete_term(self.fields.key_term(key));
                }
                state.bulk.insert(key, false);
                drop(state);
                // One by one: the queue before the indexing threads is bounded in
                // batches, so that larger ones would pile up in memory.
                for document in self.fields.documents(doc) {
                    writer.add_document(document)?;
                }
            }
            Ok(())
        })
    }

    fn commit(&self, seq: u64) -> Result<(), SearchError> {
        let result = self.with_writer(|writer| {
            let fold = self.begin_fold();
            if fold.is_nothing() && seq == self.committed.load(Ordering::Acquire) {
                return Ok(());
            }
            self.write_fold(writer, &fold)?;
            let mut prepared = writer.prepare_commit()?;
            prepared.set_payload(&open::payload(seq));
            prepared.commit()?;
            self.reader.reload()?;
            self.end_fold(fold)?;
            self.committed.store(seq, Ordering::Release);
            Ok(())
        });
        self.state.lock().folding = 0;
        result
    }

    /// Takes what is to be folded; the layers stay visible meanwhile.
    fn begin_fold(&self) -> Fold {
        let mut state = self.state.lock();
        let deltas = self.view.load().deltas.clone();
        state.folding = deltas.len();
        let forgotten = state.forgotten.clone();
        let gone = |key: &Key| is_forgotten(&forgotten, *key);
        let drop: HashSet<Key> = if forgotten.is_empty() {
            HashSet::new()
        } else {
            state
                .known
                .iter()
                .chain(state.bulk.keys())
                .copied()
                .filter(gone)
                .collect()
        };
        let add: Vec<Arc<Doc>> = deltas
            .iter()
            .flat_map(Delta::live)
            .filter(|doc| !gone(&(doc.page, doc.seq)))
            .filter(|doc| state.bulk.get(&(doc.page, doc.seq)) != Some(&false))
            .cloned()
            .collect();
        let replace = add.iter().map(|doc| (doc.page, doc.seq));
        let replace =
            replace.filter(|key| state.known.contains(key) || state.bulk.contains_key(key));
        let replace = replace.collect();
        let bulk = state.bulk.keys().copied().collect();
        Fold {
            add,
            drop,
            replace,
            bulk,
            forgotten,
            layers: deltas.len(),
        }
    }

    fn write_fold(&self, writer: &mut IndexWriter, fold: &Fold) -> Result<(), SearchError> {
        for key in fold.drop.iter().chain(&fold.replace) {
            writer.delete_term(self.fields.key_term(*key));
        }
        // One batch is one segment; a commit of little makes one small segment.
        let mut batch: Vec<UserOperation> = Vec::new();
        for doc in &fold.add {
            batch.extend(
                self.fields
                    .documents(doc)
                    .into_iter()
                    .map(UserOperation::Add),
            );
            if batch.len() >= FOLD_BATCH {
                send(writer, &mut batch)?;
            }
        }
        send(writer, &mut batch)
    }

    /// Publishes the committed files without the layers they now contain.
    fn end_fold(&self, fold: Fold) -> Result<(), SearchError> {
        let mut state = self.state.lock();
        state.known.retain(|key| !fold.drop.contains(key));
        state
            .known
            .extend(fold.bulk.iter().filter(|key| !fold.drop.contains(*key)));
        state
            .known
            .extend(fold.add.iter().map(|doc| (doc.page, doc.seq)));
        state.bulk.retain(|key, _| !fold.bulk.contains(key));
        state
            .forgotten
            .retain(|page, before| fold.forgotten.get(page) != Some(before));
        state.folding = 0;
        self.publish_files(&mut state, fold.layers)
    }

    /// Publishes the files as the reader has them now, without the oldest
    /// `folded` layers in memory.
    fn publish_files(&self, state: &mut State, folded: usize) -> Result<(), SearchError> {
        let view = self.view.load();
        let deltas = view.deltas[folded..].to_vec();
        let mut main = Layer::new(&self.fields, self.reader.searcher(), Some(&view.main))?;
        main.forget(&self.fields, &state.forgotten)?;
        main.mask(&self.fields, fresh_again(&deltas, &state.known))?;
        self.publish(state, main, deltas)
    }

    /// Publishes the files as merges have left them.
    pub fn refresh(&self) -> Result<(), SearchError> {
        // A commit publishes its own files: it must not be between the two.
        let slot = self.writer.lock();
        self.reader.reload()?;
        self.publish_files(&mut self.state.lock(), 0)?;
        if let Some(writer) = slot.as_ref() {
            // Old files that a reader still holds go with a later round.
            let _ = writer.garbage_collect_files().wait();
        }
        Ok(())
    }

    /// Starts the merge that is most due, if any.
    pub fn start_merge(&self, due: &house::Due) -> Option<house::Merge> {
        let mut slot = self.writer.lock();
        let writer = slot.as_mut()?;
        let metas = self.index.searchable_segment_metas().ok()?;
        let due = due(&metas)?;
        Some(writer.merge(&due))
    }
}

/// What one commit moves into the files.
struct Fold {
    add: Vec<Arc<Doc>>,
    drop: HashSet<Key>,
    /// Versions in the files, or given in bulk before, that memory has newer.
    replace: HashSet<Key>,
    bulk: HashSet<Key>,
    forgotten: Forgotten,
    layers: usize,
}

impl Fold {
    fn is_nothing(&self) -> bool {
        // Layers whose versions are all forgotten still have to go.
        self.layers == 0 && self.drop.is_empty() && self.bulk.is_empty()
    }
}

fn fresh_again(deltas: &[Delta], known: &HashSet<Key>) -> impl Iterator<Item = Key> {
    let keys = deltas
        .iter()
        .flat_map(Delta::live)
        .map(|doc| (doc.page, doc.seq));
    keys.filter(|key| known.contains(key))
}

fn send(
    writer: &IndexWriter,
    batch: &mut Vec<UserOperation<TantivyDocument>>,
) -> Result<(), SearchError> {
    // The indexing threads take no empty batches.
    if !batch.is_empty() {
        writer.run(std::mem::take(batch))?;
    }
    Ok(())
}

fn last_of_each(docs: Vec<Doc>) -> Vec<Arc<Doc>> {
    let mut seen = HashSet::new();
    let mut docs: Vec<Arc<Doc>> = docs.into_iter().map(Arc::new).collect();
    docs.reverse();
    docs.retain(|doc| seen.insert((doc.page, doc.seq)));
    docs.reverse();
    docs
}

/// Joins layers of one size class, so that a search meets few of them, and lets
/// go of what is forgotten. Layers before `from` belong to a running commit.
fn compact(
    fields: &Fields,
    deltas: &mut Vec<Delta>,
    from: usize,
    forgotten: &Forgotten,
) -> tantivy::Result<()> {
    let class = |delta: &Delta| delta.docs.len().max(1).ilog(DELTA_FAN);
    loop {
        let Some(last) = deltas.last().map(class) else {
            return Ok(());
        };
        let same = deltas[from.min(deltas.len())..]
            .iter()
            .rev()
            .take_while(|d| class(d) == last);
        if same.count() < DELTA_FAN {
            return Ok(());
        }
        let joined = deltas.split_off(deltas.len() - DELTA_FAN);
        let docs = joined.iter().flat_map(Delta::live);
        let docs = docs.filter(|doc| !is_forgotten(forgotten, (doc.page, doc.seq)));
        let docs: Vec<Arc<Doc>> = docs.cloned().collect();
        if !docs.is_empty() {
            deltas.push(Delta::build(fields, docs)?);
        }
    }
}

/// A consistent view that later writes do not change.
#[derive(Clone)]
pub struct Snapshot {
    view: Arc<View>,
    inner: Arc<Inner>,
}

impl Snapshot {
    /// This view with further versions in it, which the index never learns of.
    ///
    /// # Errors
    /// [`SearchError::Damaged`]
    pub fn with(&self, docs: Vec<Doc>) -> Result<Snapshot, SearchError> {
        guard(|| {
            let fields = &self.inner.fields;
            let docs = last_of_each(docs);
            let (mut main, mut deltas) = (self.view.main.clone(), self.view.deltas.clone());
            let keys: Vec<Key> = docs.iter().map(|doc| (doc.page, doc.seq)).collect();
            main.mask(fields, keys.iter().copied())?;
            for delta in &mut deltas {
                delta.layer.mask(fields, keys.iter().copied())?;
            }
            deltas.push(Delta::build(fields, docs)?);
            Ok(Snapshot {
                view: Arc::new(View::new(fields, main, deltas)),
                inner: self.inner.clone(),
            })
        })
    }

    /// # Errors
    /// [`SearchError`]; a query is never at fault for what it says.
    pub fn search(&self, query: &Query<'_>) -> Result<Answer, SearchError> {
        if self.inner.damaged.load(Ordering::Relaxed) {
            return Err(SearchError::Damaged("the files failed their check".into()));
        }
        guard(|| lanes::search(&self.inner.fields, &self.view, query))
    }
}
