//! Contents removed for good.
//!
//! Order: the record, which names no text; the objects; then everything derived
//! that may hold a piece of them. Invariant: no saved state contains the record
//! of an erasure that is not wholly carried out, so a start after a crash reads
//! the record again and carries it out again.

use std::collections::{BTreeSet, HashMap, HashSet};

use escurel_access::Caller;
use escurel_store::{Draft, Kind, ObjectId, Record, Uid};
use serde_json::Value;

use crate::api::{EraseRequest, EraseTarget, ErasedAnswer, PageName};
use crate::facts::Parsed;
use crate::given::{bad, check_id, check_line, note};
use crate::kb::Core;
use crate::lane::Work;
use crate::read::uid_of;
use crate::sql::Batch;
use crate::tables::{KEY, text};
use crate::{Code, Refusal, Result};

/// Which contents an erasure takes, as its record says it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Selection {
    /// Of a page; all versions, if none are named.
    Page {
        uid: Uid,
        versions: BTreeSet<u64>,
    },
    Event(String),
    Chat(String),
    /// What somebody sent or captured, and what they wrote that is no page's newest text.
    Subject(String),
}

impl Selection {
    fn of(record: &Record) -> Option<Selection> {
        if record.kind != Kind::ContentErased {
            return None;
        }
        let named = |field| text(record, field).map(str::to_owned);
        let page = named("page").and_then(|uid| uid.parse().ok());
        let versions = record.note.get("versions").and_then(Value::as_array);
        let versions = versions.into_iter().flatten().filter_map(Value::as_u64);
        let page = page.map(|uid| Selection::Page {
            uid,
            versions: versions.collect(),
        });
        page.or_else(|| named("event_id").map(Selection::Event))
            .or_else(|| named("chat_group_id").map(Selection::Chat))
            .or_else(|| named("subject").map(Selection::Subject))
    }

    fn draft(&self, by: &str, reason: &str) -> Draft {
        let (field, name) = match self {
            Selection::Page { uid, .. } => ("page", uid.to_string()),
            Selection::Event(id) => ("event_id", id.clone()),
            Selection::Chat(group) => ("chat_group_id", group.clone()),
            Selection::Subject(subject) => ("subject", subject.clone()),
        };
        let mut note = note([("reason", reason.to_owned()), (field, name)]);
        if let Selection::Page { versions, .. } = self
            && !versions.is_empty()
        {
            note.insert("versions".to_owned(), versions.iter().copied().collect());
        }
        Draft {
            note,
            ..Draft::new(Kind::ContentErased, by)
        }
    }

    /// Is the record's content taken, whatever comes later?
    fn takes(&self, record: &Record) -> bool {
        match self {
            Selection::Page { uid, versions } => {
                record.kind == Kind::PageVersion
                    && record.uid == Some(*uid)
                    && (versions.is_empty()
                        || record.version.is_some_and(|v| versions.contains(&v)))
            }
            Selection::Event(id) => {
                record.kind == Kind::EventCaptured && text(record, "event_id") == Some(id)
            }
            Selection::Chat(group) => {
                record.kind == Kind::MessageAppended && text(record, "chat_group_id") == Some(group)
            }
            Selection::Subject(subject) => {
                matches!(record.kind, Kind::EventCaptured | Kind::MessageAppended)
                    && record.actor == *subject
            }
        }
    }

    /// May the answer to the call that wrote the record repeat what is taken?
    fn is_about(&self, record: &Record) -> bool {
        match self {
            Selection::Page { uid, .. } => record.uid == Some(*uid),
            Selection::Subject(subject) => record.actor == *subject,
            Selection::Event(_) | Selection::Chat(_) => self.takes(record),
        }
    }
}

/// What a selection comes to.
#[derive(Default)]
struct Found {
    objects: Vec<ObjectId>,
    /// Those of them that are texts of pages, with the page's path.
    texts: Vec<(String, ObjectId)>,
    /// Pages whose newest text is the subject's, and so stays.
    kept: Vec<Uid>,
    /// Was there any such thing?
    any: bool,
}

impl Found {
    fn take(&mut self, record: &Record) {
        let Some(content) = record.content else {
            return;
        };
        self.objects.push(content.object);
        if record.kind == Kind::PageVersion {
            let path = record.path.clone().unwrap_or_default();
            self.texts.push((path, content.object));
        }
    }
}

