//! What the journal knows besides pages: rows of ids and numbers in memory.
//!
//! Texts stay in the object store. Invariant: a table is a function of the
//! journal's records up to its sequence number, in their order, and of nothing
//! else; so it can be thrown away at any time.

mod chat;
mod events;
mod persist;
mod requests;
mod sorted;

use std::collections::{BTreeMap, BTreeSet};

use escurel_store::{Kind, Record};
use serde_json::Value;

use crate::notices::Captured;

pub(crate) use chat::{Chat, MessageRow};
pub(crate) use events::{EventRow, Events};
pub(crate) use persist::{file, load};
pub(crate) use requests::{DIGEST, KEY, REMEMBERED, RequestRow, Requests};
pub(crate) use sorted::SortedMap;

/// All tables at one moment; a clone shares what later records leave alone.
#[derive(Clone, Default)]
pub(crate) struct Tables {
    seq: u64,
    pub events: Events,
    pub chat: Chat,
    pub requests: Requests,
}

impl Tables {
    /// Everything up to here is contained.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// What it holds, by what it is about.
    fn told(&self) -> BTreeMap<String, String> {
        let events = self.events.rows();
        let events = events.map(|row| (format!("event {}", row.event_id), format!("{row:?}")));
        let messages = self.chat.rows();
        let messages = messages.map(|row| {
            let item = format!("message {} of {}", row.msg_id, row.chat_group_id);
            (item, format!("{row:?}"))
        });
        let requests = self.requests.rows();
        let requests = requests.map(|row| (format!("request {}", row.key), format!("{row:?}")));
        events.chain(messages).chain(requests).collect()
    }

    /// What another one does not hold as this one does.
    pub fn differences(&self, other: &Tables) -> Vec<String> {
        let (ours, theirs) = (self.told(), other.told());
        let items: BTreeSet<&String> = ours.keys().chain(theirs.keys()).collect();
        let differ = |item: &&&String| ours.get(**item) != theirs.get(**item);
        items
            .iter()
            .filter(differ)
            .map(|item| (*item).clone())
            .collect()
    }

    /// Takes a record in, once. What it says for the first time is answered.
    pub fn apply(&mut self, record: &Record) -> Option<Captured> {
        if record.seq <= self.seq {
            return None;
        }
        self.seq = record.seq;
        self.requests.note(record);
        match record.kind {
            Kind::EventCaptured => {
                let first = self.events.capture(record);
                return Captured::of(record).filter(|_| first);
            }
            Kind::EventAssigned => self.events.assign(record),
            Kind::MessageAppended => self.chat.append(record),
            _ => {}
        }
        None
    }
}

/// A text among the fields of the kind.
pub(crate) fn text<'a>(record: &'a Record, field: &str) -> Option<&'a str> {
    record.note.get(field).and_then(Value::as_str)
}

fn object_of(record: &Record) -> Option<([u8; 32], u64)> {
    let content = record.content?;
    Some((content.object.0, content.bytes))
}
