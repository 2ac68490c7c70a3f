//! The knowledge base as it stood: today's state with what has changed since put
//! back. Reads work on it as on any other view.

use std::sync::Arc;

use escurel_index::{Entry, EntryDraft, VersionRow};
use escurel_search::vectors::Version;
use escurel_store::{ObjectId, StoreError};
use parking_lot::Mutex;

use crate::Result;
use crate::builtin::{self, is_builtin};
use crate::facts::Parsed;
use crate::kb::Core;
use crate::lane::LaneState;
use crate::view::{Past, View};

/// Earlier states that are kept: one is asked for several times in a row.
const KEPT: usize = 2;

/// The earlier states last asked for, each made of one published state.
#[derive(Default)]
pub(crate) struct PastViews(Mutex<Vec<Kept>>);

struct Kept {
    now: Arc<View>,
    time: i64,
    then: Arc<View>,
}

impl PastViews {
    pub fn forget(&self) {
        self.0.lock().clear();
    }
}

impl Core {
    /// The state at `time`, in UTC microseconds.
    ///
    /// # Errors
    /// `index_behind`, `io_error`.
    pub(crate) fn view_at(&self, now: &Arc<View>, time: i64) -> Result<Arc<View>> {
        let mut kept = self.past.0.lock();
        let same = |kept: &Kept| kept.time == time && Arc::ptr_eq(&kept.now, now);
        if let Some(known) = kept.iter().find(|kept| same(kept)) {
            return Ok(known.then.clone());
        }
        let then = Arc::new(self.look_back(now, time)?);
        kept.truncate(KEPT - 1);
        let made = Kept {
            now: now.clone(),
            time,
            then: then.clone(),
        };
        kept.insert(0, made);
        Ok(then)
    }

    fn look_back(&self, now: &View, time: i64) -> Result<View> {
        let rows = self.sql.at(now.seq)?.superseded_since(time)?;
        let mut state = LaneState {
            dir: now.dir.clone(),
            live: now.live.clone(),
            seq: now.seq,
            scenario_pages: now.scenario_pages,
            tables: now.tables.clone(),
        };
        for entry in now.dir.iter().filter(|entry| is_later(entry, time)) {
            state.remove(entry);
        }
        let mut docs = Vec::new();
        let mut past = Past {
            vectors: Vec::new(),
            without: 0,
        };
        for row in rows {
            if let Some((draft, parsed)) = self.as_it_stood(&row)? {
                let (seq, from) = (draft.seq, draft.from);
                let no = state.upsert(draft).no.0;
                docs.push(parsed.doc(no, seq, from));
                self.recall(&parsed, no, seq, &mut past);
            }
        }
        builtin::settle(&mut state);
        Ok(View::new(&state, now.text.with(docs)?).of_then(past))
    }

    /// `None`: its text was erased since.
    fn as_it_stood(&self, row: &VersionRow) -> Result<Option<(EntryDraft, Parsed)>> {
        let object: ObjectId = row.object.parse()?;
        let bytes = match self.store.object(&object) {
            Err(StoreError::ContentErased(_)) => return Ok(None),
            bytes => bytes?,
        };
        let parsed = Parsed::of(&row.path, &bytes, self.layout);
        let draft = EntryDraft {
            uid: row.uid,
            path: row.path.as_str().into(),
            version: row.version,
            seq: row.seq,
            from: row.from,
            written_at: row.at,
            author: row.actor.as_str().into(),
            stat: None,
            object,
            digest: parsed.digest,
            bytes: parsed.bytes,
            missing: false,
            facts: parsed.facts.clone(),
        };
        Ok(Some((draft, parsed)))
    }

    /// Vectors that were made while the text was live.
    fn recall(&self, parsed: &Parsed, page: u32, seq: u64, past: &mut Past) {
        let Some(upkeep) = self.meaning.upkeep() else {
            return;
        };
        match upkeep.known(&parsed.meaning_texts()) {
            Some(units) => past.vectors.push(Version { page, seq, units }),
            None => past.without += 1,
        }
    }
}

fn is_later(entry: &Entry, time: i64) -> bool {
    entry.from > time && !is_builtin(&entry.path)
}
