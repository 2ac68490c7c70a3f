//! Brings outside edits into the journal and the views.
//!
//! Files are the truth: what stands on disk is adopted as it is, by author
//! `disk`. Refuses to conclude from what it could not look at. Invariant: a
//! published page's text is the text of its file, or its file is known to be
//! missing or changing.

use std::sync::Arc;

use escurel_index::{Bitmap, Directory, Entry, EntryDraft, PageNo, VersionChange};
use escurel_store::{Draft, Kind, ObjectId, Record, RootState, Scan, ScannedFile, Stat, Uid};
use rayon::prelude::*;
use serde_json::{Map, Value};

use crate::builtin::is_builtin;
use crate::facts::{Parsed, digest};
use crate::kb::Core;
use crate::lane::{LaneState, Work};
use crate::{Result, sql};

pub(crate) mod deletions;
mod plan;

use plan::{Changed, Looked, Step};

/// Who outside edits are attributed to.
pub(crate) const DISK: &str = "disk";
/// Files taken up together; bounds memory and lets readers see progress.
const CHUNK_FILES: usize = 8_192;
const CHUNK_BYTES: u64 = 32 << 20;

/// What one pass found and did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pass {
    pub adopted: usize,
    pub edited: usize,
    pub moved: usize,
    pub gone: usize,
}

impl Core {
    /// Compares every file with the directory and takes up what differs.
    pub(crate) fn reconcile_all(&self) -> Result<Pass> {
        let scan = self.store.scan();
        self.note_scan(&scan);
        if scan.root != RootState::Ok {
            return Ok(Pass::default());
        }
        let view = self.view.load_full();
        let files = scan.files.par_iter().with_min_len(1024);
        let differing: Vec<ScannedFile> =
            files.filter(|f| differs(&view.dir, f)).cloned().collect();
        let gone = gone(&view.dir, &scan);
        let pass = self.take_up(differing, &gone)?;
        self.suspect(&gone);
        Ok(Pass {
            gone: gone.len(),
            ..pass
        })
    }

    /// Looks at these paths only.
    pub(crate) fn reconcile_paths(&self, paths: &[String]) -> Result<Pass> {
        let view = self.view.load_full();
        let (mut files, mut gone) = (Vec::new(), Vec::new());
        for path in paths {
            match self.store.stat(path) {
                Ok(Some(stat)) => files.push(ScannedFile {
                    path: path.clone(),
                    stat,
                }),
                Ok(None) => {
                    self.note_readable(path);
                    gone.extend(view.dir.by_path(path).cloned());
                }
                Err(error) => tracing::warn!(path, %error, "cannot look at a changed file"),
            }
        }
        files.retain(|f| differs(&view.dir, f));
        let pass = self.take_up(files, &gone)?;
        self.suspect(&gone);
        Ok(Pass {
            gone: gone.len(),
            ..pass
        })
    }

    fn take_up(&self, files: Vec<ScannedFile>, gone: &[Arc<Entry>]) -> Result<Pass> {
        let mut pass = Pass::default();
        let bulk = files.len() > CHUNK_FILES;
        self.progress.expect(files.len() as u64);
        for chunk in chunks(files) {
            if self.stopping() {
                break;
            }
            // A page that is being written is looked at after its writer is done.
            let _pages = self
                .page_locks
                .lock_all(chunk.iter().map(|file| file.path.as_str()));
            let looked = self.look(&chunk);
            self.apply_steps(looked, gone, bulk, &mut pass)?;
            self.progress.advance(chunk.len() as u64);
        }
        if bulk {
            self.relink_everything();
        }
        Ok(pass)
    }

    /// Reads and parses, on all cores, what is not as the directory has it.
    fn look(&self, files: &[ScannedFile]) -> Vec<Looked> {
        let view = self.view.load_full();
        files
            .par_iter()
            .filter_map(|file| self.look_at(&view.dir, file))
            .collect()
    }

