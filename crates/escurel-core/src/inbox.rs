//! Events: captured into the inbox, read, and assigned to the page into whose
//! state somebody has folded them.
//!
//! Refuses to process anything. Invariants: the first capture of an id and the
//! first assignment of an event win; an event that a caller may not see is as
//! absent as one that never was.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use escurel_access::{Caller, EventAcl, EventFacts, sees_event};
use escurel_md::When;
use escurel_store::{Draft, Kind, Uid};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::api::{Event, EventPage, EventStatus, NewEvent};
use crate::given::{
    FULL_PAGE, MOST_ID, check_id, check_json, check_limit, check_line, check_text, content, moment,
    note, place,
};
use crate::kb::Core;
use crate::lane::Work;
use crate::read::{Reading, cursor};
use crate::tables::EventRow;
use crate::{Code, Refusal, Result};

/// An event that was missed is told of again if so many came since at the most.
const MOST_REPLAYED: usize = 10_000;

const INBOX: &str = "inbox";

/// What the object store keeps of an event.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(default)]
struct Texts {
    at: String,
    source: Option<String>,
    mime: Option<String>,
    label_skill: Option<String>,
    title: Option<String>,
    body: Option<String>,
    provenance: Map<String, Value>,
    /// The uid of the page named.
    instance: Option<String>,
}

impl Core {
    /// Puts an event into the inbox. An id that is there already answers the event that has it;
    /// a caller who may not see that one gets back what he handed in.
    ///
    /// # Errors
    /// `invalid_argument`, `time_invalid`, `page_not_found`, `ambiguous`, `indexing`, `read_only`,
    /// `disk_full`, `journal_broken`.
    pub fn capture_event(&self, caller: &Caller, given: &NewEvent) -> Result<Event> {
        check(given)?;
        let at = match &given.at {
            Some(at) => moment(at, "at")?.first,
            None => self.now(),
        };
        self.demand_tables()?;
        self.guard_tables()?;
        let instance = self.instance_named(caller, given)?;
        let event_id = match &given.event_id {
            Some(id) => id.clone(),
            None => self.new_uid().to_string(),
        };
        let texts = texts_of(caller, given, at, instance.as_ref().map(|(uid, _)| *uid));
        let path = instance.as_ref().map(|(_, path)| path.clone());
        let submitted = told(&event_id, texts.clone(), EventStatus::Inbox, path);
        let _one = self.id_locks.lock(&event_id);
        let eyes = Eyes::of(self, caller);
        if let Some(row) = eyes.row(&event_id).cloned() {
            return match eyes.sees(&row)? {
                true => eyes.event(&row),
                false => Ok(submitted),
            };
        }
        let uid = instance.map(|(uid, _)| ("instance", uid.to_string()));
        let draft = Draft {
            content: Some(content(&texts)?),
            from: Some(at),
            note: note([("event_id", event_id)].into_iter().chain(uid)),
            ..Draft::new(Kind::EventCaptured, &caller.subject)
        };
        self.append(vec![draft])?.publish(|_, _| Work::default())?;
        Ok(submitted)
    }

    /// Takes an event out of the inbox: its page's state has it now. Of several callers one wins.
    ///
    /// # Errors
    /// `event_not_found`, `already_assigned`, `page_not_found`, `ambiguous`, `indexing`,
    /// `read_only`, `disk_full`, `journal_broken`.
    pub fn assign_event(&self, caller: &Caller, event_id: &str, page_id: &str) -> Result<Event> {
        self.demand_tables()?;
        self.guard_tables()?;
        let _one = self.id_locks.lock(event_id);
        let eyes = Eyes::of(self, caller);
        let row = eyes.demand(event_id)?;
        let page = eyes.reading.demand(page_id, "instance_page_id")?;
        if row.processed {
            let why = format!("The event `{event_id}` was processed already.");
            return Err(Refusal::new(Code::AlreadyAssigned, why).at("event_id"));
        }
        let fields = [
            ("event_id", event_id.to_owned()),
            ("instance", page.uid.to_string()),
        ];
        let draft = Draft {
            note: note(fields),
            ..Draft::new(Kind::EventAssigned, &caller.subject)
        };
        self.append(vec![draft])?.publish(|_, _| Work::default())?;
        eyes.event(&row.assigned_to(Some(page.uid)))
    }