impl Core {
    /// Removes contents for good: no byte of them stays in the data folder. The record of what
    /// happened stays, and the chain verifies.
    ///
    /// # Errors
    /// `admin_required`, `invalid_argument`, `page_not_found`, `event_not_found`, `indexing`, `read_only`,
    /// `journal_broken`, `disk_full`, and those of [`Core::delete_page`].
    pub fn erase(&self, caller: &Caller, request: &EraseRequest) -> Result<ErasedAnswer> {
        self.demand_admin(caller)?;
        self.demand_tables()?;
        self.guard_tables()?;
        if request.reason.trim().is_empty() {
            return Err(bad(
                "reason",
                "reason: say why, it stands in the journal.".to_owned(),
            ));
        }
        check_line("reason", Some(&request.reason))?;
        let selection = self.selection(caller, &request.target)?;
        let found = self.find(&selection, u64::MAX)?;
        if !found.any {
            return Err(bad(
                request.target.argument(),
                "There is nothing to erase.".to_owned(),
            ));
        }
        if request.dry_run {
            return Ok(self.told_of(&found));
        }
        // Held to the end: what is saved meanwhile would contain the record and the texts.
        let mut saved = self.signals.saved.lock();
        self.withdraw(caller, &selection)?;
        let draft = selection.draft(&caller.subject, &request.reason);
        let ticket = self.append(vec![draft])?;
        let seq = ticket.records.first().map_or(0, |record| record.seq);
        ticket.publish(|_, _| Work::default())?;
        self.reach("core.after_erase_record")?;
        let found = self.remove_contents(&selection, seq)?;
        self.purge()?;
        self.try_save(&mut saved)?;
        Ok(self.told_of(&found))
    }

    /// Carries out again what a crash may have left half done.
    pub(crate) fn erase_again(&self, erasures: &[Record]) -> Result<()> {
        let selections = erasures
            .iter()
            .map(|record| (Selection::of(record), record.seq));
        let mut any = false;
        for (selection, seq) in selections {
            let Some(selection) = selection else { continue };
            self.remove_contents(&selection, seq)?;
            any = true;
        }
        match any {
            true => self.purge(),
            false => Ok(()),
        }
    }

    fn selection(&self, caller: &Caller, target: &EraseTarget) -> Result<Selection> {
        match target {
            EraseTarget::Page { name, versions } => self.page_selection(caller, name, versions),
            EraseTarget::Event(id) => {
                check_id("event_id", Some(id))?;
                match self.view.load().tables.events.get(id) {
                    Some(_) => Ok(Selection::Event(id.clone())),
                    None => {
                        let why = format!("There is no event {id:?}.");
                        Err(Refusal::new(Code::EventNotFound, why).at("event_id"))
                    }
                }
            }
            EraseTarget::Chat(group) => {
                check_id("chat_group_id", Some(group))?;
                Ok(Selection::Chat(group.clone()))
            }
            EraseTarget::Subject(subject) => {
                check_id("subject", Some(subject))?;
                Ok(Selection::Subject(subject.clone()))
            }
        }
    }

    fn page_selection(
        &self,
        caller: &Caller,
        name: &PageName,
        versions: &BTreeSet<u64>,
    ) -> Result<Selection> {
        let live = match self.named(caller, name) {
            Ok(entry) => Some(entry),
            Err(refusal) if refusal.code == Code::PageNotFound => None,
            Err(refusal) => return Err(refusal),
        };
        if let Some(entry) = &live {
            self.guard_writable(&entry.path)?;
            if versions.contains(&entry.version) {
                let why = format!(
                    "v{} is what {} says now. Write another text first, or erase the whole page.",
                    entry.version, entry.path
                );
                return Err(bad("versions", why));
            }
        }
        let duck = self.sql.at(self.view.load().seq)?;
        let missing = || {
            let why = format!("No page was ever called {}.", name.id);
            Refusal::new(Code::PageNotFound, why).at("page_id")
        };
        let uid = uid_of(live.as_deref(), &name.id, &duck)?.ok_or_else(missing)?;
        let rows = duck.versions(uid)?;
        if rows.is_empty() && live.is_none() {
            return Err(missing());
        }
        let there: BTreeSet<u64> = rows.iter().map(|row| row.version).collect();
        if let Some(unknown) = versions.difference(&there).next() {
            return Err(bad(
                "versions",
                format!("The page has no version v{unknown}."),
            ));
        }
        Ok(Selection::Page {
            uid,
            versions: versions.clone(),
        })
    }

