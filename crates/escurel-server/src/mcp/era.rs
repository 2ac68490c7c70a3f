//! Which generation of the protocol a message belongs to, and what it then owes.
//!
//! Modern messages carry version and capabilities with every request and repeat
//! themselves in headers; legacy ones open with `initialize`. The era is known
//! before anything is dispatched.

use base64::Engine;
use serde_json::{Map, Value, json};

use super::reply::{RpcError, short};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Era {
    Legacy,
    Modern,
}

/// Versions that need no handshake, newest first.
pub const MODERN: &[&str] = &["2026-07-28"];
/// Versions that open with `initialize`, newest first.
pub const LEGACY: &[&str] = &["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// The request headers that belong to the protocol. Transports without headers have none.
#[derive(Clone, Copy, Debug, Default)]
pub struct Headers<'a> {
    pub version: Option<&'a str>,
    pub method: Option<&'a str>,
    pub name: Option<&'a str>,
}

pub fn of(headers: Option<&Headers<'_>>, method: &str, params: &Map<String, Value>) -> Era {
    let declared = params
        .get("_meta")
        .is_some_and(|meta| meta.get(VERSION).is_some());
    let header = headers
        .and_then(|h| h.version)
        .is_some_and(|v| !LEGACY.contains(&v));
    if declared || header || method == "server/discover" {
        Era::Modern
    } else {
        Era::Legacy
    }
}

/// What a modern request must say about itself, in the order it is checked.
pub fn check(
    headers: Option<&Headers<'_>>,
    method: &str,
    params: &Map<String, Value>,
) -> Result<(), RpcError> {
    let meta = params.get("_meta");
    let Some(version) = meta.and_then(|m| m.get(VERSION)).and_then(Value::as_str) else {
        return Err(lacking(VERSION));
    };
    if let Some(headers) = headers {
        same("MCP-Protocol-Version", headers.version, version)?;
    }
    if !MODERN.contains(&version) {
        return Err(unsupported(version));
    }
    if !meta
        .and_then(|m| m.get(CAPABILITIES))
        .is_some_and(Value::is_object)
    {
        return Err(lacking(CAPABILITIES));
    }
    let Some(headers) = headers else {
        return Ok(());
    };
    same("Mcp-Method", headers.method, method)?;
    match named(method)
        .and_then(|key| params.get(key))
        .and_then(Value::as_str)
    {
        Some(name) => check_name(headers.name, name),
        None => Ok(()),
    }
}

/// The parameter that the `Mcp-Name` header repeats.
fn named(method: &str) -> Option<&'static str> {
    match method {
        "tools/call" | "prompts/get" => Some("name"),
        "resources/read" => Some("uri"),
        _ => None,
    }
}

fn check_name(header: Option<&str>, name: &str) -> Result<(), RpcError> {
    let decoded = match header {
        Some(text) => Some(
            decode(text).ok_or_else(|| mismatch("Mcp-Name is not valid base64 of UTF-8 text."))?,
        ),
        None => None,
    };
    same("Mcp-Name", decoded.as_deref(), name)
}

/// Header values outside ASCII come as `=?base64?…?=`.
fn decode(text: &str) -> Option<String> {
    let Some(inner) = text
        .strip_prefix("=?base64?")
        .and_then(|t| t.strip_suffix("?="))
    else {
        return Some(text.to_owned());
    };
    String::from_utf8(
        base64::engine::general_purpose::STANDARD
            .decode(inner)
            .ok()?,
    )
    .ok()
}

fn same(header: &str, got: Option<&str>, want: &str) -> Result<(), RpcError> {
    match got {
        Some(got) if got == want => Ok(()),
        Some(got) => Err(mismatch(&format!(
            "The header {header} says {}, the body says {}.",
            short(got),
            short(want)
        ))),
        None => Err(mismatch(&format!(
            "The header {header} is missing; it must repeat {}.",
            short(want)
        ))),
    }
}

fn mismatch(message: &str) -> RpcError {
    RpcError::new(
        -32020,
        message,
        json!({"code": "header_mismatch", "retryable": false}),
    )
    .status(400)
}

fn lacking(key: &str) -> RpcError {
    RpcError::invalid_params("meta_missing", format!("params._meta lacks {key}.")).status(400)
}

fn unsupported(version: &str) -> RpcError {
    let data = json!({"supported": MODERN, "requested": version, "code": "unsupported_version", "retryable": false});
    RpcError::new(
        -32022,
        format!("Protocol version {} is not supported.", short(version)),
        data,
    )
    .status(400)
}

/// The version that `initialize` settles on.
pub fn negotiate(requested: Option<&str>) -> &'static str {
    LEGACY
        .iter()
        .find(|known| Some(**known) == requested)
        .unwrap_or(&LEGACY[0])
}
