//! What is sent to clients.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use escurel_core::Refusal;
use serde_json::{Map, Value, json};

/// A version on the wire.
pub(super) fn version(number: u64) -> String {
    escurel_tools::wire::version(number)
}

pub(super) fn encode(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    STANDARD.decode(text.trim()).ok()
}

pub(super) fn error(code: &str, message: &str) -> Value {
    json!({ "type": "error", "code": code, "message": message })
}

/// Where in a session something was refused.
pub(super) fn refused(session: &str, refusal: &Refusal) -> Value {
    let message = format!("{} {}", refusal.message, refusal.next_step());
    let mut frame = error(refusal.code.name(), &message);
    frame["session"] = json!(session);
    frame["retryable"] = json!(refusal.retryable());
    frame
}

pub(super) fn resync(session: &str, reason: &str, skipped: u64, message: &str) -> Value {
    json!({
        "type": "resync_required",
        "session": session,
        "reason": reason,
        "skipped": skipped,
        "message": message,
    })
}

pub(super) fn presence(session: &str, fields: &Map<String, Value>) -> Value {
    let mut frame = fields.clone();
    frame.insert("type".into(), "presence".into());
    frame.insert("session".into(), session.into());
    Value::Object(frame)
}