    /// What waits to be processed, newest first by time; of one time, the last captured first.
    ///
    /// # Errors
    /// `invalid_argument`, `cursor_invalid`, `indexing`.
    pub fn list_inbox(
        &self,
        caller: &Caller,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<EventPage> {
        check_limit(limit)?;
        let before = place(INBOX, cursor)?;
        self.demand_tables()?;
        let eyes = Eyes::of(self, caller);
        eyes.page(INBOX, eyes.reading.view.tables.events.inbox(before), limit)
    }

    /// What was processed into a page, oldest first by time; of one time, the first captured first.
    ///
    /// # Errors
    /// `invalid_argument`, `cursor_invalid`, `page_not_found`, `ambiguous`, `indexing`.
    pub fn list_events(
        &self,
        caller: &Caller,
        page_id: &str,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<EventPage> {
        check_limit(limit)?;
        self.demand_tables()?;
        let eyes = Eyes::of(self, caller);
        let uid = eyes.reading.demand(page_id, "instance_page_id")?.uid;
        let listing = format!("events {uid}");
        let after = place(&listing, cursor)?;
        let rows = eyes.reading.view.tables.events.history(uid, after);
        eyes.page(&listing, rows, limit)
    }

    /// One event.
    ///
    /// # Errors
    /// `event_not_found`, `indexing`.
    pub fn event(&self, caller: &Caller, event_id: &str) -> Result<Event> {
        self.demand_tables()?;
        let eyes = Eyes::of(self, caller);
        eyes.event(&*eyes.demand(event_id)?)
    }

    /// What still waits of that captured after `event_id`, oldest first: for those who were away.
    /// If there are more than `limit` or 10,000, the newest. An unknown id stands where it would
    /// be in the order of ids.
    ///
    /// # Errors
    /// `indexing`.
    pub fn events_after(
        &self,
        caller: &Caller,
        event_id: &str,
        limit: usize,
    ) -> Result<Vec<Event>> {
        self.demand_tables()?;
        let eyes = Eyes::of(self, caller);
        let events = &eyes.reading.view.tables.events;
        let known = eyes.row(event_id).map(|row| eyes.sees(row));
        let rows: Box<dyn Iterator<Item = &Arc<EventRow>>> = match known.transpose()? {
            Some(true) => {
                let seq = eyes.row(event_id).map_or(0, |row| row.seq);
                Box::new(events.waiting_after(seq))
            }
            _ => Box::new(events.waiting_behind(event_id)),
        };
        let mut taken = Vec::new();
        for row in rows.take(MOST_REPLAYED) {
            if taken.len() >= limit {
                break;
            }
            if eyes.sees(row)? {
                taken.push(eyes.event(row)?);
            }
        }
        taken.reverse();
        Ok(taken)
    }

    fn instance_named(&self, caller: &Caller, given: &NewEvent) -> Result<Option<(Uid, String)>> {
        let Some(page_id) = &given.instance_page_id else {
            return Ok(None);
        };
        let reading = self.reading(caller, None);
        let page = reading.demand(page_id, "instance_page_id")?;
        Ok(Some((page.uid, page.path.to_string())))
    }
}

/// One state through one caller's eyes, as far as events are concerned.
struct Eyes<'a> {
    core: &'a Core,
    caller: &'a Caller,
    reading: Reading<'a>,
    /// Where pages are; absent for those that the caller may not see.
    pages: RefCell<HashMap<Uid, Option<String>>>,
}

impl<'a> Eyes<'a> {
    fn of(core: &'a Core, caller: &'a Caller) -> Eyes<'a> {
        Eyes {
            core,
            caller,
            reading: core.reading(caller, None),
            pages: RefCell::default(),
        }
    }

    fn row(&self, event_id: &str) -> Option<&Arc<EventRow>> {
        self.reading.view.tables.events.get(event_id)
    }

    /// Absence and what is hidden are the same refusal.
    fn demand(&self, event_id: &str) -> Result<Arc<EventRow>> {
        let found = self.row(event_id).cloned();
        let visible = found.as_deref().map(|row| self.sees(row)).transpose()?;
        found.filter(|_| visible == Some(true)).ok_or_else(|| {
            let shown: String = event_id.chars().take(MOST_ID).collect();
            let why = format!("There is no event `{}`.", shown.escape_debug());
            Refusal::new(Code::EventNotFound, why).at("event_id")
        })
    }

