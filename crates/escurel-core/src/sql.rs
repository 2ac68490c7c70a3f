//! Feeds DuckDB behind the published state, in batches, on a thread of its own.
//!
//! Writers never wait for it beyond a full queue; a reader that needs it waits,
//! for a bounded time, until it contains the state the reader works on.

use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, bounded};
use escurel_index::{Directory, Duck, DuckState, PageNo, VersionChange};
use escurel_md::Layout;
use escurel_store::{Kind, Record, Store};
use parking_lot::{Condvar, Mutex};
use rayon::prelude::*;

use crate::facts::Parsed;
use crate::{Code, Refusal, Result};

/// One published step.
pub(crate) struct Batch {
    pub changes: Vec<VersionChange>,
    pub relink: Vec<PageNo>,
    pub dir: Directory,
    /// Everything up to here is contained after this batch.
    pub seq: u64,
    /// Begin a fresh file first, and tell these when it contains everything.
    pub renewed: Vec<Sender<()>>,
}

impl Batch {
    /// Only to be brought up to `seq`.
    pub fn nothing(dir: Directory, seq: u64) -> Batch {
        Batch {
            changes: Vec::new(),
            relink: Vec::new(),
            dir,
            seq,
            renewed: Vec::new(),
        }
    }
}

pub(crate) struct SqlLane {
    jobs: Mutex<Option<Sender<Batch>>>,
    ready: Arc<Ready>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct Ready {
    state: Mutex<ReadyState>,
    changed: Condvar,
}

#[derive(Default)]
struct ReadyState {
    duck: Option<Arc<Duck>>,
    failure: Option<String>,
    warning: Option<String>,
}

/// Batches waiting before writers are slowed down.
const QUEUE: usize = 64;
/// How long a reader waits for the newest writes.
const PATIENCE: Duration = Duration::from_secs(10);
/// Records parsed together when catching up from the journal.
const CATCH_UP: usize = 2_000;

impl SqlLane {
    pub fn start(dir: PathBuf, generation: u128, store: Arc<dyn Store>, layout: Layout) -> SqlLane {
        let (tx, rx) = bounded(QUEUE);
        let ready = Arc::new(Ready::default());
        let worker = Worker {
            dir,
            generation,
            head: store.head(),
            store,
            layout,
            ready: ready.clone(),
        };
        let thread = std::thread::Builder::new()
            .name("escurel-sql".into())
            .spawn(move || worker.run(rx));
        SqlLane {
            jobs: Mutex::new(Some(tx)),
            ready,
            thread: Mutex::new(thread.ok()),
        }
    }

    /// None: whoever asks for it is refused.
    pub fn none() -> SqlLane {
        let ready = ReadyState {
            failure: Some("There is no query index.".to_owned()),
            ..ReadyState::default()
        };
        SqlLane {
            jobs: Mutex::default(),
            ready: Arc::new(Ready {
                state: Mutex::new(ready),
                changed: Condvar::new(),
            }),
            thread: Mutex::default(),
        }
    }

    pub fn send(&self, batch: Batch) {
        let jobs = self.jobs.lock().clone();
        if let Some(jobs) = jobs {
            let _ = jobs.send(batch);
        }
    }

    /// Everything is read from the journal into a fresh file. An answer comes when it is
    /// there, none when it cannot be.
    pub fn renew(&self, batch: Batch) -> Receiver<()> {
        let (done, wait) = bounded(1);
        self.send(Batch {
            renewed: vec![done],
            ..batch
        });
        wait
    }

    /// DuckDB, once it contains everything up to `seq`.
    pub fn at(&self, seq: u64) -> Result<Arc<Duck>> {
        let duck = self.duck()?;
        if duck.wait_for(seq, PATIENCE) {
            return Ok(duck);
        }
        Err(Refusal::new(
            Code::IndexBehind,
            format!("The query index contains record {} of {seq}.", duck.seq()),
        ))
    }

    fn duck(&self) -> Result<Arc<Duck>> {
        let mut state = self.ready.state.lock();
        loop {
            if let Some(failure) = &state.failure {
                return Err(Refusal::new(Code::IndexDamaged, failure.clone()));
            }
            if let Some(duck) = &state.duck {
                return Ok(duck.clone());
            }
            if self
                .ready
                .changed
                .wait_for(&mut state, PATIENCE)
                .timed_out()
            {
                return Err(Refusal::new(
                    Code::IndexBehind,
                    "The query index is still being opened.",
                ));
            }
        }
    }

