//! Messages of conversations, in the order of their times.

use std::sync::Arc;

use escurel_store::{ObjectId, Record};
use serde::{Deserialize, Serialize};

use super::{SortedMap, object_of, text};

/// A message without its text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MessageRow {
    pub chat_group_id: Arc<str>,
    pub msg_id: Arc<str>,
    pub seq: u64,
    pub at: i64,
    pub author: Arc<str>,
    object: [u8; 32],
    pub bytes: u64,
}

impl MessageRow {
    fn of(record: &Record) -> Option<MessageRow> {
        let (object, bytes) = object_of(record)?;
        Some(MessageRow {
            chat_group_id: text(record, "chat_group_id")?.into(),
            msg_id: text(record, "msg_id")?.into(),
            seq: record.seq,
            at: record.from.unwrap_or(record.at),
            author: record.actor.as_str().into(),
            object,
            bytes,
        })
    }

    pub fn object(&self) -> ObjectId {
        ObjectId(self.object)
    }
}

type Row = Arc<MessageRow>;

#[derive(Clone, Default)]
pub(crate) struct Chat {
    by_id: SortedMap<(Arc<str>, Arc<str>), Row>,
    timeline: SortedMap<(Arc<str>, i64, u64), Row>,
}

impl Chat {
    pub fn of(rows: Vec<MessageRow>) -> Chat {
        let mut chat = Chat::default();
        rows.into_iter().for_each(|row| chat.put(row));
        chat
    }

    /// By group and id.
    pub fn rows(&self) -> impl Iterator<Item = &MessageRow> {
        self.by_id.values().map(|row| &**row)
    }

    /// The first message of an id wins.
    pub fn append(&mut self, record: &Record) {
        let row = MessageRow::of(record);
        if let Some(row) = row.filter(|row| self.get(&row.chat_group_id, &row.msg_id).is_none()) {
            self.put(row);
        }
    }

    fn put(&mut self, row: MessageRow) {
        let row = Arc::new(row);
        let (group, id) = (row.chat_group_id.clone(), row.msg_id.clone());
        self.timeline
            .insert((group.clone(), row.at, row.seq), row.clone());
        self.by_id.insert((group, id), row);
    }

    pub fn get(&self, group: &str, id: &str) -> Option<&Row> {
        self.by_id
            .get(|(known, message)| (&**known, &**message).cmp(&(group, id)))
    }

    /// Those of a group behind a place, oldest first.
    pub fn after(&self, group: &str, place: (i64, u64)) -> impl Iterator<Item = &Row> {
        let rows = self
            .timeline
            .from(move |(known, at, seq)| (&**known, *at, *seq) <= (group, place.0, place.1));
        let own = rows.take_while(move |((known, _, _), _)| **known == *group);
        own.map(|(_, row)| row)
    }

    /// Those of a group before a place, newest first.
    pub fn before(&self, group: &str, place: (i64, u64)) -> impl Iterator<Item = &Row> {
        let rows = self
            .timeline
            .back_from(move |(known, at, seq)| (&**known, *at, *seq) < (group, place.0, place.1));
        let own = rows.take_while(move |((known, _, _), _)| **known == *group);
        own.map(|(_, row)| row)
    }
}
