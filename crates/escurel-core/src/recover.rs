//! From what is on disk to the state before the last stop.
//!
//! The directory is loaded from its file and brought up to the journal's head;
//! then page files that a crash left behind are rolled forward, and everything
//! else that differs is an outside edit.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use escurel_index::{Directory, Entry, PageNo};
use escurel_store::{Kind, ObjectId, Record, Uid};
use rayon::prelude::*;
use serde_json::Value;

use crate::facts::{Parsed, digest};
use crate::kb::Core;
use crate::lane::{LaneState, Work, index_text};
use crate::maintain::Saved;
use crate::progress::Progress;
use crate::reconcile::{deletions, entry_draft, publish_entry};
use crate::sql::Batch;
use crate::tables::{self, Tables};
use crate::{Result, sql};

pub(crate) struct Recovered {
    pub dir: Directory,
    pub seq: u64,
    /// Ties the index files to each other: those of another generation are not used.
    pub generation: u128,
    /// What the file holds, if there is one.
    pub saved: Option<Saved>,
    pub tables: Tables,
}

impl Recovered {
    /// Records after this one are read by a start.
    pub fn begin(&self) -> u64 {
        self.seq.min(self.tables.seq())
    }
}

/// Pages replayed together.
const CHUNK: usize = 4_096;

pub(crate) fn directory_file(index: &Path) -> std::path::PathBuf {
    index.join("directory.bin")
}

pub(crate) fn load(index: &Path, progress: &Progress) -> Recovered {
    let file = directory_file(index);
    match Directory::load(&file) {
        Ok(Some((dir, seq, generation))) => Recovered {
            saved: Some(Saved::of(&dir, seq)),
            tables: load_tables(index, generation, progress),
            dir,
            seq,
            generation,
        },
        Ok(None) => fresh(),
        Err(error) => {
            move_aside(&file);
            progress.warn(format!(
                "The page directory was damaged ({error}); the index is being rebuilt."
            ));
            fresh()
        }
    }
}

/// Empty when the journal has to be read for them.
fn load_tables(index: &Path, generation: u128, progress: &Progress) -> Tables {
    let file = tables::file(index);
    let loaded = tables::load(&file, generation).unwrap_or_else(|error| {
        move_aside(&file);
        progress.warn(format!(
            "The tables of events were damaged ({error}); they are read from the journal again."
        ));
        None
    });
    loaded.unwrap_or_default()
}

/// The journal was taken away or put back to an earlier state, so nothing derived can be
/// trusted: numbers of records that are gone are given to others from here on.
pub(crate) fn begin_anew(
    index: &Path,
    head: u64,
    derived: u64,
    progress: &Progress,
) -> Result<Recovered> {
    progress.warn(match head {
        0 => format!(
            "The journal is gone ({derived} records were there): a new history begins with the files as they are. Earlier \
             versions are known again if you stop the server and restore the folder `journal` from a backup."
        ),
        _ => format!(
            "The journal ends at record {head}, but record {derived} was there already: it was put back to an earlier \
             state. The index is being rebuilt from it."
        ),
    });
    std::fs::remove_dir_all(index)?;
    std::fs::create_dir_all(index)?;
    Ok(fresh())
}

pub(crate) fn fresh() -> Recovered {
    Recovered {
        dir: Directory::new(),
        seq: 0,
        generation: ulid::Ulid::generate().0,
        saved: None,
        tables: Tables::default(),
    }
}

fn move_aside(file: &Path) {
    if let Err(error) = std::fs::rename(file, file.with_extension("damaged")) {
        tracing::warn!(%error, "cannot move a damaged file aside");
    }
}

/// Versions that we wrote after the `applied` mark: their files may be behind.
type Unsettled = HashMap<Uid, Behind>;

/// What the file of a page may still be.
#[derive(Default)]
struct Behind {
    /// Absent: its first version, or its first after a deletion, is among them.
    created: bool,
    /// We deleted it last, so that its file may still hold a text of before.
    deleted_at: Option<String>,
    /// Names that we took from it, under which it may still be, and not yet under its own.
    moved_from: Vec<String>,
    texts: Vec<ObjectId>,
    /// What we put into it, of which a power loss may have left a part.
    written: Vec<ObjectId>,
}

/// Disks write whole sectors or nothing of them.
const SECTOR: usize = 512;

