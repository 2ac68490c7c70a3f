//! One live page as the directory holds it.

use std::sync::Arc;

use escurel_store::{ObjectId, Stat, Uid};

use crate::{Facts, PageNo};

/// A live page: where it is, which version, and what its text says.
#[derive(Clone, Debug)]
pub struct Entry {
    pub no: PageNo,
    pub uid: Uid,
    pub path: Arc<str>,
    pub version: u64,
    /// Journal sequence number of the live version.
    pub seq: u64,
    /// Start of validity of the live version, in UTC microseconds.
    pub from: i64,
    pub written_at: i64,
    pub author: Arc<str>,
    pub stat: Option<Stat>,
    /// Where the journal keeps the live version's text.
    pub object: ObjectId,
    /// rapidhash of the file's bytes.
    pub digest: u64,
    pub bytes: u32,
    /// The file is gone but its deletion is held.
    pub missing: bool,
    pub facts: Arc<Facts>,
}

/// An [`Entry`] before the directory gave it its number.
#[derive(Clone, Debug)]
pub struct EntryDraft {
    pub uid: Uid,
    pub path: Arc<str>,
    pub version: u64,
    pub seq: u64,
    pub from: i64,
    pub written_at: i64,
    pub author: Arc<str>,
    pub stat: Option<Stat>,
    pub object: ObjectId,
    pub digest: u64,
    pub bytes: u32,
    pub missing: bool,
    pub facts: Arc<Facts>,
}

impl EntryDraft {
    pub(crate) fn numbered(self, no: PageNo) -> Entry {
        let EntryDraft {
            uid,
            path,
            version,
            seq,
            from,
            written_at,
            author,
            stat,
            object,
            digest,
            bytes,
            missing,
            facts,
        } = self;
        let author = crate::intern::intern(&author);
        Entry {
            no,
            uid,
            path,
            version,
            seq,
            from,
            written_at,
            author,
            stat,
            object,
            digest,
            bytes,
            missing,
            facts,
        }
    }
}

impl From<Entry> for EntryDraft {
    fn from(e: Entry) -> EntryDraft {
        let Entry {
            no: _,
            uid,
            path,
            version,
            seq,
            from,
            written_at,
            author,
            stat,
            object,
            digest,
            bytes,
            missing,
            facts,
        } = e;
        EntryDraft {
            uid,
            path,
            version,
            seq,
            from,
            written_at,
            author,
            stat,
            object,
            digest,
            bytes,
            missing,
            facts,
        }
    }
}
