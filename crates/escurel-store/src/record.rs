//! A journal record: its fields, its one JSON line, its hash.
//!
//! Invariant: a line is the canonical form of the whole record, so cutting
//! `entry_hash` out of it gives exactly the bytes that were hashed.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::{Kind, StoreError, Uid, hex};

mod decode;
mod encode;

pub(crate) use decode::{decode, decode_unchecked, hash_is_right, peek_seq};
pub(crate) use encode::encode;

/// Written into every record; readers accept only this.
pub(crate) const SCHEMA_VERSION: &str = "1.0";

/// `prev_hash` of the first record.
pub(crate) const GENESIS: [u8; 32] = [0; 32];

/// Name of a content: SHA-256 over 32 random bytes and the content, so that
/// nobody can test a guess of an erased content against the chain.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId(pub [u8; 32]);

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&hex::encode(&self.0))
    }
}

impl fmt::Debug for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for ObjectId {
    type Err = StoreError;

    fn from_str(text: &str) -> Result<Self, StoreError> {
        hex::decode(text.as_bytes()).map(ObjectId).ok_or_else(|| {
            StoreError::BadRecord("an object name has 64 lowercase hex digits".into())
        })
    }
}

/// Where the bytes of a record are, and how many.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Content {
    pub object: ObjectId,
    pub bytes: u64,
}

/// What happened, once and for ever.
#[derive(Clone, PartialEq, Debug)]
pub struct Record {
    /// `seq_id` on the wire; grows by one without holes, from 1.
    pub seq: u64,
    /// UTC microseconds; RFC 3339 text on the wire.
    pub at: i64,
    pub kind: Kind,
    pub actor: String,
    pub uid: Option<Uid>,
    pub path: Option<String>,
    pub version: Option<u64>,
    pub content: Option<Content>,
    /// Start of validity in UTC microseconds when it is not `at`.
    pub from: Option<i64>,
    /// Fields of the kind, flattened into the record; integers and text only.
    pub note: Map<String, Value>,
    pub prev_hash: [u8; 32],
    pub entry_hash: [u8; 32],
}

/// A record before it has a place in the chain.
#[derive(Clone, Debug)]
pub struct Draft {
    pub kind: Kind,
    pub actor: String,
    pub uid: Option<Uid>,
    pub path: Option<String>,
    pub version: Option<u64>,
    pub content: Option<Arc<[u8]>>,
    pub from: Option<i64>,
    pub note: Map<String, Value>,
    /// `None`: now.
    pub at: Option<i64>,
}

impl Draft {
    pub fn new(kind: Kind, actor: impl Into<String>) -> Draft {
        Draft {
            kind,
            actor: actor.into(),
            uid: None,
            path: None,
            version: None,
            content: None,
            from: None,
            note: Map::new(),
            at: None,
        }
    }

    /// Refuses what could be written but not be understood later.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        for field in self.kind.info().required {
            if !self.has(field) {
                let why = format!("a `{}` record needs `{field}`", self.kind);
                return Err(StoreError::BadRecord(why));
            }
        }
        for (key, value) in &self.note {
            check_note(key, value)?;
        }
        Ok(())
    }

    fn has(&self, field: &str) -> bool {
        match field {
            "uid" => self.uid.is_some(),
            "path" => self.path.is_some(),
            "version" => self.version.is_some(),
            "content" => self.content.is_some(),
            other => self.note.contains_key(other),
        }
    }
}

/// Names that a note cannot use because the record has them.
const OWN_FIELDS: &[&str] = &[
    "actor",
    "at",
    "content",
    "entry_hash",
    "event_sig",
    "from",
    "kind",
    "path",
    "prev_hash",
    "schema_version",
    "seq_id",
    "triggered_by",
    "uid",
    "version",
];

fn check_note(key: &str, value: &Value) -> Result<(), StoreError> {
    if OWN_FIELDS.contains(&key) {
        return Err(StoreError::BadRecord(format!(
            "a note cannot be called `{key}`"
        )));
    }
    match value {
        Value::String(_) => Ok(()),
        Value::Number(number) if number.is_i64() || number.is_u64() => Ok(()),
        _ => Err(StoreError::BadRecord(format!(
            "the note `{key}` is neither text nor an integer"
        ))),
    }
}
