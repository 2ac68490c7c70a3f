//! Housekeeping beside the writers: one thread that merges segments when there
//! are many or much in them is deleted, and checks the files once after opening.
//! It holds no lock while a merge runs and ends with the index.

use std::sync::Weak;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tantivy::index::SegmentId;
use tantivy::{FutureResult, SegmentMeta};

use crate::api::SearchError;
use crate::index::Inner;
use crate::{guard, open};

pub(crate) type Merge = FutureResult<Option<SegmentMeta>>;

enum Task {
    Verify,
    VerifyLater,
    Tidy,
    Settle(Sender<()>),
    Purge(Sender<Result<(), SearchError>>),
}

/// After opening, others need the cores and the disk more.
const CALM: Duration = Duration::from_secs(3);

/// What to do next; none when the index is dropped.
fn next(inbox: &Receiver<Task>, verify_at: &mut Option<Instant>) -> Option<Task> {
    let Some(at) = *verify_at else {
        return inbox.recv().ok();
    };
    let wait = at.saturating_duration_since(Instant::now());
    match inbox.recv_timeout(wait) {
        Ok(task) => Some(task),
        Err(RecvTimeoutError::Disconnected) => None,
        Err(RecvTimeoutError::Timeout) => {
            *verify_at = None;
            Some(Task::Verify)
        }
    }
}

pub(crate) struct Housekeeper {
    tasks: Option<Sender<Task>>,
    thread: Option<JoinHandle<()>>,
}

impl Housekeeper {
    /// Without the thread the index works, with more segments.
    pub fn start(inner: Weak<Inner>) -> Self {
        let (tasks, inbox) = channel();
        let run = move || {
            let mut verify_at = None;
            while let Some(task) = next(&inbox, &mut verify_at) {
                match task {
                    Task::Verify => verify(&inner),
                    Task::VerifyLater => verify_at = Some(Instant::now() + CALM),
                    Task::Tidy => tidy(&inner),
                    Task::Settle(done) => {
                        tidy(&inner);
                        let _ = done.send(());
                    }
                    Task::Purge(done) => drop(done.send(merge_all(&inner, &deleted))),
                }
            }
        };
        let thread = std::thread::Builder::new()
            .name("search-house".into())
            .spawn(run);
        match thread {
            Ok(thread) => Housekeeper {
                tasks: Some(tasks),
                thread: Some(thread),
            },
            Err(error) => {
                tracing::warn!(%error, "no housekeeping for the text index");
                Housekeeper {
                    tasks: None,
                    thread: None,
                }
            }
        }
    }

    /// Waits for the end of what is running; nothing touches the files after.
    pub fn stop(&mut self) {
        self.tasks = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }

    fn send(&self, task: Task) {
        if let Some(tasks) = &self.tasks {
            let _ = tasks.send(task);
        }
    }

    pub fn verify(&self) {
        self.send(Task::VerifyLater);
    }

    pub fn tidy(&self) {
        self.send(Task::Tidy);
    }

    /// Writes every segment anew that has something deleted in it.
    pub fn purge(&self) -> Result<(), SearchError> {
        let (done, wait) = channel();
        self.send(Task::Purge(done));
        let gone = |_| SearchError::Damaged("nobody keeps house".into());
        wait.recv().map_err(gone)?
    }

    pub fn settle(&self) {
        let (done, wait) = channel();
        self.send(Task::Settle(done));
        let _ = wait.recv();
    }
}

fn verify(inner: &Weak<Inner>) {
    let Some(inner) = inner.upgrade() else { return };
    let Some(dir) = &inner.dir else { return };
    if let Some(reason) = open::broken_file(dir) {
        tracing::error!(%reason, "the text index is damaged");
        inner.damaged.store(true, Ordering::Relaxed);
    }
}

fn tidy(inner: &Weak<Inner>) {
    if let Err(error) = merge_all(inner, &choose) {
        tracing::warn!(%error, "the text index could not be merged");
    }
}

/// Merges until nothing is due.
fn merge_all(inner: &Weak<Inner>, due: &Due) -> Result<(), SearchError> {
    loop {
        // The index may be dropped while the merge runs; that ends the merge.
        let Some(merge) = inner.upgrade().and_then(|inner| inner.start_merge(due)) else {
            return Ok(());
        };
        merge.wait()?;
        let Some(inner) = inner.upgrade() else {
            return Ok(());
        };
        guard(|| inner.refresh())?;
    }
}

/// Which segments to merge next, if any.
pub(crate) type Due = dyn Fn(&[SegmentMeta]) -> Option<Vec<SegmentId>>;

/// A segment with anything deleted in it.
fn deleted(metas: &[SegmentMeta]) -> Option<Vec<SegmentId>> {
    let found = metas.iter().find(|meta| meta.num_deleted_docs() > 0);
    found.map(|meta| vec![meta.id()])
}

/// Segments of one size class before they are merged.
const FAN: usize = 5;
/// Below this many documents all segments are of one class.
const SMALL: u32 = 4_000;
/// Merge a segment alone when a tenth of it is deleted, or so many entries that
/// leaving them out of the statistics is felt.
const DELETED_SHARE: u32 = 10;
const DELETED_MOST: u32 = 10_000;

/// The segments whose merge is most due: a class of similar size that has
/// become too many, the smallest first, else one that is full of deletions.
fn choose(metas: &[SegmentMeta]) -> Option<Vec<SegmentId>> {
    let class = |meta: &SegmentMeta| (meta.num_docs() / SMALL).max(1).ilog(FAN as u32);
    for size in 0..=16 {
        let same: Vec<SegmentId> = metas
            .iter()
            .filter(|meta| class(meta) == size)
            .map(SegmentMeta::id)
            .collect();
        if same.len() >= FAN {
            return Some(same);
        }
    }
    let stale = |meta: &&SegmentMeta| {
        let deleted = meta.num_deleted_docs();
        deleted > 0 && deleted >= (meta.max_doc() / DELETED_SHARE).min(DELETED_MOST)
    };
    metas.iter().find(stale).map(|meta| vec![meta.id()])
}