/// Pages that records tell of, in order of first appearance.
#[derive(Default)]
struct Told {
    pages: HashMap<Uid, Replayed>,
    order: Vec<Uid>,
}

/// A page as its records tell it.
struct Replayed {
    last_version: Option<Record>,
    /// Where it went after that.
    last_move: Option<Record>,
    last: Record,
    missing: bool,
    deleted: bool,
}

impl Core {
    /// Brings the directory and the text index up to the journal's head.
    /// Answers the records of erasures that a crash may have left half done.
    pub(crate) fn replay(&self) -> Result<Vec<Record>> {
        let mut state = self.lane.state.lock();
        let state = &mut *state;
        let head = self.store.head();
        // Texts of records that are replayed now are indexed by the replay.
        let (indexed, loaded) = (self.text.committed_seq(), state.seq);
        let (told, unsettled, erasures) = self.gather(state)?;
        self.apply_replay(state, &told)?;
        self.index_missing_texts(state, indexed, loaded)?;
        state.seq = head;
        self.show(state);
        self.sql.send(Batch::nothing(state.dir.clone(), head));
        self.caught_up.store(true, Ordering::Release);
        self.roll_forward(state, &unsettled)?;
        Ok(erasures)
    }

    /// The journal after the sequence numbers of directory and tables.
    fn gather(&self, state: &mut LaneState) -> Result<(Told, Unsettled, Vec<Record>)> {
        let applied = self.store.applied();
        let (mut told, mut unsettled) = (Told::default(), Unsettled::new());
        let mut erasures = Vec::new();
        for record in self.store.records(state.seq.min(state.tables.seq())) {
            let record = record?;
            state.tables.apply(&record);
            if record.seq <= state.seq {
                continue;
            }
            if record.kind == Kind::ContentErased {
                erasures.push(record);
                continue;
            }
            let Some(uid) = record.uid else { continue };
            if record.seq > applied && sql::origin(&record) == "write" {
                let (object, there) = told.text_before(uid, &state.dir);
                let behind = unsettled.entry(uid).or_default();
                behind.created |= !there;
                behind.texts.extend(object);
                behind.written.extend(record.content.map(|c| c.object));
                behind.deleted_at = record
                    .path
                    .clone()
                    .filter(|_| record.kind == Kind::PageDeleted);
                let from = record.note.get("from_path").and_then(Value::as_str);
                behind.moved_from.extend(from.map(str::to_owned));
            }
            told.note(uid, record);
        }
        Ok((told, unsettled, erasures))
    }

    fn apply_replay(&self, state: &mut LaneState, told: &Told) -> Result<()> {
        let pages = &told.pages;
        self.progress.expect(told.order.len() as u64);
        for chunk in told.order.chunks(CHUNK) {
            let dir = state.dir.clone();
            let parsed: Vec<Option<Parsed>> = chunk
                .par_iter()
                .map(|uid| self.parse_replayed(&dir, *uid, pages.get(uid)?))
                .collect();
            let mut work = Work::default();
            for (uid, parsed) in chunk.iter().zip(parsed) {
                if let (Some(page), Some(parsed)) = (pages.get(uid), parsed) {
                    self.replay_page(state, *uid, page, &parsed, &mut work, true);
                    // DuckDB replays the journal itself.
                    work.changes.clear();
                    work.relink.clear();
                }
            }
            work.stale
                .iter()
                .for_each(|(page, seq)| self.text.forget(page.0, *seq));
            index_text(&self.text, work.docs, 0)?;
            self.progress.advance(chunk.len() as u64);
            if self.stopping() {
                break;
            }
        }
        Ok(())
    }

    /// Publishes records whose writer did not come to it.
    pub(crate) fn replay_records(&self, state: &mut LaneState, records: &[Record]) -> Work {
        let mut told = Told::default();
        for record in records {
            if let Some(uid) = record.uid {
                told.note(uid, record.clone());
            }
        }
        let mut work = Work::default();
        for uid in told.order {
            if let Some(page) = told.pages.get(&uid)
                && let Some(parsed) = self.parse_replayed(&state.dir, uid, page)
            {
                self.replay_page(state, uid, page, &parsed, &mut work, false);
            }
        }
        work
    }

