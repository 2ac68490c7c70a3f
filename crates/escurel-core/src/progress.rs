//! How far the knowledge base is, and what an operator should know.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use escurel_store::{RootState, Scan, StoreError};
use parking_lot::{Condvar, Mutex};

use crate::api::Status;
use crate::builtin::is_builtin;
use crate::kb::Core;
use crate::reconcile::covers;
use crate::{Code, Refusal, Result};

#[derive(Default)]
pub(crate) struct Progress {
    done: AtomicU64,
    total: AtomicU64,
    /// Every page on disk was looked at, in this run or before it.
    complete: AtomicBool,
    inner: Mutex<Inner>,
    changed: Condvar,
    /// Set for good when the state that is held may be older than the files.
    outdated: OnceLock<Refusal>,
}

#[derive(Default)]
struct Inner {
    ready: bool,
    ended: bool,
    warnings: Vec<String>,
    unreadable: Vec<(String, String)>,
    root: Option<String>,
    failure: Option<String>,
}

/// Warnings kept; an endless stream of them helps nobody.
const MOST_WARNINGS: usize = 100;

impl Progress {
    pub fn warn(&self, warning: String) {
        tracing::warn!("{warning}");
        let mut inner = self.inner.lock();
        if inner.warnings.len() < MOST_WARNINGS && !inner.warnings.contains(&warning) {
            inner.warnings.push(warning);
        }
    }

    /// So many pages are about to be looked at.
    pub fn expect(&self, pages: u64) {
        self.done.store(0, Ordering::Relaxed);
        self.total.store(pages, Ordering::Relaxed);
    }

    pub fn advance(&self, pages: u64) {
        self.done.fetch_add(pages, Ordering::Relaxed);
        self.changed.notify_all();
    }

    /// Absence can be told from here on.
    pub fn complete(&self) {
        self.complete.store(true, Ordering::Release);
    }

    pub fn is_complete(&self) -> bool {
        self.complete.load(Ordering::Acquire)
    }

    pub fn ready(&self) {
        self.complete();
        self.inner.lock().ready = true;
        self.changed.notify_all();
    }

    /// A change could not be taken up; without the journal none will be.
    pub fn failed(&self, refusal: &Refusal) {
        if refusal.code == Code::JournalBroken {
            let _ = self.outdated.set(refusal.clone());
        }
    }

    /// Every page could be found once.
    pub fn was_ready(&self) -> bool {
        self.inner.lock().ready
    }

    /// Nothing more will become ready: the knowledge base closes, or failed.
    pub fn end(&self, failure: Option<String>) {
        let mut inner = self.inner.lock();
        inner.ended = true;
        inner.failure = failure;
        self.changed.notify_all();
    }
}

impl Core {
    pub(crate) fn note_scan(&self, scan: &Scan) {
        let mut inner = self.progress.inner.lock();
        inner.unreadable = scan
            .unknown
            .iter()
            .map(|u| (u.path.clone(), u.reason.clone()))
            .collect();
        inner.root = match &scan.root {
            RootState::Ok => None,
            RootState::Missing => Some("The folder is not there; its pages are kept.".into()),
            RootState::OtherDevice => Some(
                "The folder is on another device than before (not mounted?); its pages are kept."
                    .into(),
            ),
            RootState::Unreadable(why) => Some(format!(
                "The folder cannot be read ({why}); its pages are kept."
            )),
        };
    }

    /// This could be looked at, or is gone: whatever was said about it is over.
    pub(crate) fn note_readable(&self, path: &str) {
        let mut inner = self.progress.inner.lock();
        if !inner.unreadable.is_empty() {
            inner
                .unreadable
                .retain(|(known, _)| !covers(known, path) || known.is_empty());
        }
    }

    pub(crate) fn note_unreadable(&self, path: &str, reason: &str) {
        let mut inner = self.progress.inner.lock();
        if !inner.unreadable.iter().any(|(known, _)| known == path) {
            inner.unreadable.push((path.to_owned(), reason.to_owned()));
        }
    }

    /// What is served and how it is doing. Links are counted once a state.
    pub fn status(&self) -> Status {
        let links = self.view.load().link_counts();
        Status {
            links: links.links as u64,
            broken_links: links.broken as u64,
            ambiguous_links: links.ambiguous as u64,
            ..self.overview()
        }
    }

    /// [`Core::status`] without the links: milliseconds, whatever the size.
    pub fn overview(&self) -> Status {
        let mut status = self.phase();
        for entry in self.view.load().dir.iter().filter(|e| !is_builtin(&e.path)) {
            status.pages += 1;
            status.skills += u64::from(entry.facts.page_type == escurel_md::PageType::Skill);
            status.pages_with_issues += u64::from(entry.facts.issues > 0);
            status.errors += u64::from(entry.facts.errors);
            status.held_deletions += u64::from(entry.missing);
        }
        status
    }

    /// The part of [`Core::status`] that counts nothing: phase, progress and positions.
    pub fn phase(&self) -> Status {
        let (sql_seq, sql_warning) = self.sql.state();
        let inner = self.progress.inner.lock();
        let warnings = inner
            .warnings
            .iter()
            .chain(&inner.root)
            .chain(&inner.failure)
            .cloned()
            .chain(sql_warning)
            .collect();
        Status {
            ready: inner.ready && inner.root.is_none() && self.readable().is_ok(),
            phase: match phase(&inner, self.stopping()) {
                "ready" | "failed" if self.readable().is_err() => "journal_broken",
                "ready" if self.is_unrecorded() => "read_only",
                phase => phase,
            },
            done: self.progress.done.load(Ordering::Relaxed),
            total: self.progress.total.load(Ordering::Relaxed),
            unreadable: inner.unreadable.clone(),
            vanished: self.deletions.undecided(),
            read_only: self.store.read_only(),
            journal_seq: self.store.head(),
            text_seq: self.view.load().seq,
            sql_seq,
            vectors: self.meaning.status(),
            warnings,
            ..Status::default()
        }
    }

    /// Refuses when an older text could be taken for the current one.
    ///
    /// # Errors
    /// `journal_broken`: it broke while the folder was served.
    pub fn readable(&self) -> Result<()> {
        match self.progress.outdated.get() {
            Some(refusal) => Err(refusal.clone()),
            None => Ok(()),
        }
    }

    pub(crate) fn is_unrecorded(&self) -> bool {
        self.store.read_only()
            && matches!(self.store.writable(), Err(StoreError::JournalBroken { .. }))
    }

    /// Waits until every page on disk can be found. `progress` is told about
    /// ten times a second. False: closed, or indexing failed (see the warnings).
    pub fn wait_ready(&self, progress: &mut dyn FnMut(&Status)) -> bool {
        loop {
            let mut inner = self.progress.inner.lock();
            if inner.ready || inner.ended {
                return inner.ready;
            }
            self.progress
                .changed
                .wait_for(&mut inner, std::time::Duration::from_millis(100));
            drop(inner);
            progress(&self.phase());
        }
    }
}

fn phase(inner: &Inner, stopping: bool) -> &'static str {
    match inner {
        _ if stopping => "stopping",
        Inner {
            failure: Some(_), ..
        } => "failed",
        Inner { root: Some(_), .. } => "folder_unavailable",
        Inner { ready: true, .. } => "ready",
        _ => "indexing",
    }
}