    /// Sequence number it contains, 0 while it is being opened; and what went wrong.
    pub fn state(&self) -> (u64, Option<String>) {
        let state = self.ready.state.lock();
        let seq = state.duck.as_ref().map_or(0, |duck| duck.seq());
        (seq, state.failure.clone().or_else(|| state.warning.clone()))
    }

    pub fn close(&self) {
        self.jobs.lock().take();
        if let Some(thread) = self.thread.lock().take() {
            let _ = thread.join();
        }
    }
}

struct Worker {
    dir: PathBuf,
    generation: u128,
    /// Of the journal, before this process added to it.
    head: u64,
    store: Arc<dyn Store>,
    layout: Layout,
    ready: Arc<Ready>,
}

impl Worker {
    fn run(self, jobs: Receiver<Batch>) {
        match self.open() {
            Ok((duck, state)) => {
                let duck = Arc::new(duck);
                self.announce(duck.clone(), state);
                self.work(duck, jobs);
            }
            Err(error) => self.fail(error.to_string(), jobs),
        }
    }

    /// Rows of records that the journal does not have (any more) would stay for ever.
    fn open(&self) -> std::result::Result<(Duck, DuckState), escurel_index::IndexError> {
        let opened = Duck::open(&self.dir, self.generation)?;
        if opened.0.seq() <= self.head {
            return Ok(opened);
        }
        drop(opened);
        Duck::forget(&self.dir)?;
        Duck::open(&self.dir, self.generation)
    }

    fn announce(&self, duck: Arc<Duck>, opened: DuckState) {
        let mut state = self.ready.state.lock();
        if let DuckState::MovedAside { to, reason } = opened {
            let to = to.display();
            state.warning = Some(format!(
                "The query index was damaged ({reason}); it stands at {to} and is being rebuilt."
            ));
        }
        state.duck = Some(duck);
        self.ready.changed.notify_all();
    }

    /// Readers get the reason; writers go on.
    fn fail(&self, reason: String, jobs: Receiver<Batch>) {
        tracing::error!(reason, "the query index cannot be used");
        self.ready.state.lock().failure = Some(reason);
        self.ready.changed.notify_all();
        jobs.iter().for_each(drop);
    }

    fn work(&self, mut duck: Arc<Duck>, jobs: Receiver<Batch>) {
        while let Ok(first) = jobs.recv() {
            let mut batch = jobs.try_iter().take(QUEUE).fold(first, merge);
            let renewed = std::mem::take(&mut batch.renewed);
            if !renewed.is_empty() {
                duck = match self.renew(duck) {
                    Ok(duck) => duck,
                    Err(error) => return self.fail(error.to_string(), jobs),
                };
            }
            if let Err(error) = self.apply(&duck, batch) {
                return self.fail(error.to_string(), jobs);
            }
            for done in renewed {
                // Whoever asked may be gone.
                let _ = done.send(());
            }
        }
        if let Err(error) = duck.checkpoint() {
            tracing::warn!(%error, "the query index was not checkpointed");
        }
    }

