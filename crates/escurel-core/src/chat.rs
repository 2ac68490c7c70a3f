//! Conversations: messages appended to a group and read in the order of time.
//!
//! Refuses to change or embed a message. Invariant: the first message of an id
//! stands, and its author is who was verified when it came.

use std::sync::Arc;

use escurel_access::Caller;
use escurel_md::When;
use escurel_store::{Draft, Kind};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::Result;
use crate::api::{Message, MessagePage, MessagesRequest, NewMessage};
use crate::given::{
    FULL_PAGE, bad, check_id, check_json, check_limit, check_text, content, moment, note, place,
};
use crate::kb::Core;
use crate::lane::Work;
use crate::read::cursor;
use crate::tables::MessageRow;

/// What a message is when nobody says so.
const ROLE: &str = "user";
/// Characters of a role.
const MOST_ROLE: usize = 64;

/// What the object store keeps of a message.
#[derive(Clone, Serialize, Deserialize)]
struct Texts {
    role: String,
    content: String,
    metadata: Map<String, Value>,
    at: String,
}

impl Core {
    /// Appends a message. An id that is there already answers the message that has it.
    ///
    /// # Errors
    /// `invalid_argument`, `time_invalid`, `indexing`, `read_only`, `disk_full`, `journal_broken`.
    pub fn append_message(&self, caller: &Caller, given: &NewMessage) -> Result<Message> {
        check(given)?;
        let at = match &given.at {
            Some(at) => moment(at, "at")?.first,
            None => self.now(),
        };
        self.demand_tables()?;
        self.guard_tables()?;
        let (group, id) = (&given.chat_group_id, given.msg_id.clone());
        let id = id.unwrap_or_else(|| self.new_uid().to_string());
        let _one = self.id_locks.lock(&format!("{group}\n{id}"));
        if let Some(row) = self.view.load().tables.chat.get(group, &id).cloned() {
            return self.message(&row);
        }
        let texts = Texts {
            role: given.role.clone().unwrap_or_else(|| ROLE.to_owned()),
            content: given.content.clone(),
            metadata: given.metadata.clone().unwrap_or_default(),
            at: When::to_rfc3339(at),
        };
        let draft = Draft {
            content: Some(content(&texts)?),
            from: Some(at),
            note: note([("chat_group_id", group.clone()), ("msg_id", id.clone())]),
            ..Draft::new(Kind::MessageAppended, &caller.subject)
        };
        self.append(vec![draft])?.publish(|_, _| Work::default())?;
        Ok(told(group, &id, &caller.subject, Some(texts), at))
    }

    /// The messages of a group by time; of one time, in the order in which they came.
    ///
    /// # Errors
    /// `invalid_argument`, `time_invalid`, `cursor_invalid`, `indexing`.
    pub fn list_messages(&self, _: &Caller, request: &MessagesRequest) -> Result<MessagePage> {
        check_limit(request.limit)?;
        let group = request.chat_group_id.as_str();
        check_id("chat_group_id", Some(group))?;
        let bound = |text: &Option<String>, name| {
            let when = text.as_deref().map(|text| moment(text, name));
            when.transpose()
        };
        let since = bound(&request.since, "since")?.map_or(i64::MIN, |when| when.first);
        let until = bound(&request.until, "until")?.map_or(i64::MAX, |when| when.last);
        let listing = format!(
            "messages {group:?} {since} {until} {}",
            request.newest_first
        );
        let from = place(&listing, request.cursor.as_deref())?;
        self.demand_tables()?;
        let view = self.view.load();
        let chat = &view.tables.chat;
        let fits = |row: &&Arc<MessageRow>| (since..=until).contains(&row.at);
        match request.newest_first {
            true => {
                let rows = chat.before(group, from.unwrap_or((until, u64::MAX)));
                self.messages(&listing, rows.take_while(fits), request.limit)
            }
            false => {
                let rows = chat.after(group, from.unwrap_or((since, 0)));
                self.messages(&listing, rows.take_while(fits), request.limit)
            }
        }
    }

    fn messages<'r>(
        &self,
        listing: &str,
        rows: impl Iterator<Item = &'r Arc<MessageRow>>,
        limit: usize,
    ) -> Result<MessagePage> {
        let mut page = MessagePage {
            messages: Vec::new(),
            next_cursor: None,
        };
        let (mut bytes, mut last) = (0, None);
        for row in rows {
            if page.messages.len() == limit || bytes >= FULL_PAGE {
                page.next_cursor = last.map(|last: String| cursor::close(listing, &last));
                break;
            }
            bytes += row.bytes;
            page.messages.push(self.message(row)?);
            last = Some(format!("{}|{}", row.at, row.seq));
        }
        Ok(page)
    }

    fn message(&self, row: &MessageRow) -> Result<Message> {
        let texts = self.json_object(&row.object())?;
        let (group, id) = (&row.chat_group_id, &row.msg_id);
        Ok(told(group, id, &row.author, texts, row.at))
    }
}

/// Without texts: they were erased.
fn told(group: &str, id: &str, author: &str, texts: Option<Texts>, at: i64) -> Message {
    let (role, content, metadata) = match texts {
        Some(texts) => (Some(texts.role), Some(texts.content), texts.metadata),
        None => (None, None, Map::new()),
    };
    Message {
        chat_group_id: group.to_owned(),
        msg_id: id.to_owned(),
        at: When::to_rfc3339(at),
        author: author.to_owned(),
        role,
        content,
        metadata,
    }
}

fn check(given: &NewMessage) -> Result<()> {
    check_id("chat_group_id", Some(&given.chat_group_id))?;
    check_id("msg_id", given.msg_id.as_deref())?;
    let short = |role: &String| !role.trim().is_empty() && role.chars().count() <= MOST_ROLE;
    if !given.role.as_ref().is_none_or(short) {
        return Err(bad("role", format!("role: 1 to {MOST_ROLE} characters.")));
    }
    check_text("content", Some(&given.content))?;
    check_json("metadata", given.metadata.as_ref())
}
