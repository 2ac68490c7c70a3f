//! The table of record kinds. Names are frozen: they stand in journals.

use std::fmt;
use std::str::FromStr;

use crate::StoreError;

/// One line of the table, for documentation and checks.
#[derive(Debug, Clone, Copy)]
pub struct KindInfo {
    pub kind: Kind,
    pub name: &'static str,
    pub meaning: &'static str,
    /// Fields that a record of the kind must carry, those of `note` included.
    pub required: &'static [&'static str],
}

macro_rules! kinds {
    ($($variant:ident, $name:literal, $meaning:literal, [$($field:literal),*];)*) => {
        /// What a record says happened.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Kind { $(#[doc = $meaning] $variant,)* }

        /// Every kind with its meaning and required fields.
        pub const KINDS: &[KindInfo] = &[
            $(KindInfo { kind: Kind::$variant, name: $name, meaning: $meaning, required: &[$($field),*] },)*
        ];
    };
}

kinds! {
    PageVersion, "page_version", "a version of a page: adopted, written, restored, or edited outside", ["uid", "path", "version", "content", "origin"];
    PageMoved, "page_moved", "the page has a new path", ["uid", "path", "from_path"];
    PageDeleted, "page_deleted", "the page was deleted", ["uid", "path"];
    PageMissing, "page_missing", "the page vanished from disk and its deletion is held", ["uid", "path"];
    PageFound, "page_found", "a missing page is on disk again", ["uid", "path"];
    DeletionsConfirmed, "deletions_confirmed", "held deletions were confirmed by a person", [];
    ContentErased, "content_erased", "contents were removed for good", [];
    EventCaptured, "event_captured", "an event came into the inbox; `instance` is the page that it may belong to", ["content", "event_id"];
    EventAssigned, "event_assigned", "the event was processed and belongs to the page", ["event_id", "instance"];
    MessageAppended, "message_appended", "a message came into a conversation", ["content", "chat_group_id", "msg_id"];
    RequestAnswered, "request_answered", "a call with a key was answered; without a content it was refused, and its key is free", ["request_key", "request_digest"];
    ChainRepaired, "chain_repaired", "a broken segment was set aside and a new chain begun", ["set_aside", "first_broken", "lost", "lost_records", "segments"];
}

impl Kind {
    pub fn info(self) -> &'static KindInfo {
        // The table is generated in the order of the variants.
        &KINDS[self as usize]
    }

    pub fn name(self) -> &'static str {
        self.info().name
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Kind {
    type Err = StoreError;

    fn from_str(text: &str) -> Result<Kind, StoreError> {
        KINDS
            .iter()
            .find(|info| info.name == text)
            .map(|info| info.kind)
            .ok_or_else(|| StoreError::BadRecord(format!("`{text}` is not a record kind")))
    }
}