    fn look_at(&self, dir: &Directory, file: &ScannedFile) -> Option<Looked> {
        let (bytes, stat) = match self.store.read(&file.path) {
            Ok(found) => found?,
            Err(error) => {
                self.note_unreadable(&file.path, &error.to_string());
                return None;
            }
        };
        self.note_readable(&file.path);
        let digest = digest(&bytes);
        let known = dir
            .by_path(&file.path)
            .is_some_and(|entry| entry.digest == digest);
        let changed = (!known).then(|| Changed {
            parsed: Parsed::of(&file.path, &bytes, self.layout),
            bytes: bytes.into(),
        });
        Some(Looked {
            path: file.path.clone(),
            stat,
            digest,
            changed,
        })
    }

    fn apply_steps(
        &self,
        looked: Vec<Looked>,
        gone: &[Arc<Entry>],
        bulk: bool,
        pass: &mut Pass,
    ) -> Result<()> {
        let view = self.view.load_full();
        let buried = self.deletions.buried(self.now());
        let steps = plan::plan(&view.dir, &looked, gone, &buried);
        let mut takes = Vec::new();
        let mut touched = Vec::new();
        for (file, step) in looked.into_iter().zip(steps) {
            count(pass, &step);
            match step {
                Step::Same(uid) => touched.push((uid, file.stat)),
                step => takes.extend(self.take(&view.dir, file, step, &buried)),
            }
        }
        self.touch(&view.dir, touched)?;
        self.publish_takes(takes, bulk)
    }

    /// New stats need no record, unless they end a held deletion.
    fn touch(&self, dir: &Directory, touched: Vec<(Uid, Stat)>) -> Result<()> {
        if touched.is_empty() {
            return Ok(());
        }
        let found: Vec<Draft> = touched
            .iter()
            .filter_map(|(uid, _)| dir.by_uid(*uid).filter(|e| e.missing))
            .map(|entry| Draft {
                uid: Some(entry.uid),
                path: Some(entry.path.to_string()),
                ..Draft::new(Kind::PageFound, DISK)
            })
            .collect();
        let set = |state: &mut LaneState| {
            for (uid, stat) in &touched {
                state.dir.set_stat(*uid, *stat);
                state.dir.set_missing(*uid, false);
            }
        };
        self.deletions
            .reappeared(touched.iter().map(|(uid, _)| *uid));
        if found.is_empty() {
            let mut state = self.lane.state.lock();
            set(&mut state);
            self.show(&mut state);
            return Ok(());
        }
        self.append(found)?.publish(|state, _| {
            set(state);
            Work::default()
        })
    }

    /// The record of one step and the page it makes.
    fn take(
        &self,
        dir: &Directory,
        file: Looked,
        step: Step,
        buried: &[Arc<Entry>],
    ) -> Option<Take> {
        let (uid, origin) = match step {
            Step::Adopt => (self.new_uid(), "adopted"),
            Step::Edit(uid) | Step::Move(uid) => (uid, "disk"),
            Step::Revive(uid) => (uid, "restored"),
            Step::Same(_) => return None,
        };
        let old = dir
            .by_uid(uid)
            .or_else(|| buried.iter().find(|e| e.uid == uid))
            .cloned();
        let changed = match file.changed {
            Some(changed) => changed,
            None => self.reread(&file.path)?,
        };
        let moved_from = match (&step, &old) {
            (Step::Move(_), Some(old)) if *old.path != *file.path => Some(old.path.to_string()),
            _ => None,
        };
        let same_text = old.as_ref().is_some_and(|old| old.digest == file.digest);
        let rewritten = !(same_text && moved_from.is_some());
        Some(Take {
            uid,
            path: file.path,
            stat: file.stat,
            origin,
            old,
            moved_from,
            rewritten,
            changed,
            author: DISK.into(),
        })
    }

    fn reread(&self, path: &str) -> Option<Changed> {
        let (bytes, _) = self.store.read(path).ok()??;
        Some(Changed {
            parsed: Parsed::of(path, &bytes, self.layout),
            bytes: bytes.into(),
        })
    }

