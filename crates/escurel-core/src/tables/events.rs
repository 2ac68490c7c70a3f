//! Which events there are, who captured them and whose they are.

use std::sync::Arc;

use escurel_store::{ObjectId, Record, Uid};
use serde::{Deserialize, Serialize};

use super::{SortedMap, object_of, text};

/// An event without its texts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EventRow {
    pub event_id: Arc<str>,
    /// Of the record that captured it.
    pub seq: u64,
    /// When it happened, in UTC microseconds.
    pub at: i64,
    pub captured_by: Arc<str>,
    /// The page that it may belong to or, once processed, belongs to.
    pub instance: Option<Uid>,
    pub processed: bool,
    object: [u8; 32],
    /// Of its texts.
    pub bytes: u64,
}

impl EventRow {
    fn of(record: &Record) -> Option<EventRow> {
        let (object, bytes) = object_of(record)?;
        Some(EventRow {
            event_id: text(record, "event_id")?.into(),
            seq: record.seq,
            at: record.from.unwrap_or(record.at),
            captured_by: record.actor.as_str().into(),
            instance: instance(record),
            processed: false,
            object,
            bytes,
        })
    }

    /// The same event, processed.
    pub fn assigned_to(&self, instance: Option<Uid>) -> EventRow {
        EventRow {
            instance,
            processed: true,
            ..self.clone()
        }
    }

    pub fn object(&self) -> ObjectId {
        ObjectId(self.object)
    }
}

fn instance(record: &Record) -> Option<Uid> {
    text(record, "instance")?.parse().ok()
}

type Row = Arc<EventRow>;

#[derive(Clone, Default)]
pub(crate) struct Events {
    by_id: SortedMap<Arc<str>, Row>,
    /// Unprocessed ones by time, then in the order of their capture.
    inbox: SortedMap<(i64, u64), Row>,
    /// The same in the order of their capture.
    waiting: SortedMap<u64, Row>,
    /// Processed ones, by instance and time.
    history: SortedMap<(Uid, i64, u64), Row>,
}

impl Events {
    pub fn of(rows: Vec<EventRow>) -> Events {
        let mut events = Events::default();
        rows.into_iter().for_each(|row| events.put(Arc::new(row)));
        events
    }

    /// By id.
    pub fn rows(&self) -> impl Iterator<Item = &EventRow> {
        self.by_id.values().map(|row| &**row)
    }

    /// The first record of an id wins. True: this was it.
    pub fn capture(&mut self, record: &Record) -> bool {
        match EventRow::of(record).filter(|row| self.get(&row.event_id).is_none()) {
            Some(row) => {
                self.put(Arc::new(row));
                true
            }
            None => false,
        }
    }

    /// The first assignment wins.
    pub fn assign(&mut self, record: &Record) {
        let row = text(record, "event_id").and_then(|id| self.get(id));
        let Some(row) = row.filter(|row| !row.processed).cloned() else {
            return;
        };
        self.inbox.remove(&(row.at, row.seq));
        self.waiting.remove(&row.seq);
        self.put(Arc::new(row.assigned_to(instance(record))));
    }

    fn put(&mut self, row: Row) {
        self.by_id.insert(row.event_id.clone(), row.clone());
        match row.instance {
            Some(uid) if row.processed => self.history.insert((uid, row.at, row.seq), row),
            _ => {
                self.inbox.insert((row.at, row.seq), row.clone());
                self.waiting.insert(row.seq, row);
            }
        }
    }

    pub fn get(&self, event_id: &str) -> Option<&Row> {
        self.by_id.get(|known| (**known).cmp(event_id))
    }

    /// Unprocessed ones before a place, newest first.
    pub fn inbox(&self, before: Option<(i64, u64)>) -> impl Iterator<Item = &Row> {
        let rows = self
            .inbox
            .back_from(move |place| before.is_none_or(|before| *place < before));
        rows.map(|(_, row)| row)
    }

    /// Those of an instance after a place, oldest first.
    pub fn history(&self, uid: Uid, after: Option<(i64, u64)>) -> impl Iterator<Item = &Row> {
        let passed = move |key: &(Uid, i64, u64)| match after {
            Some((at, seq)) => *key <= (uid, at, seq),
            None => key.0 < uid,
        };
        let rows = self.history.from(passed);
        rows.take_while(move |(key, _)| key.0 == uid)
            .map(|(_, row)| row)
    }

    /// Unprocessed ones that were captured after a record, newest first.
    pub fn waiting_after(&self, seq: u64) -> impl Iterator<Item = &Row> {
        let rows = self.waiting.back_from(|_| true);
        rows.take_while(move |(key, _)| **key > seq)
            .map(|(_, row)| row)
    }

    /// Unprocessed ones whose id sorts behind one, greatest first.
    pub fn waiting_behind(&self, event_id: &str) -> impl Iterator<Item = &Row> {
        let rows = self.by_id.back_from(|_| true);
        let behind = rows.take_while(move |(id, _)| &***id > event_id);
        behind.map(|(_, row)| row).filter(|row| !row.processed)
    }
}
