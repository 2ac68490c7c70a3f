//! Every way the system says no, declared once.
//!
//! A [`Refusal`] carries a stable code that clients branch on, a sentence for
//! people and, where it helps, the argument at fault and what was meant
//! instead. Wordings may change; codes are frozen.

use std::fmt;

/// Who can do something about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// The caller: the same call can never succeed.
    Caller,
    /// Nobody: the same call may succeed later.
    Later,
    /// The operator: look at the logs or the disk.
    Operator,
}

macro_rules! codes {
    ($($variant:ident $name:literal $audience:ident $http:literal $meaning:literal $next:literal;)+) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Code { $($variant),+ }

        impl Code {
            pub const ALL: &'static [Code] = &[$(Code::$variant),+];

            /// The stable name on the wire.
            pub fn name(self) -> &'static str { match self { $(Code::$variant => $name),+ } }
            pub fn audience(self) -> Audience { match self { $(Code::$variant => Audience::$audience),+ } }
            /// The status of plain HTTP routes.
            pub fn http_status(self) -> u16 { match self { $(Code::$variant => $http),+ } }
            pub fn meaning(self) -> &'static str { match self { $(Code::$variant => $meaning),+ } }
            /// What the caller should do next.
            pub fn next_step(self) -> &'static str { match self { $(Code::$variant => $next),+ } }
        }
    };
}

codes! {
    InvalidArgument "invalid_argument" Caller 400
        "An argument has the wrong type, is missing or is out of range."
        "Correct the named argument; tools/list has the schema.";
    UnknownArgument "unknown_argument" Caller 400
        "The call has an argument that the tool does not know."
        "Remove it or use the nearest known name.";
    PageIdInvalid "page_id_invalid" Caller 400
        "The page id cannot be a page of this folder."
        "Give a path under the folder, a uid, or [[skill::id]].";
    PageNotFound "page_not_found" Caller 404
        "No page has this id, or you may not see it."
        "Look for it with search or list_instances.";
    Ambiguous "ambiguous" Caller 409
        "The name fits several pages."
        "Use one of the candidates.";
    AnchorNotFound "anchor_not_found" Caller 404
        "The page has no such heading or block."
        "expand the page without an anchor and pick one of its blocks.";
    TextNotFound "text_not_found" Caller 404
        "The page does not contain this text exactly once."
        "expand the page and give a longer piece of its text as it stands.";
    WikilinkMalformed "wikilink_malformed" Caller 400
        "The text is not a wikilink."
        "Write [[skill::id#anchor@version|alias]]; only the id is required.";
    SkillNotFound "skill_not_found" Caller 404
        "No page declares this skill and no page has it."
        "list_skills has the known ones.";
    FilterUnknownKey "filter_unknown_key" Caller 400
        "The filter names a frontmatter key that no page and no skill has."
        "Use the nearest known key.";
    FilterUnknownOperator "filter_unknown_operator" Caller 400
        "The filter uses an unknown operator."
        "Operators are >=, <=, >, <, in, not.";
    FilterTypeMismatch "filter_type_mismatch" Caller 400
        "The filter compares a key with a value of another type."
        "Compare with a value of the key's type.";
    CursorInvalid "cursor_invalid" Caller 400
        "The cursor was not made by this listing."
        "Start again without a cursor.";
    TimeInvalid "time_invalid" Caller 400
        "The time is not RFC 3339."
        "Write for example 2026-04-12T10:00:00Z.";
    NotSupported "not_supported" Caller 400
        "This release does not do that yet."
        "See the message for what it does instead.";
    Forbidden "forbidden" Caller 403
        "You may not do this."
        "Ask an administrator for the right.";
    AdminRequired "admin_required" Caller 403
        "Only an administrator may call this."
        "Use an administrator's credentials.";
    ReadOnly "read_only" Caller 403
        "The folder is served read-only."
        "Serve a writable folder.";
    LayerReadOnly "layer_read_only" Caller 403
        "The page comes from a pack."
        "Write a page of your own layer with the same skill and id instead.";
    BackendReadOnly "backend_read_only" Caller 403
        "The page shows what another system holds."
        "Change it there.";
    FrontmatterUnparsable "frontmatter_unparsable" Caller 409
        "The page's header cannot be edited as it is."
        "Correct the header first, for example with update_page.";
    NotUtf8 "not_utf8" Caller 409
        "The file is not UTF-8, so it is never rewritten."
        "Convert the file to UTF-8 first.";
    EventNotFound "event_not_found" Caller 404
        "No event has this id, or you may not see it."
        "list_inbox has those that wait.";
    AlreadyAssigned "already_assigned" Caller 409
        "Somebody else has processed the event."
        "Take the next one of list_inbox.";
    IdempotencyConflict "idempotency_conflict" Caller 409
        "The idempotency key was used for a call with other arguments."
        "Use a new key for a new call.";
    RequestInterrupted "request_interrupted" Caller 409
        "What the call wrote was recorded, but its answer was lost in a crash or a failure."
        "Do not repeat it; read what the message names.";
    DuplicateId "duplicate_id" Caller 409
        "Several files claim the same skill and id."
        "Give all but one of them another id.";
    IdentityChanged "identity_changed" Caller 409
        "The content would turn the page into another one."
        "Keep type, skill and id as they are.";
    Conflict "conflict" Caller 409
        "The page changed since the version this write was based on."
        "Read the page again and repeat the change on its text.";
    UnknownSession "unknown_session" Caller 404
        "No such editing session is open."
        "Open one with open_session.";
    SessionShared "session_shared" Caller 409
        "Dropping the session would drop what others typed."
        "Close it with commit true, or undo your own changes first.";
    SessionCapReached "session_cap_reached" Later 503
        "Too many editing sessions are open."
        "Repeat when some have been closed.";
    LineageChanged "lineage_changed" Caller 409
        "The page's live history is another one than the client's."
        "Load the page again; offer what was typed since as a change of its text.";
    OpInvalid "op_invalid" Caller 400
        "The bytes are not a change of the page's text."
        "Send a Loro update of the text container `body`, in base64.";
    OpIncomplete "op_incomplete" Caller 409
        "The change builds on others that were never sent."
        "Send everything since the version vector that the server has.";
    MissingOnDisk "missing_on_disk" Caller 409
        "The page's file vanished together with many others; writing waits until that is settled."
        "Bring the files back, or run escurel confirm-deletions.";
    ContentErased "content_erased" Caller 410
        "This content was erased."
        "Read another version.";
    FolderNotServed "folder_not_served" Caller 404
        "The folder has not been served yet, so there is nothing to look after."
        "Name another folder, or serve this one first: escurel serve FOLDER.";
    SettingInvalid "setting_invalid" Caller 400
        "A setting cannot work, so nothing is served."
        "Correct the named setting; docs/reference/config.md has all.";
    Indexing "indexing" Later 503
        "The folder is still being indexed."
        "Repeat in a moment; /readyz tells when it is done.";
    IndexBehind "index_behind" Later 503
        "The query index has not caught up with the newest writes in time."
        "Repeat in a moment.";
    Cancelled "cancelled" Later 503
        "The server is shutting down."
        "Repeat the call.";
    DiskFull "disk_full" Operator 507
        "The disk is full; nothing was written."
        "Free some space and repeat.";
    JournalBroken "journal_broken" Operator 503
        "The journal has a broken record, so writes are refused."
        "Run escurel verify to see where, stop the server, and run escurel journal repair to go on with what can be read.";
    StoreLocked "store_locked" Operator 409
        "Another process owns this folder."
        "Use that one, or stop it first.";
    Io "io_error" Operator 500
        "The disk answered with an error."
        "Check permissions and the device.";
    IndexDamaged "index_damaged" Operator 500
        "A derived index file is damaged."
        "It is rebuilt by itself; escurel rebuild does it at once.";
    Internal "internal" Operator 500
        "Something failed that should not."
        "Look at the server's log and report it.";
}

