//! The one door for changes made through us: access, guards, version check,
//! journal, file, views.
//!
//! Outside edits come through [`crate::reconcile`], which shares the journal
//! and the lane. Invariant: a caller is told "done" only after the record is
//! durable and the state that contains it is published; what somebody saved in
//! the same moment is kept as a version, never overwritten.

use std::sync::Arc;

use escurel_access::{Caller, Verb};
use escurel_index::Entry;
use escurel_md::PageType;
use escurel_store::{Draft, Kind, Record, Replaced, Stat, Uid};
use serde_json::{Map, Value};

use crate::api::PageName;
use crate::builtin::is_builtin;
use crate::facts::Parsed;
use crate::kb::Core;
use crate::lane::Work;
use crate::reconcile::{DISK, entry_draft, publish_entry};
use crate::sight::may;
use crate::{Code, Refusal, Result};

mod delete;
mod edit;
mod merged;
mod moved;
mod restore;
mod update;

pub use edit::{Edit, Part, Position};
pub use restore::Then;
pub use update::AutonomyLint;
pub(crate) use update::{NewText, unified};

use merged::{merge_pages, merge_saves};

/// A whole page to create or replace.
#[derive(Clone, Debug)]
pub struct Put<'a> {
    /// Where it goes: a page path.
    pub path: &'a str,
    pub content: &'a str,
    /// The version that the content was made from; absent for "whatever is there".
    pub base_version: Option<u64>,
}

/// A text that is to take the place of what was planned on.
struct Change<'a> {
    path: &'a str,
    old: Option<Arc<Entry>>,
    /// The file's bytes as they were planned on; absent for a page that is not there.
    planned: Option<Vec<u8>>,
    parsed: Parsed,
    content: Arc<[u8]>,
    /// Who wrote it, where that is not the caller alone.
    authors: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    pub path: String,
    pub version: u64,
    /// Somebody saved the file at the same moment and both texts are in the new version.
    pub merged: bool,
}

/// Somebody who saves over and over does not hold a writer for ever.
const MOST_ROUNDS: usize = 8;

impl Core {
    /// Creates or replaces one page.
    ///
    /// # Errors
    /// `page_id_invalid`, `forbidden`, `read_only`, `missing_on_disk`, `not_utf8`,
    /// `identity_changed`, `duplicate_id`, `conflict`, `disk_full`, `journal_broken`.
    pub fn put_page(&self, caller: &Caller, put: &Put<'_>) -> Result<Written> {
        let path = checked_path(put.path)?;
        let _page = self.page_locks.lock(&path);
        let old = self.view.load().dir.by_path(&path).cloned();
        let parsed = Parsed::of(&path, put.content.as_bytes(), self.layout);
        self.guard(caller, &path, old.as_deref(), &parsed, put.base_version)?;
        let planned = old
            .as_deref()
            .map(|entry| self.head_text(entry))
            .transpose()?;
        self.write_page(
            caller,
            Change {
                path: &path,
                old,
                planned,
                parsed,
                content: put.content.as_bytes().into(),
                authors: Vec::new(),
            },
        )
    }

    /// Writes what was planned under the page's lock. The same bytes make no version.
    fn write_page(&self, caller: &Caller, change: Change<'_>) -> Result<Written> {
        if change.planned.as_deref() == Some(&change.content[..]) {
            let version = change.old.map_or(1, |entry| entry.version);
            return Ok(Written {
                path: change.path.to_owned(),
                version,
                merged: false,
            });
        }
        let uid = change
            .old
            .as_ref()
            .map_or_else(|| self.new_uid(), |entry| entry.uid);
        let next = change.old.as_ref().map_or(1, |entry| entry.version + 1);
        self.write_rounds(caller, uid, next, change)
    }

    /// The page that is to be changed: never the base's where a scenario's is meant.
    ///
    /// # Errors
    /// `page_not_found`, `ambiguous`.
    pub(crate) fn named(&self, caller: &Caller, name: &PageName) -> Result<Arc<Entry>> {
        let scenario = self.scenario_of(name);
        let entry = self
            .reading(caller, scenario.as_deref())
            .demand(&name.id, "page_id")?;
        match &name.scenario {
            Some(wanted) if entry.facts.scenario.as_deref() != Some(wanted) => {
                let why = format!(
                    "The scenario `{wanted}` has no page of its own for {}; update_page makes one.",
                    entry.path
                );
                Err(Refusal::new(Code::PageNotFound, why).at("scenario"))
            }
            _ => Ok(entry),
        }
    }