    fn parse_replayed(&self, dir: &Directory, uid: Uid, page: &Replayed) -> Option<Parsed> {
        let object = page
            .last_version
            .as_ref()
            .and_then(|r| r.content)
            .map(|c| c.object);
        let object = object.or_else(|| dir.by_uid(uid).map(|e| e.object))?;
        let path = page.last.path.as_deref()?;
        let bytes = self.store.object(&object).unwrap_or_default();
        Some(Parsed::of(path, &bytes, self.layout))
    }

    fn replay_page(
        &self,
        state: &mut LaneState,
        uid: Uid,
        page: &Replayed,
        parsed: &Parsed,
        work: &mut Work,
        bulk: bool,
    ) {
        let old = state.dir.by_uid(uid).cloned();
        if let Some(version) = &page.last_version {
            let draft = entry_draft(version, old.as_deref(), parsed, None);
            publish_entry(state, draft, old.as_deref(), parsed, version, work, bulk);
        }
        if let Some(record) = &page.last_move {
            let old = state.dir.by_uid(uid).cloned();
            let draft = entry_draft(record, old.as_deref(), parsed, None);
            publish_entry(state, draft, old.as_deref(), parsed, record, work, bulk);
        }
        state.dir.set_missing(uid, page.missing);
        if page.deleted {
            self.replay_deletion(state, uid, page, work);
        }
    }

    fn replay_deletion(&self, state: &mut LaneState, uid: Uid, page: &Replayed, work: &mut Work) {
        if let Some(entry) = state.dir.by_uid(uid).cloned() {
            deletions::remove(state, &entry, work);
            work.docs.retain(|doc| doc.page != entry.no.0);
            work.stale.push((entry.no, page.last.seq));
            work.changes
                .push(sql::tombstone(entry.no, &page.last, &page.last));
            self.deletions.bury(entry, page.last.at);
        }
    }

    /// The text index (up to `have`) may be older than the directory as it was loaded, or new.
    fn index_missing_texts(&self, state: &mut LaneState, have: u64, loaded: u64) -> Result<()> {
        let lacking: Vec<Arc<Entry>> = state
            .dir
            .iter()
            .filter(|e| e.seq > have && e.seq <= loaded)
            .filter(|e| !crate::builtin::is_builtin(&e.path))
            .cloned()
            .collect();
        for chunk in lacking.chunks(CHUNK) {
            let docs = chunk.par_iter().filter_map(|entry| {
                let bytes = self.head_text(entry).ok()?;
                Some(
                    Parsed::of(&entry.path, &bytes, self.layout)
                        .doc(entry.no.0, entry.seq, entry.from),
                )
            });
            index_text(&self.text, docs.collect(), 0)?;
        }
        if have != loaded {
            self.forget_old_texts(state)?;
        }
        Ok(())
    }

    /// An index that is older or newer than the directory has texts that must not
    /// count when answers are ranked.
    fn forget_old_texts(&self, state: &LaneState) -> Result<()> {
        let next = self.store.head() + 1;
        for (page, seq) in self.text.all_docs()? {
            let newest = state.dir.get(PageNo(page)).map_or(next, |e| e.seq);
            if seq < newest {
                self.text.forget(page, newest);
            }
        }
        Ok(())
    }

    /// The live version's bytes: the file's when it agrees, else the journal's.
    pub(crate) fn head_text(&self, entry: &Entry) -> Result<Vec<u8>> {
        if let Some(text) = crate::builtin::text(&entry.path) {
            return Ok(text.as_bytes().to_vec());
        }
        if !entry.missing
            && let Ok(Some((bytes, _))) = self.store.read(&entry.path)
            && digest(&bytes) == entry.digest
        {
            return Ok(bytes);
        }
        Ok(self.store.object(&entry.object)?)
    }

    /// Writes the files of versions that were durable before their files were.
    /// A file that is neither the old nor the new version is an outside edit, left to the scan.
    fn roll_forward(&self, state: &mut LaneState, unsettled: &Unsettled) -> Result<()> {
        for (uid, before) in unsettled {
            if let Some(path) = &before.deleted_at
                && state.dir.by_uid(*uid).is_none()
                && state.dir.by_path(path).is_none()
                && let Err(error) = self.remove_leftover(path, before)
            {
                self.progress.warn(format!(
                    "{path} was deleted and its file could not be removed: {error}"
                ));
            }
            // What was seen to be missing did not vanish in a crash.
            if let Some(entry) = state.dir.by_uid(*uid).filter(|e| !e.missing).cloned()
                && let Err(error) = self.roll_one(&entry, before)
            {
                self.progress.warn(format!(
                    "{} could not be brought up to its newest version: {error}",
                    entry.path
                ));
            }
            for path in &before.moved_from {
                if state.dir.by_path(path).is_none()
                    && let Err(error) = self.remove_leftover(path, before)
                {
                    self.progress.warn(format!(
                        "{path} has another name now and its old file could not be removed: {error}"
                    ));
                }
            }
        }
        Ok(())
    }

