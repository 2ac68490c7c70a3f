//! The write lane: where durable records become the published state, in the
//! order of the journal.
//!
//! Appending to the journal is concurrent (it shares fsyncs); publishing is
//! not. Invariant: the published state contains every record up to its `seq`
//! and none after it.

use std::sync::Arc;

use escurel_index::{Directory, Entry, EntryDraft, PageNo, Upserted, VersionChange};
use escurel_search::{Doc, TextIndex};
use escurel_store::{Draft, Record};
use parking_lot::{Condvar, Mutex};

use crate::kb::Core;
use crate::live::LiveSeqs;
use crate::sql::Batch;
use crate::tables::Tables;
use crate::view::View;
use crate::{Result, builtin, requests};

pub(crate) struct Lane {
    pub state: Mutex<LaneState>,
    turn: Condvar,
}

pub(crate) struct LaneState {
    pub dir: Directory,
    pub live: LiveSeqs,
    pub seq: u64,
    pub scenario_pages: usize,
    pub tables: Tables,
}

impl LaneState {
    pub fn new(dir: Directory, seq: u64, tables: Tables) -> LaneState {
        let mut live = LiveSeqs::default();
        dir.iter().for_each(|entry| live.set(entry.no, entry.seq));
        let scenario_pages = dir.iter().filter(|e| e.facts.scenario.is_some()).count();
        LaneState {
            dir,
            live,
            seq,
            scenario_pages,
            tables,
        }
    }

    /// Puts one page version in.
    pub fn upsert(&mut self, draft: EntryDraft) -> Upserted {
        let (seq, in_scenario) = (draft.seq, draft.facts.scenario.is_some());
        let upserted = self.dir.upsert(draft);
        self.live.set(upserted.no, seq);
        let was = upserted
            .before
            .as_ref()
            .is_some_and(|e| e.facts.scenario.is_some());
        self.scenario_pages = self.scenario_pages + usize::from(in_scenario) - usize::from(was);
        upserted
    }

    pub fn remove(&mut self, entry: &Entry) {
        if self.dir.remove(entry.uid).is_some() {
            self.scenario_pages -= usize::from(entry.facts.scenario.is_some());
        }
        self.live.clear(entry.no);
    }
}

/// What publishing a record means for the views that follow.
#[derive(Default)]
pub(crate) struct Work {
    pub docs: Vec<Doc>,
    /// Pages whose texts from before this record may leave the text index.
    pub stale: Vec<(PageNo, u64)>,
    pub changes: Vec<VersionChange>,
    /// Pages whose links may resolve differently now.
    pub relink: Vec<PageNo>,
}

/// More documents than this go straight into the text index files.
const BULK: usize = 64;

impl Lane {
    pub fn new(state: LaneState) -> Lane {
        Lane {
            state: Mutex::new(state),
            turn: Condvar::new(),
        }
    }
}

/// Durable records whose turn to be published has to come, whatever happens to their writer.
pub(crate) struct Ticket<'a> {
    core: &'a Core,
    pub records: Vec<Record>,
    published: bool,
}

impl Core {
    /// Makes the drafts durable. The ticket must be published; a dropped one
    /// publishes what its records say, and the files are looked at again.
    pub(crate) fn append(&self, mut drafts: Vec<Draft>) -> Result<Ticket<'_>> {
        self.reach("core.before_append")?;
        let stamped = requests::stamp(&mut drafts);
        let records = self.store.append(drafts)?;
        if stamped {
            requests::written();
        }
        let ticket = Ticket {
            core: self,
            records,
            published: false,
        };
        self.reach("core.after_append")?;
        Ok(ticket)
    }
}

impl Ticket<'_> {
    pub fn publish(mut self, apply: impl FnOnce(&mut LaneState, &[Record]) -> Work) -> Result<()> {
        self.core.reach("core.before_publish")?;
        self.published = true;
        let records = std::mem::take(&mut self.records);
        self.core
            .publish(&records, |state| apply(state, &records))?;
        self.core.reach("core.after_publish")?;
        Ok(())
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        if !self.published {
            tracing::warn!("a durable record was not published by its writer; rescanning");
            let records = std::mem::take(&mut self.records);
            let core = self.core;
            let _ = core.publish(&records, |state| core.replay_records(state, &records));
            core.request_rescan();
        }
    }
}

impl Core {
    fn publish(
        &self,
        records: &[Record],
        apply: impl FnOnce(&mut LaneState) -> Work,
    ) -> Result<()> {
        let (Some(first), Some(last)) = (records.first(), records.last()) else {
            return Ok(());
        };
        let mut state = self.lane.state.lock();
        while state.seq + 1 < first.seq {
            self.lane.turn.wait(&mut state);
        }
        let work = apply(&mut state);
        let captured = records.iter().filter_map(|r| state.tables.apply(r));
        let captured: Vec<_> = captured.collect();
        let changed: Vec<PageNo> = work.docs.iter().map(|doc| PageNo(doc.page)).collect();
        work.stale
            .iter()
            .for_each(|(page, seq)| self.text.forget(page.0, *seq));
        let indexed = index_text(&self.text, work.docs, last.seq);
        state.seq = state.seq.max(last.seq);
        self.show(&mut state);
        self.sessions
            .published(records.iter().filter_map(|record| record.uid));
        self.notices.push(captured);
        let gone = work.stale.iter().map(|(page, _)| *page);
        self.meaning.changed(changed.into_iter().chain(gone));
        self.sql.send(Batch {
            changes: work.changes,
            relink: work.relink,
            ..Batch::nothing(state.dir.clone(), state.seq)
        });
        drop(state);
        self.lane.turn.notify_all();
        self.dirty();
        self.tell_captured();
        indexed
    }

    /// Publishes what stands in the lane.
    pub(crate) fn show(&self, state: &mut LaneState) {
        builtin::settle(state);
        self.view
            .store(Arc::new(View::new(state, self.text.snapshot())));
    }
}

/// Few documents are searchable at once through the in-memory delta; many are committed.
pub(crate) fn index_text(text: &TextIndex, docs: Vec<Doc>, seq: u64) -> Result<()> {
    if docs.len() <= BULK {
        text.add(docs);
        return Ok(());
    }
    text.add_bulk(docs)?;
    text.commit(seq)?;
    Ok(())
}
