//! What goes on behind the calls: recovery, watching, folding, saving.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, select, unbounded};
use escurel_index::Directory;
use escurel_store::Changed;
use parking_lot::Mutex;

use crate::kb::Core;
use crate::recover::directory_file;
use crate::tables;
use crate::{Code, Refusal, Result};

/// Wakes the maintenance thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    /// Something was published.
    Dirty,
    /// Files may not be as they are known.
    Rescan,
    Stop,
}

/// A piece of background work, for those who decide themselves when it happens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Chore {
    /// Compares all files with what is known.
    Scan,
    /// Compares these only, as after a message of the watcher.
    Look(Vec<String>),
    /// Decides about vanished files, if they have been away for long enough.
    Settle,
    /// Folds fresh texts into the index files and makes page files durable.
    Fold,
    /// Writes what makes the next start quick.
    Save,
    /// Looks after pages that are edited live.
    Attend,
}

pub(crate) struct Signals {
    tx: Sender<Signal>,
    rx: Receiver<Signal>,
    dirty: AtomicBool,
    /// What the directory file holds; held while it is written.
    pub(crate) saved: Mutex<Option<Saved>>,
}

/// A state of the directory; equal ones need no second file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Saved {
    seq: u64,
    revision: u64,
}

impl Saved {
    pub fn of(dir: &Directory, seq: u64) -> Saved {
        let revision = dir.revision();
        Saved { seq, revision }
    }
}

impl Signals {
    pub fn new(saved: Option<Saved>) -> Signals {
        let (tx, rx) = unbounded();
        Signals {
            tx,
            rx,
            dirty: AtomicBool::new(false),
            saved: Mutex::new(saved),
        }
    }

    pub fn send(&self, signal: Signal) {
        let _ = self.tx.send(signal);
    }
}

/// Fresh texts are folded into the index files this long after they came.
const FOLD: Duration = Duration::from_millis(500);
/// The directory file is written at most this often while pages change.
const SAVE: Duration = Duration::from_secs(60);
/// Without a watcher the folder is scanned this often; with one, as a safety net.
const RESCAN_UNWATCHED: Duration = Duration::from_secs(2);
const RESCAN: Duration = Duration::from_secs(600);
/// More changed paths than this are found quicker by a scan.
const MANY_PATHS: usize = 1_000;
const TICK: Duration = Duration::from_millis(100);

/// What runs behind an open knowledge base.
pub(crate) struct Threads {
    keeper: JoinHandle<()>,
    attendant: JoinHandle<()>,
    embedders: Vec<JoinHandle<()>>,
}

/// Whoever waits for a provider may wait for long. What it would bring is made again.
const GRACE: Duration = Duration::from_secs(2);

impl Threads {
    /// Waits for them; they were told to stop.
    pub fn end(self) {
        let _ = self.keeper.join();
        let _ = self.attendant.join();
        let deadline = Instant::now() + GRACE;
        for thread in self.embedders {
            while !thread.is_finished() && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(5));
            }
            if thread.is_finished() {
                let _ = thread.join();
            }
        }
    }
}

pub(crate) fn start(core: &Arc<Core>) -> Result<Threads> {
    let keeper = core.clone();
    let run = move || {
        let failure = keeper.run().err();
        if let Some(refusal) = &failure {
            tracing::error!("{refusal}");
            keeper.progress.failed(refusal);
        }
        keeper
            .progress
            .end(failure.map(|refusal| refusal.to_string()));
    };
    let thread = std::thread::Builder::new()
        .name("escurel-keeper".into())
        .spawn(run);
    let keeper = thread.map_err(Refusal::from)?;
    let live = core.clone();
    let attendant = std::thread::Builder::new()
        .name("escurel-live".into())
        .spawn(move || live.attend_sessions())
        .map_err(Refusal::from)?;
    let mut embedders = Vec::new();
    if core.meaning.upkeep().is_some() {
        for n in 0..crate::meaning::workers() {
            let core = core.clone();
            let thread = std::thread::Builder::new()
                .name(format!("escurel-embed-{n}"))
                .spawn(move || core.keep_meaning(n == 0));
            embedders.push(thread.map_err(Refusal::from)?);
        }
    }
    Ok(Threads {
        keeper,
        attendant,
        embedders,
    })
}

impl Core {
    pub(crate) fn dirty(&self) {
        if !self.signals.dirty.swap(true, Ordering::AcqRel) {
            self.signals.send(Signal::Dirty);
        }
    }

    pub(crate) fn request_rescan(&self) {
        self.signals.send(Signal::Rescan);
    }

    fn run(&self) -> Result<()> {
        let (tx, changes) = unbounded();
        let watch = self.watch(tx);
        self.start_up()?;
        if self.stopping() {
            return Ok(());
        }
        let rescan = if watch.is_some() {
            RESCAN
        } else {
            RESCAN_UNWATCHED
        };
        self.keep(&changes, rescan);
        Ok(())
    }

    /// From what is on disk to a state that answers for every page.
    pub(crate) fn start_up(&self) -> Result<()> {
        let erasures = self.replay()?;
        self.reconcile_all()?;
        if self.stopping() {
            return Ok(());
        }
        self.fold()?;
        self.erase_again(&erasures)?;
        self.resume_sessions();
        self.progress.ready();
        self.view.load().dir.warm();
        self.save();
        Ok(())
    }

