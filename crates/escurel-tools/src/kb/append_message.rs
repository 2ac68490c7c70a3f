use escurel_core::Refusal;
use escurel_core::api as core;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::spec::{Cli, Effect, Execution, Quota, Run, Scope, Spec};
use crate::table::Table;
use crate::tool::{Call, Tool};

/// Appends a message to a conversation.
///
/// The author is who calls. Calling again with the same `msg_id` makes no second message; the first
/// one is answered.
#[derive(Deserialize, JsonSchema)]
pub struct AppendMessage {
    /// The conversation; at most 128 characters. It begins with its first message.
    chat_group_id: String,
    /// The message's id within the conversation. A new one, which sorts by time, when left out.
    msg_id: Option<String>,
    /// Whose turn it is, such as user, assistant or tool.
    #[schemars(extend("default" = "user"))]
    role: Option<String>,
    /// The text, at most 1 MiB.
    content: String,
    /// When it was said, RFC 3339; a date means its first moment. Now when left out.
    at: Option<String>,
    /// Accepted; messages are not embedded, and the answer says so.
    #[expect(dead_code, reason = "the answer says that nothing was embedded")]
    embed: Option<bool>,
    /// More about it.
    metadata: Option<Map<String, Value>>,
}

/// A message.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Message {
    /// The conversation.
    chat_group_id: String,
    /// The message's id within it.
    msg_id: String,
    /// When it was said, RFC 3339 in UTC.
    at: String,
    /// Who appended it, as verified.
    author: String,
    /// Whose turn it was; null when the message was erased.
    role: Option<String>,
    /// The text; null when it was erased.
    content: Option<String>,
    /// More about it.
    metadata: Map<String, Value>,
    /// Always false: messages are not found by meaning.
    embedded: bool,
}

impl From<core::Message> for Message {
    fn from(message: core::Message) -> Message {
        Message {
            chat_group_id: message.chat_group_id,
            msg_id: message.msg_id,
            at: message.at,
            author: message.author,
            role: message.role,
            content: message.content,
            metadata: message.metadata,
            embedded: false,
        }
    }
}

impl Tool for AppendMessage {
    const SPEC: Spec = Spec {
        name: "append_message",
        title: "Append a message to a conversation",
        aliases: &[],
        scope: Scope::Agent,
        execution: Execution::Orchestration,
        effect: Effect::Write,
        quota: Quota::Write,
        run: Run::Blocking,
        argument_aliases: &[],
        numbered: &[],
        examples: &[(
            "an agent's turn",
            r#"{"chat_group_id": "acme-renewal", "role": "assistant", "content": "They will renew fewer gauges."}"#,
        )],
        cli: Cli {
            positional: &["chat_group_id", "content"],
            from_file: &[],
            table,
        },
    };
    type Output = Message;

    fn call(self, cx: &Call<'_>) -> Result<Message, Refusal> {
        let given = core::NewMessage {
            chat_group_id: self.chat_group_id,
            msg_id: self.msg_id,
            role: self.role,
            content: self.content,
            at: self.at,
            metadata: self.metadata,
        };
        Ok(cx.kb.append_message(cx.caller, &given)?.into())
    }
}

fn table(answer: &Value) -> Table {
    messages_table(&serde_json::json!({ "messages": [answer] }))
}

/// Messages for people.
pub(super) fn messages_table(answer: &Value) -> Table {
    let columns = [
        ("At", "/at"),
        ("Author", "/author"),
        ("Role", "/role"),
        ("Message", "/content"),
    ];
    let table = Table::of(answer, "/messages", &columns).counted("message", "messages");
    match answer["next_cursor"].as_str() {
        Some(cursor) => table.note(format!("there are more: --cursor {cursor}")),
        None => table,
    }
}