    /// Where a name is looked up: in the scenario that is named or, for a path or uid, in the page's own.
    pub(crate) fn scenario_of(&self, name: &PageName) -> Option<String> {
        let view = self.view.load();
        let exact = || {
            let by_uid = || view.dir.by_uid(name.id.parse().ok()?);
            let entry = view.dir.by_path(&name.id).or_else(by_uid)?;
            entry.facts.scenario.as_deref().map(str::to_owned)
        };
        name.scenario.clone().or_else(exact)
    }

    fn guard(
        &self,
        caller: &Caller,
        path: &str,
        old: Option<&Entry>,
        new: &Parsed,
        base_version: Option<u64>,
    ) -> Result<()> {
        let verb = if old.is_some() {
            Verb::Update
        } else {
            Verb::Create
        };
        // The stored page decides: nobody grants himself a right by what he writes.
        let facts = old.map_or(&new.facts, |entry| &entry.facts);
        if !may(&*self.policy, caller, verb, path, facts) {
            return Err(Refusal::new(
                Code::Forbidden,
                format!("{} may not write {path}.", caller.subject),
            ));
        }
        self.guard_writable(path)?;
        match old {
            Some(entry) => guard_replace(entry, new, base_version),
            None => self.guard_create(path, new),
        }
    }

    /// Is there anything at all that may be written or deleted here?
    pub(crate) fn guard_writable(&self, path: &str) -> Result<()> {
        if self.store.read_only() || is_builtin(path) {
            let why = format!("{path} cannot be written.");
            return Err(Refusal::new(Code::ReadOnly, why));
        }
        Ok(self.store.writable()?)
    }

    fn guard_create(&self, path: &str, new: &Parsed) -> Result<()> {
        let (skill, id) = (&new.page.skill, &new.page.id);
        let view = self.view.load();
        let link = escurel_md::Wikilink {
            skill: Some(skill.clone()),
            id: Some(id.clone()),
            ..Default::default()
        };
        let scope = escurel_index::Scope {
            scenario: new.page.scenario.as_deref(),
            visible: &|_| true,
        };
        if new.page.page_type == PageType::Skill {
            return Ok(());
        }
        match view
            .dir
            .resolve(&link, escurel_md::LinkKind::Wikilink, None, &scope)
        {
            escurel_index::Resolution::Found(other)
                if other.facts.skill == skill.as_str().into()
                    && *other.facts.id == **id
                    && other.facts.scenario.as_deref() == new.page.scenario.as_deref() =>
            {
                Err(Refusal::new(
                    Code::DuplicateId,
                    format!(
                        "{} already is [[{skill}::{id}]], so {path} cannot be it, too.",
                        other.path
                    ),
                ))
            }
            _ => Ok(()),
        }
    }

    fn write_rounds(
        &self,
        caller: &Caller,
        uid: Uid,
        next: u64,
        change: Change<'_>,
    ) -> Result<Written> {
        let Change {
            path,
            mut old,
            mut planned,
            mut parsed,
            mut content,
            mut authors,
        } = change;
        let mut next = next;
        let mut merged = false;
        for _ in 0..MOST_ROUNDS {
            let (record, outcome) = self.write_once(
                &caller.subject,
                uid,
                path,
                next,
                old.as_deref(),
                planned.as_deref(),
                &parsed,
                &content,
                &std::mem::take(&mut authors),
            )?;
            let found = match outcome {
                Replaced::Done(_) | Replaced::Displaced { found: None, .. } => {
                    return Ok(Written {
                        path: path.to_owned(),
                        version: record.version.unwrap_or(1),
                        merged,
                    });
                }
                Replaced::Displaced {
                    found: Some(found), ..
                } => found,
            };
            // What came out is a save that nobody asked us about: it becomes a version of its own.
            let base = planned.unwrap_or_default();
            old = Some(self.record_outside_edit(uid, path, &found)?);
            next = old.as_ref().map_or(next, |entry| entry.version) + 1;
            let Some(both) = merge_saves(&base, &content, &found) else {
                self.put_back(path, content.to_vec(), found)?;
                return Err(Refusal::new(
                    Code::Conflict,
                    format!(
                        "{path} was saved by somebody else in this moment; their text stands, yours is in its history."
                    ),
                ));
            };
            planned = Some(content.to_vec());
            parsed = Parsed::of(path, &both, self.layout);
            content = both.into();
            merged = true;
        }
        Err(Refusal::new(
            Code::Conflict,
            format!("{path} is being saved over and over by another program."),
        ))
    }