    fn sees(&self, row: &EventRow) -> Result<bool> {
        if self.caller.is_admin() || self.core.event_acl == EventAcl::Off {
            return Ok(true);
        }
        let visible = |uid| Ok::<_, Refusal>(self.path(uid)?.is_some());
        let facts = EventFacts {
            captured_by: Some(&row.captured_by),
            instance_visible: row.instance.map(visible).transpose()?,
        };
        let sees = sees_event(self.caller, &facts);
        if !sees && self.core.event_acl == EventAcl::Log {
            let (event, caller) = (&*row.event_id, &*self.caller.subject);
            tracing::warn!(event, caller, "the rule about events would hide this one");
            return Ok(true);
        }
        Ok(sees)
    }

    /// Where a page is, or was last; absent if the caller may not see it.
    fn path(&self, uid: Uid) -> Result<Option<String>> {
        if let Some(known) = self.pages.borrow().get(&uid) {
            return Ok(known.clone());
        }
        let path = match self.reading.view.dir.by_uid(uid) {
            Some(entry) => self
                .reading
                .sight
                .sees(entry)
                .then(|| entry.path.to_string()),
            None => self.core.last_path(self.caller, &self.reading, uid)?,
        };
        self.pages.borrow_mut().insert(uid, path.clone());
        Ok(path)
    }

    fn event(&self, row: &EventRow) -> Result<Event> {
        let path = row.instance.map(|uid| self.path(uid)).transpose()?;
        let status = match row.processed {
            true => EventStatus::Processed,
            false => EventStatus::Inbox,
        };
        let texts = self.core.json_object(&row.object())?;
        let texts = texts.unwrap_or_else(|| erased(row));
        Ok(told(&row.event_id, texts, status, path.flatten()))
    }

    /// The first rows that the caller may see and, when there are more, where to go on.
    fn page<'r>(
        &self,
        listing: &str,
        rows: impl Iterator<Item = &'r Arc<EventRow>>,
        limit: usize,
    ) -> Result<EventPage> {
        let mut page = EventPage {
            events: Vec::new(),
            next_cursor: None,
        };
        let (mut bytes, mut last) = (0, None);
        for row in rows {
            if !self.sees(row)? {
                continue;
            }
            if page.events.len() == limit || bytes >= FULL_PAGE {
                page.next_cursor = last.map(|last: String| cursor::close(listing, &last));
                break;
            }
            bytes += row.bytes;
            page.events.push(self.event(row)?);
            last = Some(format!("{}|{}", row.at, row.seq));
        }
        Ok(page)
    }
}

fn told(event_id: &str, texts: Texts, status: EventStatus, path: Option<String>) -> Event {
    Event {
        event_id: event_id.to_owned(),
        at: texts.at,
        source: texts.source,
        mime: texts.mime,
        label_skill: texts.label_skill,
        instance_page_id: path,
        status,
        title: texts.title,
        body: texts.body,
        provenance: texts.provenance,
    }
}

/// What is left of an event whose texts were erased.
fn erased(row: &EventRow) -> Texts {
    Texts {
        at: When::to_rfc3339(row.at),
        provenance: stamped(Map::new(), &row.captured_by),
        ..Texts::default()
    }
}

fn texts_of(caller: &Caller, given: &NewEvent, at: i64, instance: Option<Uid>) -> Texts {
    let provenance = given.provenance.clone().unwrap_or_default();
    Texts {
        at: When::to_rfc3339(at),
        source: given.source.clone(),
        mime: given.mime.clone(),
        label_skill: given.label_skill.clone(),
        title: given.title.clone(),
        body: given.body.clone(),
        provenance: stamped(provenance, &caller.subject),
        instance: instance.map(|uid| uid.to_string()),
    }
}

/// With who captured it, whatever the caller says about that.
fn stamped(mut provenance: Map<String, Value>, subject: &str) -> Map<String, Value> {
    provenance.insert("captured_by".to_owned(), subject.into());
    provenance
}

fn check(given: &NewEvent) -> Result<()> {
    check_id("event_id", given.event_id.as_deref())?;
    let lines = [
        ("source", &given.source),
        ("mime", &given.mime),
        ("label_skill", &given.label_skill),
        ("title", &given.title),
    ];
    for (name, line) in lines {
        check_line(name, line.as_deref())?;
    }
    check_text("body", given.body.as_deref())?;
    check_json("provenance", given.provenance.as_ref())
}