    fn publish_takes(&self, takes: Vec<Take>, bulk: bool) -> Result<()> {
        if takes.is_empty() {
            return Ok(());
        }
        let now = self.now();
        let drafts: Vec<Draft> = takes.iter().flat_map(|take| take.drafts(now)).collect();
        self.deletions.reappeared(takes.iter().map(|take| take.uid));
        self.append(drafts)?.publish(|state, records| {
            let mut work = Work::default();
            let mut records = records.iter();
            for take in &takes {
                take.publish(state, &mut records, &mut work, bulk);
            }
            work
        })
    }

    /// After a bulk load links lead to pages that came later.
    fn relink_everything(&self) {
        let state = self.lane.state.lock();
        let relink = state
            .dir
            .iter()
            .filter(|e| !e.facts.links.is_empty())
            .map(|e| e.no)
            .collect();
        self.sql.send(sql::Batch {
            relink,
            ..sql::Batch::nothing(state.dir.clone(), state.seq)
        });
    }
}

fn count(pass: &mut Pass, step: &Step) {
    match step {
        Step::Same(_) => {}
        Step::Edit(_) => pass.edited += 1,
        Step::Move(_) => pass.moved += 1,
        Step::Adopt | Step::Revive(_) => pass.adopted += 1,
    }
}

fn differs(dir: &Directory, file: &ScannedFile) -> bool {
    dir.by_path(&file.path)
        .is_none_or(|entry| entry.missing || entry.stat != Some(file.stat))
}

/// Live pages whose file the scan did not find, leaving out what it could not look at.
pub(crate) fn gone(dir: &Directory, scan: &Scan) -> Vec<Arc<Entry>> {
    let files = scan.files.par_iter().with_min_len(1024);
    let there: Vec<PageNo> = files
        .filter_map(|f| dir.by_path(&f.path).map(|e| e.no))
        .collect();
    let there: Bitmap = there.into_iter().collect();
    let unknown = |path: &str| scan.unknown.iter().any(|u| covers(&u.path, path));
    let absent = dir
        .iter()
        .filter(|e| !is_builtin(&e.path) && !there.contains(e.no));
    absent.filter(|e| !unknown(&e.path)).cloned().collect()
}