    /// A file that still is what we deleted goes; anything else was saved since.
    fn remove_leftover(&self, path: &str, before: &Behind) -> Result<()> {
        let Some((bytes, _)) = self.store.read(path)? else {
            return Ok(());
        };
        let ours = before.texts.iter().chain(&before.written);
        if ours
            .into_iter()
            .any(|id| self.store.object(id).is_ok_and(|text| text == bytes))
        {
            self.store.remove(path, &bytes)?;
        }
        Ok(())
    }

    fn roll_one(&self, entry: &Entry, before: &Behind) -> Result<()> {
        let found = self.store.read(&entry.path)?.map(|(bytes, _)| bytes);
        let new = self.store.object(&entry.object)?;
        if found.as_deref() == Some(&new[..]) {
            return Ok(self.store.mark_unflushed(&entry.path)?);
        }
        let any = |ids: &[ObjectId], fits: &dyn Fn(Vec<u8>) -> bool| {
            ids.iter().any(|id| self.store.object(id).is_ok_and(fits))
        };
        let behind = match &found {
            None => before.created || !before.moved_from.is_empty(),
            Some(bytes) => {
                any(&before.texts, &|old| old == *bytes)
                    || any(&before.written, &|text| is_torn(bytes, &text))
            }
        };
        if behind {
            self.put_file(&entry.path, found.as_deref(), &new)?;
        }
        Ok(())
    }
}

/// What a power loss leaves of `text` when the file's name was durable before its
/// bytes were: whole sectors, and after them nothing or NUL.
fn is_torn(found: &[u8], text: &[u8]) -> bool {
    let end = found.iter().rposition(|byte| *byte != 0);
    let end = end.map_or(0, |last| last + 1);
    found.len() <= text.len() && end.is_multiple_of(SECTOR) && text.starts_with(&found[..end])
}

impl Told {
    /// The text that a page had before the record that is looked at, and whether it was there.
    fn text_before(&self, uid: Uid, dir: &Directory) -> (Option<ObjectId>, bool) {
        let live = dir.by_uid(uid).map(|entry| entry.object);
        let Some(page) = self.pages.get(&uid) else {
            return (live, live.is_some());
        };
        let told = page.last_version.as_ref().and_then(|record| record.content);
        (told.map(|content| content.object).or(live), !page.deleted)
    }

    fn note(&mut self, uid: Uid, record: Record) {
        let page = self.pages.entry(uid).or_insert_with(|| {
            self.order.push(uid);
            Replayed::of(&record)
        });
        page.note(record);
    }
}

impl Replayed {
    fn of(record: &Record) -> Replayed {
        Replayed {
            last_version: None,
            last_move: None,
            last: record.clone(),
            missing: false,
            deleted: false,
        }
    }

    fn note(&mut self, record: Record) {
        match record.kind {
            Kind::PageVersion => {
                self.missing = false;
                self.deleted = false;
                self.last_version = Some(record.clone());
                self.last_move = None;
            }
            Kind::PageMoved => self.last_move = Some(record.clone()),
            Kind::PageMissing => self.missing = true,
            Kind::PageFound => self.missing = false,
            Kind::PageDeleted => self.deleted = true,
            _ => {}
        }
        self.last = record;
    }
}

#[cfg(test)]
mod tests {
    use super::{SECTOR, is_torn};

    #[test]
    fn a_torn_file_is_whole_sectors_of_the_text_and_perhaps_a_hole() {
        let text = vec![b'a'; 2 * SECTOR + 7];
        let hole = [&text[..SECTOR], &[0; 40]].concat();
        for (found, torn) in [
            (&b""[..], true),
            (&text[..SECTOR], true),
            (&hole, true),
            (&[0; 9], true),
            (&text[..SECTOR - 1], false),
            (b"another text", false),
            (&[0; 3 * SECTOR], false),
        ] {
            assert_eq!(is_torn(found, &text), torn, "{} bytes", found.len());
        }
    }
}