    #[allow(clippy::too_many_arguments, reason = "one write has that many facets")]
    fn write_once(
        &self,
        author: &str,
        uid: Uid,
        path: &str,
        version: u64,
        old: Option<&Entry>,
        planned: Option<&[u8]>,
        parsed: &Parsed,
        content: &Arc<[u8]>,
        authors: &[String],
    ) -> Result<(Record, Replaced)> {
        let mut draft = version_draft(author, uid, path, version, content, "write");
        if !authors.is_empty() {
            let authors = Value::from(authors.to_vec()).to_string();
            draft.note.insert("authors".to_owned(), authors.into());
        }
        let ticket = self.append(vec![draft])?;
        let outcome = self.store.replace(path, planned, content);
        if planned.is_some() && matches!(outcome, Ok(Replaced::Displaced { found: None, .. })) {
            // A deletion that nobody had told us of gives way to the new text. It may
            // be durable already, and a restart would believe it.
            self.store.flush_files()?;
        }
        self.reach("core.after_replace")?;
        let stat = match &outcome {
            Ok(Replaced::Done(stat) | Replaced::Displaced { stat, .. }) => Some(*stat),
            Err(_) => None,
        };
        let record = self.publish_version(ticket, old, parsed, stat)?;
        match outcome {
            Ok(outcome) => Ok((record, outcome)),
            // The caller knows that it failed. The text stays in history; the page is what its
            // file says as soon as that is looked at again.
            Err(error) => Err(Refusal::from(error).at(path)),
        }
    }

    fn record_outside_edit(&self, uid: Uid, path: &str, found: &[u8]) -> Result<Arc<Entry>> {
        let parsed = Parsed::of(path, found, self.layout);
        let old = self.view.load().dir.by_uid(uid).cloned();
        let ticket = self.append(vec![version_draft(
            DISK,
            uid,
            path,
            old.as_deref().map_or(1, |entry| entry.version + 1),
            &found.into(),
            "disk",
        )])?;
        self.publish_version(ticket, old.as_deref(), &parsed, None)?;
        let entry = self.view.load().dir.by_uid(uid).cloned();
        entry.ok_or_else(|| Refusal::new(Code::Internal, "A page just published is not there."))
    }

    fn publish_version(
        &self,
        ticket: crate::lane::Ticket<'_>,
        old: Option<&Entry>,
        parsed: &Parsed,
        stat: Option<Stat>,
    ) -> Result<Record> {
        let record = ticket.records.first().cloned();
        ticket.publish(|state, records| {
            let mut work = Work::default();
            for record in records {
                let draft = entry_draft(record, old, parsed, stat);
                publish_entry(state, draft, old, parsed, record, &mut work, false);
            }
            work
        })?;
        record.ok_or_else(|| {
            Refusal::new(
                Code::Internal,
                "The journal took a record and did not return it.",
            )
        })
    }

    /// Brings a file to a text that the journal already has, keeping what somebody saved meanwhile.
    pub(crate) fn put_file(&self, path: &str, planned: Option<&[u8]>, new: &[u8]) -> Result<()> {
        match self.store.replace(path, planned, new)? {
            Replaced::Displaced {
                found: Some(found), ..
            } => self.put_back(path, new.to_vec(), found),
            _ => Ok(()),
        }
    }

    /// Somebody else's save takes the place of `ours` again. Each further round
    /// needs another save in that moment, which then is the one that stands.
    fn put_back(&self, path: &str, ours: Vec<u8>, found: Vec<u8>) -> Result<()> {
        let (mut there, mut theirs) = (ours, found);
        while let Replaced::Displaced {
            found: Some(newer), ..
        } = self.store.replace(path, Some(&there), &theirs)?
        {
            (there, theirs) = (theirs, newer);
        }
        Ok(())
    }
}