    /// Ends what would go on with the texts: a page goes, and so does what is being typed into it.
    fn withdraw(&self, caller: &Caller, selection: &Selection) -> Result<()> {
        let Selection::Page { uid, versions } = selection else {
            return Ok(());
        };
        if !versions.is_empty() {
            self.commit_live(caller, *uid)?;
        } else if let Some(entry) = self.view.load().dir.by_uid(*uid).cloned() {
            let path: &str = &entry.path;
            let deleted = self.delete_page(caller, path, None, false)?;
            if let Some(issue) = deleted.issues.first().filter(|_| !deleted.ok) {
                return Err(Refusal::new(Code::Conflict, issue.message.clone()).at("page_id"));
            }
        }
        self.end_live(*uid)
    }

    /// The contents that a selection takes of the records before a number.
    fn find(&self, selection: &Selection, before: u64) -> Result<Found> {
        let mut found = Found::default();
        let mut keys: HashSet<String> = HashSet::new();
        // A subject's texts of each page, and whether a later record has made them old.
        let mut theirs: HashMap<Uid, Vec<Record>> = HashMap::new();
        let mut newest: HashMap<Uid, u64> = HashMap::new();
        for record in self.store.records(0) {
            let record = record?;
            if record.seq >= before {
                break;
            }
            if selection.is_about(&record) {
                found.any = true;
                keys.extend(text(&record, KEY).map(str::to_owned));
            }
            let answers = record.kind == Kind::RequestAnswered
                && text(&record, KEY).is_some_and(|key| keys.contains(key));
            if answers || selection.takes(&record) {
                found.take(&record);
            }
            if let (Selection::Subject(subject), Some(uid)) = (selection, record.uid) {
                match record.kind {
                    Kind::PageVersion => drop(newest.insert(uid, record.seq)),
                    Kind::PageDeleted => drop(newest.remove(&uid)),
                    _ => {}
                }
                if record.kind == Kind::PageVersion && record.actor == *subject {
                    theirs.entry(uid).or_default().push(record);
                }
            }
        }
        for (uid, records) in theirs {
            for record in records {
                match newest.get(&uid) == Some(&record.seq) {
                    true => found.kept.push(uid),
                    false => found.take(&record),
                }
            }
        }
        found.kept.sort_unstable();
        Ok(found)
    }

    fn remove_contents(&self, selection: &Selection, seq: u64) -> Result<Found> {
        let found = self.find(selection, seq)?;
        for (path, object) in &found.texts {
            // Erased before: its vectors were, too.
            let Ok(bytes) = self.store.object(object) else {
                continue;
            };
            let parsed = Parsed::of(path, &bytes, self.layout);
            self.meaning.forget_texts(&parsed.meaning_texts())?;
        }
        self.store.erase(&found.objects)?;
        Ok(found)
    }

    /// Makes everything derived anew that may hold bytes of what is gone.
    fn purge(&self) -> Result<()> {
        self.reach("core.before_purge")?;
        self.past.forget();
        let seq = self.lane.state.lock().seq;
        self.text.purge(seq)?;
        let renewed = {
            let mut state = self.lane.state.lock();
            self.show(&mut state);
            self.sql.renew(Batch::nothing(state.dir.clone(), state.seq))
        };
        // Nobody reads the old files any more.
        self.text.sweep()?;
        self.remove_damaged_files()?;
        let why = "The query index could not be made anew; delete the folder `index` while nobody serves.";
        renewed
            .recv()
            .map_err(|_| Refusal::new(Code::IndexDamaged, why))
    }

    /// Damaged index files were set aside for whoever wants to look at them.
    fn remove_damaged_files(&self) -> Result<()> {
        for file in std::fs::read_dir(&self.index)? {
            let path = file?.path();
            let name = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            match name.contains(".damaged") {
                true if path.is_dir() => std::fs::remove_dir_all(&path)?,
                true => std::fs::remove_file(&path)?,
                false => {}
            }
        }
        Ok(())
    }

    fn told_of(&self, found: &Found) -> ErasedAnswer {
        let view = self.view.load();
        let path = |uid: &Uid| Some(view.dir.by_uid(*uid)?.path.to_string());
        ErasedAnswer {
            contents: found.objects.len() as u64,
            kept: found.kept.iter().filter_map(path).collect(),
        }
    }
}