/// A coded no.
#[derive(Clone, Debug)]
pub struct Refusal {
    pub code: Code,
    /// One sentence that names the thing at fault.
    pub message: String,
    /// The argument or frontmatter key at fault, e.g. `filter.statu`.
    pub location: Option<String>,
    /// What could have been meant: nearest keys, candidate pages.
    pub candidates: Vec<String>,
}

pub type Result<T, E = Refusal> = std::result::Result<T, E>;

impl Refusal {
    pub fn new(code: Code, message: impl Into<String>) -> Refusal {
        Refusal {
            code,
            message: message.into(),
            location: None,
            candidates: Vec::new(),
        }
    }

    pub fn at(mut self, location: impl Into<String>) -> Refusal {
        self.location = Some(location.into());
        self
    }

    pub fn candidates(mut self, candidates: impl IntoIterator<Item = String>) -> Refusal {
        self.candidates = candidates.into_iter().collect();
        self
    }

    /// Can the very same call succeed later?
    pub fn retryable(&self) -> bool {
        self.code.audience() == Audience::Later
    }

    /// What to do next: the candidates if there are any, else the code's advice.
    pub fn next_step(&self) -> String {
        match self.candidates.as_slice() {
            [] => self.code.next_step().to_owned(),
            [one] => format!("Did you mean {one}?"),
            many => format!("Candidates: {}.", many.join(", ")),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {} {}",
            self.code.name(),
            self.message,
            self.next_step()
        )
    }
}

impl std::error::Error for Refusal {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_and_explained() {
        let mut names: Vec<_> = Code::ALL.iter().map(|c| c.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Code::ALL.len());
        for code in Code::ALL {
            assert!(
                code.meaning().ends_with('.') && code.next_step().ends_with('.'),
                "{code:?}"
            );
            assert!(
                code.name()
                    .bytes()
                    .all(|b| b.is_ascii_lowercase() || b == b'_' || b.is_ascii_digit())
            );
        }
    }
}
