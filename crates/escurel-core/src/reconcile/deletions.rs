//! When a page that is not on disk is really deleted.
//!
//! Few vanished files are deleted after a moment's patience, so that an editor
//! that saves by renaming never makes a page flicker. Many at once are held:
//! the pages stay readable from the journal until somebody confirms or the
//! files come back. Repetition never confirms.

use std::collections::HashMap;
use std::sync::Arc;

use escurel_index::Entry;
use escurel_store::{Draft, Kind, RootState, Uid};
use parking_lot::Mutex;

use crate::kb::Core;
use crate::lane::{LaneState, Ticket, Work};
use crate::reconcile::{DISK, gone};
use crate::{Result, sql};

/// A file has to stay away this long. Microseconds.
const PATIENCE: i64 = 2_000_000;
/// A deleted page's uid waits this long for its file. Microseconds.
const GRAVE: i64 = 600_000_000;
/// More than this many, and more than this share, vanished in one scan: held.
const MANY: usize = 20;
const SHARE: usize = 5;

#[derive(Default)]
pub(crate) struct Deletions {
    inner: Mutex<Inner>,
    /// Held while it is decided what becomes of vanished files.
    deciding: Mutex<()>,
}

#[derive(Default)]
struct Inner {
    /// Last time a vanished file was noticed; `None` when none is waited for.
    suspected_at: Option<i64>,
    /// So many files are waited for.
    suspected: usize,
    buried: HashMap<Uid, (Arc<Entry>, i64)>,
}

impl Deletions {
    /// Pages deleted less than ten minutes ago.
    pub fn buried(&self, now: i64) -> Vec<Arc<Entry>> {
        let mut inner = self.inner.lock();
        inner.buried.retain(|_, (_, at)| now - *at < GRAVE);
        inner
            .buried
            .values()
            .map(|(entry, _)| entry.clone())
            .collect()
    }

    pub fn reappeared(&self, uids: impl Iterator<Item = Uid>) {
        let mut inner = self.inner.lock();
        for uid in uids {
            inner.buried.remove(&uid);
        }
    }

    pub fn bury(&self, entry: Arc<Entry>, now: i64) {
        self.inner.lock().buried.insert(entry.uid, (entry, now));
    }

    /// Files that vanished and are still waited for.
    pub fn undecided(&self) -> u64 {
        self.inner.lock().suspected as u64
    }

    fn forget_suspicion(&self) {
        let mut inner = self.inner.lock();
        inner.suspected_at = None;
        inner.suspected = 0;
    }

    /// Is somebody waiting for a decision, and is it time for it?
    pub fn due(&self, now: i64) -> Option<bool> {
        self.inner
            .lock()
            .suspected_at
            .map(|at| now - at >= PATIENCE)
    }
}

/// Of so many pages, are so many deletions too many to believe?
pub(crate) fn too_many(vanished: usize, pages: usize, nothing_left: bool) -> bool {
    vanished > 0 && (nothing_left || vanished > MANY.max(pages / SHARE))
}

impl Core {
    /// Starts the wait for vanished files; pages already held are not waited for again.
    pub(crate) fn suspect(&self, gone: &[Arc<Entry>]) {
        let suspected = gone.iter().filter(|entry| !entry.missing).count();
        if suspected > 0 {
            let mut inner = self.deletions.inner.lock();
            inner.suspected_at = Some(self.now());
            inner.suspected = suspected;
        }
    }

    /// Decides about vanished files by one full scan.
    pub(crate) fn settle_deletions(&self) -> Result<()> {
        let _deciding = self.deletions.deciding.lock();
        self.deletions.forget_suspicion();
        let scan = self.store.scan();
        self.note_scan(&scan);
        if scan.root != RootState::Ok {
            return Ok(());
        }
        let view = self.view.load_full();
        let vanished: Vec<_> = gone(&view.dir, &scan)
            .into_iter()
            .filter(|e| !e.missing)
            .collect();
        let pages = view.dir.iter().filter(|e| !e.missing).count();
        if too_many(vanished.len(), pages, scan.files.is_empty()) {
            return self.hold(&vanished);
        }
        self.delete(&vanished, DISK)
    }

    fn hold(&self, vanished: &[Arc<Entry>]) -> Result<()> {
        tracing::warn!(
            pages = vanished.len(),
            "many files vanished at once; their deletion is held"
        );
        self.append(drafts(Kind::PageMissing, vanished, DISK))?
            .publish(|state, _| {
                vanished
                    .iter()
                    .for_each(|entry| state.dir.set_missing(entry.uid, true));
                Work::default()
            })
    }

    fn delete(&self, pages: &[Arc<Entry>], author: &str) -> Result<()> {
        if pages.is_empty() {
            return Ok(());
        }
        let now = self.now();
        pages
            .iter()
            .for_each(|entry| self.deletions.bury(entry.clone(), now));
        let ticket = self.append(drafts(Kind::PageDeleted, pages, author))?;
        self.publish_deletions(ticket, pages)
    }

    /// `ticket` holds the records of these pages' deletions, in their order.
    pub(crate) fn publish_deletions(&self, ticket: Ticket<'_>, pages: &[Arc<Entry>]) -> Result<()> {
        ticket.publish(|state, records| {
            let mut work = Work::default();
            for (entry, record) in pages.iter().zip(records) {
                remove(state, entry, &mut work);
                work.changes.push(sql::tombstone(entry.no, record, record));
                work.stale.push((entry.no, record.seq));
            }
            work
        })
    }

    /// What vanished a moment ago is held or deleted before anybody confirms.
    fn await_decision(&self) -> Result<()> {
        let patience = std::time::Duration::from_micros(PATIENCE.unsigned_abs());
        let end = std::time::Instant::now() + patience + patience;
        while self.deletions.due(self.now()) == Some(false) && std::time::Instant::now() < end {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        if self.deletions.due(self.now()) == Some(true) {
            return self.settle_deletions();
        }
        // Somebody else may be about it.
        drop(self.deletions.deciding.lock());
        Ok(())
    }

    /// Lets held deletions happen. Answers how many.
    pub(crate) fn delete_missing(&self, author: &str) -> Result<u64> {
        self.await_decision()?;
        let view = self.view.load_full();
        let held: Vec<_> = view.dir.iter().filter(|e| e.missing).cloned().collect();
        let still: Vec<_> = held
            .into_iter()
            .filter(|e| matches!(self.store.stat(&e.path), Ok(None)))
            .collect();
        if !still.is_empty() {
            let note = serde_json::Map::from_iter([("pages".to_owned(), still.len().into())]);
            self.append(vec![Draft {
                note,
                ..Draft::new(Kind::DeletionsConfirmed, author)
            }])?
            .publish(|_, _| Work::default())?;
        }
        self.delete(&still, author)?;
        Ok(still.len() as u64)
    }
}

pub(crate) fn remove(state: &mut LaneState, entry: &Entry, work: &mut Work) {
    work.relink
        .extend(state.dir.referrers(&entry.facts, &entry.path));
    state.remove(entry);
}

pub(crate) fn drafts(kind: Kind, pages: &[Arc<Entry>], author: &str) -> Vec<Draft> {
    let draft = |e: &Arc<Entry>| Draft {
        uid: Some(e.uid),
        path: Some(e.path.to_string()),
        ..Draft::new(kind, author)
    };
    pages.iter().map(draft).collect()
}