/// Is `path` the unreadable thing or inside of it? The root itself is the empty path.
pub(crate) fn covers(unreadable: &str, path: &str) -> bool {
    unreadable.is_empty()
        || path
            .strip_prefix(unreadable)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn chunks(files: Vec<ScannedFile>) -> Vec<Vec<ScannedFile>> {
    let mut chunks = Vec::new();
    let (mut chunk, mut bytes) = (Vec::new(), 0);
    for file in files {
        bytes += file.stat.size;
        chunk.push(file);
        if chunk.len() >= CHUNK_FILES || bytes >= CHUNK_BYTES {
            chunks.push(std::mem::take(&mut chunk));
            bytes = 0;
        }
    }
    if !chunk.is_empty() {
        chunks.push(chunk);
    }
    chunks
}

/// One file that becomes a new version, a new path or both.
pub(crate) struct Take {
    pub uid: Uid,
    pub path: String,
    pub stat: Stat,
    pub origin: &'static str,
    /// The page as it was.
    pub old: Option<Arc<Entry>>,
    pub moved_from: Option<String>,
    /// False for a rename that left the text alone.
    pub rewritten: bool,
    pub changed: Changed,
    pub author: String,
}

impl Take {
    fn drafts(&self, now: i64) -> Vec<Draft> {
        let mut drafts = Vec::with_capacity(1);
        if let Some(from) = &self.moved_from {
            let note = Map::from_iter([("from_path".to_owned(), Value::from(from.clone()))]);
            drafts.push(Draft {
                uid: Some(self.uid),
                path: Some(self.path.clone()),
                note,
                ..Draft::new(Kind::PageMoved, &*self.author)
            });
        }
        if self.rewritten {
            drafts.push(self.version_draft(now));
        }
        drafts
    }

    fn version_draft(&self, now: i64) -> Draft {
        Draft {
            uid: Some(self.uid),
            path: Some(self.path.clone()),
            version: Some(self.old.as_ref().map_or(1, |old| old.version + 1)),
            content: Some(self.changed.bytes.clone()),
            from: self.old.is_none().then(|| self.born(now)),
            note: Map::from_iter([("origin".to_owned(), Value::from(self.origin))]),
            ..Draft::new(Kind::PageVersion, &*self.author)
        }
    }

    /// A page adopted from disk is born at its `at`, else at its file's time, never later than now.
    fn born(&self, now: i64) -> i64 {
        let stated = self.changed.parsed.page.at.map(|when| when.first);
        stated.unwrap_or(self.stat.mtime_ns / 1_000).min(now)
    }

    fn publish(
        &self,
        state: &mut LaneState,
        records: &mut std::slice::Iter<'_, Record>,
        work: &mut Work,
        bulk: bool,
    ) {
        if self.moved_from.is_some()
            && let Some(record) = records.next()
        {
            self.publish_record(state, record, work, bulk);
        }
        if self.rewritten
            && let Some(record) = records.next()
        {
            self.publish_record(state, record, work, bulk);
        }
    }

    fn publish_record(&self, state: &mut LaneState, record: &Record, work: &mut Work, bulk: bool) {
        let parsed = &self.changed.parsed;
        let old = state
            .dir
            .by_uid(self.uid)
            .cloned()
            .or_else(|| self.old.clone());
        let draft = entry_draft(record, old.as_deref(), parsed, Some(self.stat));
        publish_entry(state, draft, old.as_deref(), parsed, record, work, bulk);
    }
}

/// The directory entry after `record`, which holds a version or moves one.
pub(crate) fn entry_draft(
    record: &Record,
    old: Option<&Entry>,
    parsed: &Parsed,
    stat: Option<Stat>,
) -> EntryDraft {
    let is_version = record.kind == Kind::PageVersion;
    let before = old.filter(|_| !is_version);
    EntryDraft {
        uid: record.uid.unwrap_or(Uid(0)),
        path: record.path.as_deref().unwrap_or_default().into(),
        version: record.version.or(old.map(|e| e.version)).unwrap_or(1),
        seq: record.seq,
        from: sql::valid_from(record),
        written_at: before.map_or(record.at, |e| e.written_at),
        author: before.map_or_else(|| record.actor.as_str().into(), |e| e.author.clone()),
        stat,
        object: record
            .content
            .map(|c| c.object)
            .or(old.map(|e| e.object))
            .unwrap_or(ObjectId([0; 32])),
        digest: parsed.digest,
        bytes: parsed.bytes,
        missing: false,
        facts: parsed.facts.clone(),
    }
}

/// Puts one entry into the lane and notes what the other views have to do.
pub(crate) fn publish_entry(
    state: &mut LaneState,
    draft: EntryDraft,
    old: Option<&Entry>,
    parsed: &Parsed,
    record: &Record,
    work: &mut Work,
    bulk: bool,
) {
    let (from, version, object) = (draft.from, draft.version, draft.object);
    let path = draft.path.clone();
    let upserted = state.upsert(draft);
    if upserted.relink && !bulk {
        relink(&state.dir, old, parsed, &path, &mut work.relink);
    }
    if upserted.before.is_some() {
        work.stale.push((upserted.no, record.seq));
    }
    work.docs.push(parsed.doc(upserted.no.0, record.seq, from));
    let change = sql::version_change(upserted.no, record, record, parsed);
    work.changes.push(VersionChange {
        version,
        object: object.to_string(),
        bytes: parsed.bytes.into(),
        ..change
    });
}

fn relink(
    dir: &Directory,
    old: Option<&Entry>,
    parsed: &Parsed,
    path: &str,
    relink: &mut Vec<PageNo>,
) {
    relink.extend(dir.referrers(&parsed.facts, path));
    if let Some(old) = old {
        relink.extend(dir.referrers(&old.facts, &old.path));
    }
}