    /// Does one piece of background work now, and what was asked for before it.
    /// For knowledge bases from [`crate::Kb::stepped`].
    pub fn do_chore(&self, chore: &Chore) -> Result<()> {
        while let Ok(signal) = self.signals.rx.try_recv() {
            self.obey(signal)?;
        }
        match chore {
            Chore::Scan => self.reconcile_all().map(drop),
            Chore::Look(paths) => self.reconcile_paths(paths).map(drop),
            Chore::Settle if self.deletions.due(self.now()) == Some(true) => {
                self.settle_deletions()
            }
            Chore::Settle => Ok(()),
            Chore::Fold => self.fold().and_then(|()| self.mark_applied()),
            Chore::Save => self.try_save(&mut self.signals.saved.lock()),
            Chore::Attend => {
                self.keep_sessions();
                Ok(())
            }
        }
    }

    fn obey(&self, signal: Signal) -> Result<()> {
        match signal {
            Signal::Rescan => self.reconcile_all().map(drop),
            Signal::Dirty | Signal::Stop => Ok(()),
        }
    }

    fn watch(&self, tx: Sender<Changed>) -> Option<escurel_store::Watch> {
        match self.files.as_ref()?.watch(tx) {
            Ok(watch) => Some(watch),
            Err(error) => {
                self.progress.warn(error.to_string());
                None
            }
        }
    }

    fn keep(&self, changes: &Receiver<Changed>, rescan: Duration) {
        let mut times = Times {
            scanned: Instant::now(),
            folded: Instant::now(),
            saved: Instant::now(),
        };
        while !self.stopping() {
            let outcome = select! {
                recv(changes) -> changed => match changed {
                    Ok(changed) => self.take_changes(changed, changes),
                    Err(_) => { std::thread::sleep(TICK); Ok(()) }
                },
                recv(self.signals.rx) -> signal => match signal {
                    Ok(signal) => self.obey(signal),
                    Err(_) => Ok(()),
                },
                default(TICK) => Ok(()),
            };
            let outcome = outcome.and_then(|()| self.tick(&mut times, rescan));
            if let Err(refusal) = outcome {
                self.progress.warn(refusal.to_string());
                self.progress.failed(&refusal);
            }
        }
    }

    /// One batch of outside changes, with what came meanwhile.
    fn take_changes(&self, first: Changed, changes: &Receiver<Changed>) -> Result<()> {
        let mut paths = std::collections::BTreeSet::new();
        for changed in std::iter::once(first).chain(changes.try_iter()) {
            match changed {
                Changed::Paths(some) => paths.extend(some),
                Changed::Rescan => return self.rescan(changes),
            }
        }
        let folder = |path: &String| !escurel_store::is_page(path);
        if paths.len() > MANY_PATHS || paths.iter().any(folder) {
            return self.rescan(changes);
        }
        let paths: Vec<String> = paths.into_iter().collect();
        self.reconcile_paths(&paths).map(drop)
    }

    /// A scan sees everything that was queued before it.
    fn rescan(&self, changes: &Receiver<Changed>) -> Result<()> {
        changes.try_iter().for_each(drop);
        self.reconcile_all().map(drop)
    }

    fn tick(&self, times: &mut Times, rescan: Duration) -> Result<()> {
        if self.deletions.due(self.now()) == Some(true) {
            self.settle_deletions()?;
        }
        if times.scanned.elapsed() >= rescan {
            times.scanned = Instant::now();
            self.reconcile_all()?;
        }
        if times.folded.elapsed() >= FOLD && self.signals.dirty.swap(false, Ordering::AcqRel) {
            times.folded = Instant::now();
            self.fold()?;
            self.mark_applied()?;
        }
        if times.saved.elapsed() >= SAVE {
            times.saved = Instant::now();
            self.save();
            self.save_vectors();
        }
        Ok(())
    }

    /// Folds fresh texts into the index files.
    fn fold(&self) -> Result<()> {
        let seq = self.lane.state.lock().seq;
        self.text.commit(seq)?;
        let mut state = self.lane.state.lock();
        self.show(&mut state);
        Ok(())
    }

    /// Page files are durable up to what is published now.
    fn mark_applied(&self) -> Result<()> {
        let seq = self.lane.state.lock().seq;
        if seq > self.store.applied() {
            self.store.flush_files()?;
            self.reach("core.before_applied")?;
            self.store.set_applied(seq)?;
        }
        Ok(())
    }

    /// Writes what makes the next start quick. Failing is harmless.
    pub(crate) fn save(&self) {
        let mut saved = self.signals.saved.lock();
        if let Err(refusal) = self.try_save(&mut saved) {
            tracing::warn!(%refusal, "the index was not saved; the next start takes longer");
        }
    }

    pub(crate) fn try_save(&self, saved: &mut Option<Saved>) -> Result<()> {
        self.reach("core.before_save")?;
        self.fold()?;
        self.mark_applied()?;
        let (dir, seq, tables) = {
            let state = self.lane.state.lock();
            (state.dir.clone(), state.seq, state.tables.clone())
        };
        let state = Some(Saved::of(&dir, seq));
        if *saved == state {
            return Ok(());
        }
        // Never ahead of the mark: records after it are always replayed, which recovery relies on.
        if seq > self.store.applied() {
            return Err(Refusal::new(Code::Io, "Page files are not durable yet."));
        }
        self.reach("core.before_directory_save")?;
        tables.save(&tables::file(&self.index), self.generation)?;
        dir.save(&directory_file(&self.index), seq, self.generation)?;
        self.save_sums()?;
        *saved = state;
        Ok(())
    }
}

struct Times {
    scanned: Instant,
    folded: Instant,
    saved: Instant,
}
