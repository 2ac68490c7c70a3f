//! `tools/call`: from what the tool returned to what the model reads.

use escurel_core::Refusal;
use escurel_tools::{DispatchError, refusal_json};
use serde::Serialize;
use serde_json::{Value, json};

use super::reply::{Answer, RpcError};
use super::{Context, fixtures};

pub fn call(cx: Context<'_>, name: &str, arguments: Value) -> Result<Answer, RpcError> {
    if cx.service.fixtures
        && let Some(answer) = fixtures::call(name)
    {
        return Ok(answer);
    }
    match cx.service.call(cx.caller, name, arguments) {
        Ok(answer) => Ok(success(&answer)),
        Err(DispatchError::Refused(refusal)) => Ok(refused(&refusal)),
        Err(error) => Err(rpc(&error)),
    }
}

/// The same facts twice, because clients read either: as data and as text.
fn success(json: &str) -> Answer {
    Answer::default()
        // Once with its quotes escaped, once as it is.
        .reserve(json.len() * 5 / 2 + 128)
        .with(
            "content",
            &[Text {
                kind: "text",
                text: json,
            }],
        )
        .with_json("structuredContent", json)
}

#[derive(Serialize)]
struct Text<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    text: &'a str,
}

/// No structured content: the output schema describes successes only.
fn refused(refusal: &Refusal) -> Answer {
    Answer::default()
        .with(
            "content",
            &[json!({"type": "text", "text": refusal.to_string()})],
        )
        .with("isError", &true)
        .with_meta("escurel/error", refusal_json(refusal))
}

/// The errors for which the contract prints a number.
fn rpc(error: &DispatchError) -> RpcError {
    RpcError::new(
        error.rpc_code().unwrap_or(-32603),
        error.to_string(),
        error.data(),
    )
}
