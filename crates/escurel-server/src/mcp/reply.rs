//! The shapes that leave: results and errors, stamped for the era that asked.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::era::Era;

/// What one message gets back.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// HTTP status; other transports ignore it.
    pub status: u16,
    /// `None` for messages that get no answer.
    pub body: Option<String>,
}

impl Reply {
    pub fn accepted() -> Reply {
        Reply {
            status: 202,
            body: None,
        }
    }
}

/// A JSON-RPC error.
#[derive(Clone, Debug)]
pub struct RpcError {
    pub code: i64,
    pub message: String,
    pub data: Value,
    /// HTTP status that both eras get.
    status: Option<u16>,
    /// HTTP status for modern clients only: older ones take a 404 for the end of their session.
    modern_status: Option<u16>,
}

impl RpcError {
    pub fn new(code: i64, message: impl Into<String>, data: Value) -> RpcError {
        RpcError {
            code,
            message: message.into(),
            data,
            status: None,
            modern_status: None,
        }
    }

    /// The caller sent what can never work.
    pub fn invalid_params(code: &str, message: impl Into<String>) -> RpcError {
        RpcError::new(-32602, message, json!({"code": code, "retryable": false}))
    }

    pub fn method_not_found(method: &str) -> RpcError {
        let data = json!({"code": "method_not_found", "retryable": false});
        RpcError::new(
            -32601,
            format!("There is no method {}.", short(method)),
            data,
        )
        .modern_status(404)
    }

    pub fn status(mut self, status: u16) -> RpcError {
        self.status = Some(status);
        self
    }

    pub fn modern_status(mut self, status: u16) -> RpcError {
        self.modern_status = Some(status);
        self
    }

    /// The answer to the request with this id; the id is left out when it could not be read.
    pub fn reply(&self, id: Option<&str>, era: Era) -> Reply {
        let modern = if era == Era::Modern {
            self.modern_status
        } else {
            None
        };
        let error = json!({"code": self.code, "message": self.message, "data": self.data});
        let id = id.map(|id| format!("\"id\":{id},")).unwrap_or_default();
        let body = format!("{{\"jsonrpc\":\"2.0\",{id}\"error\":{error}}}");
        Reply {
            status: self.status.or(modern).unwrap_or(200),
            body: Some(body),
        }
    }
}

/// Cuts what a stranger sent to a length fit for a message.
pub fn short(text: &str) -> String {
    const MAX: usize = 120;
    match text.char_indices().nth(MAX) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// Members of a result, in the order they were added.
#[derive(Default)]
pub struct Answer {
    members: Vec<u8>,
    meta: Map<String, Value>,
}

/// How long and by whom a result may be kept.
#[derive(Clone, Copy)]
pub struct Cache {
    pub ttl_ms: u64,
    pub scope: &'static str,
}

impl Answer {
    /// Room for this many more bytes.
    pub fn reserve(mut self, bytes: usize) -> Answer {
        self.members.reserve(bytes);
        self
    }

    pub fn with(mut self, key: &str, value: &(impl Serialize + ?Sized)) -> Answer {
        self.begin(key);
        let end = self.members.len();
        if serde_json::to_writer(&mut self.members, value).is_err() {
            self.members.truncate(end);
            self.members.extend_from_slice(b"null");
        }
        self
    }

    /// `json` must be one JSON value.
    pub fn with_json(mut self, key: &str, json: &str) -> Answer {
        self.begin(key);
        self.members.extend_from_slice(json.as_bytes());
        self
    }

    pub fn with_meta(mut self, key: &str, value: Value) -> Answer {
        self.meta.insert(key.to_owned(), value);
        self
    }

    pub fn cached(self, cache: Cache) -> Answer {
        self.with("ttlMs", &cache.ttl_ms)
            .with("cacheScope", cache.scope)
    }

    /// Adds an optional member; absent facts are left out, never null.
    pub fn maybe(self, key: &str, value: Option<&str>) -> Answer {
        match value {
            Some(value) => self.with(key, value),
            None => self,
        }
    }

    fn begin(&mut self, key: &str) {
        if !self.members.is_empty() {
            self.members.push(b',');
        }
        self.members.push(b'"');
        self.members.extend_from_slice(key.as_bytes());
        self.members.extend_from_slice(b"\":");
    }

    pub fn reply(mut self, id: &str, era: Era) -> Reply {
        if era == Era::Modern {
            self = self
                .with("resultType", "complete")
                .with_meta("io.modelcontextprotocol/serverInfo", server_info());
        }
        if !self.meta.is_empty() {
            let meta = std::mem::take(&mut self.meta);
            self = self.with("_meta", &meta);
        }
        let head = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{");
        let body = [head.as_bytes(), &self.members, b"}}"].concat();
        Reply {
            status: 200,
            // Everything in it was text.
            body: Some(String::from_utf8(body).unwrap_or_default()),
        }
    }
}

pub fn server_info() -> Value {
    json!({"name": "escurel", "title": "Escurel knowledge base", "version": env!("CARGO_PKG_VERSION")})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_stamped_for_modern_clients_only() {
        let answer = || Answer::default().with("a", &1).with_meta("k", json!(2));
        assert_eq!(
            answer().reply("\"x\"", Era::Legacy).body.unwrap(),
            r#"{"jsonrpc":"2.0","id":"x","result":{"a":1,"_meta":{"k":2}}}"#
        );
        let modern: Value =
            serde_json::from_str(&answer().reply("0", Era::Modern).body.unwrap()).unwrap();
        assert_eq!(modern["result"]["resultType"], "complete");
        assert_eq!(
            modern["result"]["_meta"]["io.modelcontextprotocol/serverInfo"]["name"],
            "escurel"
        );
        assert_eq!(modern["result"]["_meta"]["k"], 2);
        assert_eq!(modern["id"], 0);
    }

    #[test]
    fn an_unreadable_id_is_left_out() {
        let reply = RpcError::method_not_found("x").reply(None, Era::Modern);
        assert_eq!(reply.status, 404);
        assert!(!reply.body.unwrap().contains("\"id\""));
        assert_eq!(
            RpcError::method_not_found("x")
                .reply(Some("1"), Era::Legacy)
                .status,
            200
        );
    }
}
