//! Calls that carried a key, so that a repetition does nothing twice.

use std::sync::Arc;

use escurel_store::{Kind, ObjectId, Record};
use serde::{Deserialize, Serialize};

use super::{SortedMap, object_of, text};

/// A key is remembered this long, in microseconds.
pub(crate) const REMEMBERED: i64 = 24 * 3_600 * 1_000_000;

/// Fields of the record that a call begins with, and of its answer.
pub(crate) const KEY: &str = "request_key";
pub(crate) const DIGEST: &str = "request_digest";

/// A call that wrote, or that was answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RequestRow {
    pub key: Arc<str>,
    /// Of what it was called with.
    pub digest: Arc<str>,
    /// Of the first record.
    seq: u64,
    pub at: i64,
    /// Absent: it wrote, and nobody knows what it would have said.
    answer: Option<[u8; 32]>,
    /// What it wrote, for whoever has lost the answer.
    pub wrote: Arc<str>,
}

impl RequestRow {
    pub fn answer(&self) -> Option<ObjectId> {
        self.answer.map(ObjectId)
    }
}

#[derive(Clone, Default)]
pub(crate) struct Requests {
    by_key: SortedMap<Arc<str>, Arc<RequestRow>>,
    by_age: SortedMap<(i64, u64), Arc<str>>,
}

impl Requests {
    pub fn of(rows: Vec<RequestRow>) -> Requests {
        let mut requests = Requests::default();
        rows.into_iter().for_each(|row| requests.put(row));
        requests
    }

    /// By key.
    pub fn rows(&self) -> impl Iterator<Item = &RequestRow> {
        self.by_key.values().map(|row| &**row)
    }

    pub fn get(&self, key: &str) -> Option<&Arc<RequestRow>> {
        self.by_key.get(|known| (**known).cmp(key))
    }

    /// What any record says of a call; most say nothing.
    pub fn note(&mut self, record: &Record) {
        let (Some(key), Some(digest)) = (text(record, KEY), text(record, DIGEST)) else {
            return;
        };
        self.forget(record.at.saturating_sub(REMEMBERED));
        let known = self.get(key).cloned();
        let answered = record.kind == Kind::RequestAnswered;
        let answer = object_of(record).filter(|_| answered).map(|(id, _)| id);
        if let Some(known) = known.as_deref() {
            self.remove(known);
        }
        if answered && answer.is_none() {
            return;
        }
        self.put(match known.as_deref().filter(|_| answered) {
            Some(known) => RequestRow {
                answer,
                ..known.clone()
            },
            None => RequestRow {
                key: key.into(),
                digest: digest.into(),
                seq: record.seq,
                at: record.at,
                answer,
                wrote: wrote(record).into(),
            },
        });
    }

    fn put(&mut self, row: RequestRow) {
        self.by_age.insert((row.at, row.seq), row.key.clone());
        self.by_key.insert(row.key.clone(), Arc::new(row));
    }

    fn remove(&mut self, row: &RequestRow) {
        self.by_age.remove(&(row.at, row.seq));
        self.by_key.remove(&row.key);
    }

    fn forget(&mut self, before: i64) {
        let old = self.by_age.back_from(|(at, _)| *at < before);
        let old: Vec<Arc<str>> = old.map(|(_, key)| key.clone()).collect();
        for key in old {
            if let Some(row) = self.get(&key).cloned() {
                self.remove(&row);
            }
        }
    }
}

fn wrote(record: &Record) -> String {
    let id = |field| text(record, field).unwrap_or_default();
    let path = record.path.as_deref().unwrap_or_default();
    match (record.kind, record.version) {
        (Kind::PageVersion, Some(version)) => format!("{path} got version v{version}"),
        (Kind::PageMoved, _) => format!("{path} is where the page was moved"),
        (Kind::PageDeleted, _) => format!("{path} was deleted"),
        (Kind::EventCaptured, _) => format!("event {} was captured", id("event_id")),
        (Kind::EventAssigned, _) => format!("event {} was assigned", id("event_id")),
        (Kind::MessageAppended, _) => format!("message {} was appended", id("msg_id")),
        (kind, _) => format!("{kind} was recorded"),
    }
}
