//! Reads one JSON-RPC message: what it is, and what it lacks.
//!
//! Refuses batches, null ids and shapes that JSON-RPC does not know. Invariant:
//! an id that could be read goes back as the same JSON value.

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};

use super::reply::RpcError;

/// A well-formed message.
#[derive(Debug)]
pub enum Message {
    Request {
        /// JSON text.
        id: String,
        method: String,
        params: Map<String, Value>,
    },
    /// Nobody waits for an answer.
    Notification,
}

/// A message that is not one; `id` is there if it could be read.
#[derive(Debug)]
pub struct Malformed {
    pub id: Option<String>,
    /// Boxed: the good case should not carry its size around.
    pub error: Box<RpcError>,
}

#[derive(Deserialize)]
struct Raw {
    jsonrpc: Option<Value>,
    #[serde(default, deserialize_with = "present")]
    id: Option<Value>,
    method: Option<Value>,
    params: Option<Value>,
}

/// Keeps `null` apart from an absent key.
fn present<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(from).map(Some)
}

pub fn parse(body: &[u8]) -> Result<Message, Malformed> {
    // serde accepts an array for a struct, so arrays are told apart before.
    if body.iter().find(|b| !b.is_ascii_whitespace()) == Some(&b'[') {
        return Err(invalid(
            None,
            "Batches are not supported: send one message per request.",
        ));
    }
    let raw: Raw = serde_json::from_slice(body).map_err(|e| unreadable(&e))?;
    let id = match raw.id {
        Some(id) => Some(id_text(&id).map_err(|message| invalid(None, message))?),
        None => None,
    };
    if raw.jsonrpc.as_ref().and_then(Value::as_str) != Some("2.0") {
        return Err(invalid(id, "The message lacks \"jsonrpc\": \"2.0\"."));
    }
    let Some(Value::String(method)) = raw.method else {
        return Err(invalid(id, "The message lacks a method name."));
    };
    planted(&method);
    let params = match raw.params {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(params)) => params,
        Some(_) => return Err(invalid(id, "params must be an object.")),
    };
    Ok(match id {
        Some(id) => Message::Request { id, method, params },
        None => Message::Notification,
    })
}

#[cfg(feature = "planted-panic")]
fn planted(method: &str) {
    escurel_md::planted::check(method, *b"mc!");
}

#[cfg(not(feature = "planted-panic"))]
fn planted(_: &str) {}

/// MCP ids are strings or integers.
fn id_text(id: &Value) -> Result<String, &'static str> {
    match id {
        Value::String(_) => Ok(id.to_string()),
        // Larger numbers would come back rounded.
        Value::Number(number) if number.is_i64() || number.is_u64() => Ok(id.to_string()),
        Value::Null => Err("The id must not be null; leave it out to send a notification."),
        _ => Err("The id must be a string or an integer of at most 64 bits."),
    }
}

fn unreadable(error: &serde_json::Error) -> Malformed {
    match error.classify() {
        serde_json::error::Category::Data => invalid(
            None,
            format!("The message is not a JSON-RPC request: {error}."),
        ),
        _ => {
            let message = format!("The body is not valid JSON: {error}.");
            let data = json!({"code": "parse_error", "retryable": false});
            let error = RpcError::new(-32700, message, data).status(400);
            Malformed {
                id: None,
                error: Box::new(error),
            }
        }
    }
}

fn invalid(id: Option<String>, message: impl Into<String>) -> Malformed {
    let data = json!({"code": "invalid_request", "retryable": false});
    Malformed {
        id,
        error: Box::new(RpcError::new(-32600, message, data).status(400)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(body: &str, expect: Result<Option<&str>, (Option<&str>, i64)>) {
        let got = match parse(body.as_bytes()) {
            Ok(Message::Request { id, .. }) => Ok(Some(id)),
            Ok(Message::Notification) => Ok(None),
            Err(m) => Err((m.id, m.error.code)),
        };
        let expect = expect
            .map(|id| id.map(str::to_owned))
            .map_err(|(id, code)| (id.map(str::to_owned), code));
        assert_eq!(got, expect, "{body}");
    }

    #[test]
    fn ids_are_kept() {
        check(r#"{"jsonrpc":"2.0","id":0,"method":"ping"}"#, Ok(Some("0")));
        check(
            r#"{"jsonrpc":"2.0","id":-7,"method":"ping"}"#,
            Ok(Some("-7")),
        );
        check(
            r#"{"jsonrpc":"2.0","id":"","method":"ping"}"#,
            Ok(Some("\"\"")),
        );
        check(
            r#"{"jsonrpc":"2.0","id":"\u00e9\/","method":"ping"}"#,
            Ok(Some("\"é/\"")),
        );
        check(
            r#"{"jsonrpc":"2.0","id":18446744073709551615,"method":"x"}"#,
            Ok(Some("18446744073709551615")),
        );
        check(
            r#"{"jsonrpc":"2.0","id":123456789012345678901234567890,"method":"x"}"#,
            Err((None, -32600)),
        );
        check(
            r#" {"jsonrpc":"2.0","method":"notifications/x","params":null}"#,
            Ok(None),
        );
    }

    #[test]
    fn broken_messages_are_told_apart() {
        for body in ["", "{", "nope", "{\"jsonrpc\":\"2.0\",\"id\":1,", "\u{1}"] {
            check(body, Err((None, -32700)));
        }
        for body in [
            "[]",
            " [{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]",
            "1",
            "\"x\"",
            "null",
            "true",
        ] {
            check(body, Err((None, -32600)));
        }
        check(
            r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
            Err((None, -32600)),
        );
        check(
            r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#,
            Err((None, -32600)),
        );
        check(
            r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#,
            Err((None, -32600)),
        );
        check(
            r#"{"jsonrpc":"2.0","id":"\ud800","method":"ping"}"#,
            Err((None, -32700)),
        );
        check(
            r#"{"id":"a","method":"ping"}"#,
            Err((Some("\"a\""), -32600)),
        );
        check(
            r#"{"jsonrpc":"1.0","id":3,"method":"ping"}"#,
            Err((Some("3"), -32600)),
        );
        check(r#"{"jsonrpc":"2.0","id":3}"#, Err((Some("3"), -32600)));
        check(
            r#"{"jsonrpc":"2.0","id":3,"result":{}}"#,
            Err((Some("3"), -32600)),
        );
        check(
            r#"{"jsonrpc":"2.0","id":3,"method":5}"#,
            Err((Some("3"), -32600)),
        );
        check(
            r#"{"jsonrpc":"2.0","id":3,"method":"m","params":[1]}"#,
            Err((Some("3"), -32600)),
        );
        check(
            r#"{"jsonrpc":"2.0","id":3,"method":"m","params":"x"}"#,
            Err((Some("3"), -32600)),
        );
    }

    #[test]
    fn deep_nesting_and_foreign_bytes_are_parse_errors() {
        let deep = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{{"a":{}1{}}}}}"#,
            "[".repeat(5000),
            "]".repeat(5000)
        );
        check(&deep, Err((None, -32700)));
        assert!(parse(b"{\"jsonrpc\":\"2.0\",\"id\":\"\xff\",\"method\":\"m\"}").is_err());
    }
}