    /// A fresh file in the place of this one, once nobody reads it any more.
    fn renew(&self, duck: Arc<Duck>) -> std::result::Result<Arc<Duck>, escurel_index::IndexError> {
        self.ready.state.lock().duck = None;
        let mut last = duck;
        let last = loop {
            match Arc::try_unwrap(last) {
                Ok(duck) => break duck,
                Err(read) => last = read,
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        drop(last);
        Duck::forget(&self.dir)?;
        let (duck, state) = Duck::open(&self.dir, self.generation)?;
        let duck = Arc::new(duck);
        self.announce(duck.clone(), state);
        Ok(duck)
    }

    fn apply(
        &self,
        duck: &Duck,
        batch: Batch,
    ) -> std::result::Result<(), escurel_index::IndexError> {
        let contained = batch
            .changes
            .first()
            .map_or(batch.seq, |c| c.seq.saturating_sub(1));
        if duck.seq() < contained || duck.seq() == 0 {
            self.catch_up(duck, &batch.dir, contained)?;
        }
        duck.apply(&batch.changes, &batch.relink, &batch.dir, batch.seq)
    }

    /// Replays journal records that no batch carries: those written before this process.
    fn catch_up(
        &self,
        duck: &Duck,
        dir: &Directory,
        upto: u64,
    ) -> std::result::Result<(), escurel_index::IndexError> {
        let mut replay = Replay {
            store: &*self.store,
            layout: self.layout,
            last: Default::default(),
        };
        let mut chunk = Vec::new();
        let begin = duck.seq();
        for record in self.store.records(0) {
            let Ok(record) = record else { break };
            if record.seq > upto {
                break;
            }
            let last = record.seq;
            if last > begin {
                chunk.push(record);
            } else {
                replay.remember(&record);
            }
            if chunk.len() >= CATCH_UP {
                duck.apply(&replay.changes(&chunk, dir), &[], dir, last)?;
                chunk.clear();
            }
        }
        // Links of other pages may lead to what came, went or got another name.
        let all: Vec<PageNo> = dir.iter().map(|e| e.no).collect();
        duck.apply(&replay.changes(&chunk, dir), &all, dir, upto)
    }
}

/// Joins batches into one transaction.
fn merge(mut sum: Batch, next: Batch) -> Batch {
    sum.changes.extend(next.changes);
    sum.relink.extend(next.relink);
    sum.renewed.extend(next.renewed);
    Batch {
        dir: next.dir,
        seq: next.seq,
        ..sum
    }
}

/// Rebuilds version changes from journal records.
struct Replay<'a> {
    store: &'a dyn Store,
    layout: Layout,
    /// The newest version record of each page, for records that carry no content.
    last: std::collections::HashMap<escurel_store::Uid, Record>,
}

impl Replay<'_> {
    fn remember(&mut self, record: &Record) {
        if let (Some(uid), Kind::PageVersion) = (record.uid, record.kind) {
            self.last.insert(uid, record.clone());
        }
    }

    fn changes(&mut self, records: &[Record], dir: &Directory) -> Vec<VersionChange> {
        let mut with_content = Vec::with_capacity(records.len());
        for record in records {
            self.remember(record);
            let version = record.uid.and_then(|uid| self.last.get(&uid).cloned());
            with_content.push((record, version));
        }
        with_content
            .par_iter()
            .filter_map(|(record, version)| self.change(record, version.as_ref()?, dir))
            .collect()
    }

    fn change(&self, record: &Record, version: &Record, dir: &Directory) -> Option<VersionChange> {
        let deleted = record.kind == Kind::PageDeleted;
        if !deleted && !matches!(record.kind, Kind::PageVersion | Kind::PageMoved) {
            return None;
        }
        let uid = record.uid?;
        let path = record.path.clone()?;
        let no = dir.number_of(uid)?;
        if deleted {
            return Some(tombstone(no, record, version));
        }
        let content = version.content.as_ref()?;
        let bytes = self.store.object(&content.object).unwrap_or_default();
        let parsed = Parsed::of(&path, &bytes, self.layout);
        Some(version_change(no, record, version, &parsed))
    }
}

/// The change that a version or move record makes; `version` is the record that holds the text.
pub(crate) fn version_change(
    no: PageNo,
    record: &Record,
    version: &Record,
    parsed: &Parsed,
) -> VersionChange {
    VersionChange {
        content: Some(parsed.facts.clone()),
        blocks: parsed.block_rows(),
        ..bare_change(no, record, version)
    }
}

pub(crate) fn tombstone(no: PageNo, record: &Record, version: &Record) -> VersionChange {
    VersionChange {
        object: String::new(),
        bytes: 0,
        ..bare_change(no, record, version)
    }
}

fn bare_change(no: PageNo, record: &Record, version: &Record) -> VersionChange {
    let content = version.content.as_ref();
    VersionChange {
        no,
        uid: record.uid.unwrap_or(escurel_store::Uid(0)),
        version: version.version.unwrap_or(0),
        seq: record.seq,
        path: record.path.as_deref().unwrap_or_default().into(),
        from: valid_from(record),
        at: record.at,
        actor: record.actor.as_str().into(),
        origin: origin(record).into(),
        object: content.map(|c| c.object.to_string()).unwrap_or_default(),
        bytes: content.map_or(0, |c| c.bytes),
        content: None,
        blocks: Vec::new(),
    }
}

/// When the text of this record began to hold.
pub(crate) fn valid_from(record: &Record) -> i64 {
    record.from.unwrap_or(record.at)
}

/// How the record came to be; the kind where a version has no origin of its own.
pub(crate) fn origin(record: &Record) -> &str {
    record
        .note
        .get("origin")
        .and_then(|v| v.as_str())
        .unwrap_or_else(|| record.kind.name())
}
