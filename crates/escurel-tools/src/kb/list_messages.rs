use escurel_core::api as core;
use escurel_core::{Code, Refusal};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::append_message::{Message, messages_table};
use crate::spec::{Cli, Effect, Execution, Numbered, Quota, Run, Scope, Spec};
use crate::tool::{Call, Tool};

const DEFAULT_LIMIT: usize = 50;

/// Lists the messages of a conversation by time.
///
/// `next_cursor` is there exactly when there are more; a short page is not the end.
#[derive(Deserialize, JsonSchema)]
pub struct ListMessages {
    /// The conversation.
    chat_group_id: String,
    /// Not before this instant, RFC 3339; a date means its first moment.
    since: Option<String>,
    /// Not after this instant, RFC 3339; a date means its last moment.
    until: Option<String>,
    /// At most this many messages.
    #[schemars(range(min = 1, max = 500), extend("default" = DEFAULT_LIMIT))]
    limit: Option<usize>,
    /// `next_cursor` of the call before.
    cursor: Option<String>,
    /// `asc`: oldest first. `desc`: newest first.
    #[schemars(extend("default" = "asc"))]
    direction: Option<Direction>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Direction {
    Asc,
    Desc,
}

/// Messages of a conversation.
#[derive(Serialize, JsonSchema)]
pub struct MessageList {
    /// In the order asked for.
    messages: Vec<Message>,
    /// There when there are more: give it as `cursor`.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

impl Tool for ListMessages {
    const SPEC: Spec = Spec {
        name: "list_messages",
        title: "List the messages of a conversation",
        aliases: &[],
        scope: Scope::Agent,
        execution: Execution::Deterministic,
        effect: Effect::Read,
        quota: Quota::Query,
        run: Run::Blocking,
        argument_aliases: &[],
        numbered: &[Numbered {
            code: Code::CursorInvalid,
            at: None,
            number: -32602,
        }],
        examples: &[(
            "the last ten turns",
            r#"{"chat_group_id": "acme-renewal", "direction": "desc", "limit": 10}"#,
        )],
        cli: Cli {
            positional: &["chat_group_id"],
            from_file: &[],
            table: messages_table,
        },
    };
    type Output = MessageList;

    fn call(self, cx: &Call<'_>) -> Result<MessageList, Refusal> {
        let request = core::MessagesRequest {
            chat_group_id: self.chat_group_id,
            since: self.since,
            until: self.until,
            limit: self.limit.unwrap_or(DEFAULT_LIMIT),
            cursor: self.cursor,
            newest_first: self.direction == Some(Direction::Desc),
        };
        let page = cx.kb.list_messages(cx.caller, &request)?;
        Ok(MessageList {
            messages: page.messages.into_iter().map(Message::from).collect(),
            next_cursor: page.next_cursor,
        })
    }
}