fn guard_replace(old: &Entry, new: &Parsed, base_version: Option<u64>) -> Result<()> {
    let refuse = |code, why: String| Err(Refusal::new(code, why));
    guard_present(old)?;
    if !old.facts.utf8 {
        return refuse(Code::NotUtf8, format!("{} is not UTF-8.", old.path));
    }
    guard_version(old, base_version)?;
    let same = old.facts.page_type == new.page.page_type
        && *old.facts.skill == *new.page.skill
        && *old.facts.id == *new.page.id;
    if old.facts.scenario.as_deref() != new.page.scenario.as_deref() {
        let named = |scenario: Option<&str>| {
            scenario.map_or("no scenario".to_owned(), |name| {
                format!("the scenario `{name}`")
            })
        };
        let why = format!(
            "{} belongs to {} and the new text to {}.",
            old.path,
            named(old.facts.scenario.as_deref()),
            named(new.page.scenario.as_deref())
        );
        return Err(Refusal::new(Code::IdentityChanged, why).at("frontmatter.scenario"));
    }
    if !same {
        let (skill, id) = (&old.facts.skill, &old.facts.id);
        return refuse(
            Code::IdentityChanged,
            format!(
                "{} is [[{skill}::{id}]] and the new text is [[{}::{}]].",
                old.path, new.page.skill, new.page.id
            ),
        );
    }
    Ok(())
}

pub(crate) fn guard_present(entry: &Entry) -> Result<()> {
    match entry.missing {
        true => Err(missing(entry)),
        false => Ok(()),
    }
}

fn missing(entry: &Entry) -> Refusal {
    let why = format!("The file of {} is missing.", entry.path);
    Refusal::new(Code::MissingOnDisk, why).at("page_id")
}

/// Compare and swap: the page must be at this version, if one is given.
fn guard_version(entry: &Entry, base_version: Option<u64>) -> Result<()> {
    match base_version.filter(|base| *base != entry.version) {
        None => Ok(()),
        Some(base) => {
            let why = format!("{} is at v{}, not v{base}.", entry.path, entry.version);
            Err(Refusal::new(Code::Conflict, why).at("base_version"))
        }
    }
}

fn checked_path(path: &str) -> Result<String> {
    let path = escurel_md::check_page_path(path)
        .map_err(|e| Refusal::new(Code::PageIdInvalid, e.to_string()).at("page_id"))?;
    if escurel_store::is_page(&path) {
        return Ok(path);
    }
    Err(Refusal::new(
        Code::PageIdInvalid,
        format!("`{path}` does not end in .md."),
    )
    .at("page_id"))
}

fn version_draft(
    author: &str,
    uid: Uid,
    path: &str,
    version: u64,
    content: &Arc<[u8]>,
    origin: &str,
) -> Draft {
    Draft {
        uid: Some(uid),
        path: Some(path.to_owned()),
        version: Some(version),
        content: Some(content.clone()),
        note: Map::from_iter([("origin".to_owned(), Value::from(origin))]),
        ..Draft::new(Kind::PageVersion, author)
    }
}

/// One writer a page: writers of different pages share the journal's fsync.
pub(crate) struct PageLocks {
    stripes: Vec<parking_lot::Mutex<()>>,
}

impl Default for PageLocks {
    fn default() -> PageLocks {
        PageLocks {
            stripes: (0..256).map(|_| parking_lot::Mutex::new(())).collect(),
        }
    }
}

impl PageLocks {
    pub fn lock(&self, path: &str) -> parking_lot::MutexGuard<'_, ()> {
        self.stripes[self.stripe(path)].lock()
    }

    /// All pages of a batch, in one order for everybody.
    pub fn lock_all<'a>(
        &self,
        paths: impl Iterator<Item = &'a str>,
    ) -> Vec<parking_lot::MutexGuard<'_, ()>> {
        let stripes: std::collections::BTreeSet<usize> =
            paths.map(|path| self.stripe(path)).collect();
        stripes
            .into_iter()
            .map(|stripe| self.stripes[stripe].lock())
            .collect()
    }

    fn stripe(&self, path: &str) -> usize {
        crate::facts::digest(path.as_bytes()) as usize % self.stripes.len()
    }
}
