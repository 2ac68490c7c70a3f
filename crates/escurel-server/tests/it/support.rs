//! A small knowledge base and the two ways of asking it.

use std::sync::{Arc, LazyLock};

use escurel_access::Caller;
use escurel_core::Kb;
use escurel_server::Service;
use escurel_server::mcp::{Context, Headers, handle};
use serde_json::{Value, json};

const PAGES: &[(&str, &str)] = &[
    (
        "markdown/skills/customer.md",
        "---\ntype: skill\nid: customer\ndescription: Who buys.\n---\n# Customer\n",
    ),
    (
        "markdown/instances/customer/acme.md",
        "---\nskill: customer\nid: acme\n---\n# Acme\n\nRenewal is at risk, see [[customer::süd]].\n\n## Risk\n\nHigh.\n",
    ),
    (
        "markdown/instances/customer/süd.md",
        "---\nskill: customer\nid: süd\n---\n# Süd GmbH & Söhne\n\nQuiet.\n",
    ),
    (
        "markdown/instances/customer/50% off.md",
        "---\nskill: customer\nid: fifty\n---\n# Fifty\n",
    ),
];

pub const ACME: &str = "markdown/instances/customer/acme.md";

/// One for all tests: they only read.
pub static SERVICE: LazyLock<Arc<Service>> =
    LazyLock::new(|| Arc::new(Service::new(Kb::in_memory(PAGES), false)));

/// Status and parsed body of the answer to `body`.
pub fn raw(headers: Option<Headers<'_>>, body: &[u8]) -> (u16, Value) {
    let caller = Caller::local();
    let reply = handle(
        Context {
            service: &SERVICE,
            caller: &caller,
        },
        headers.as_ref(),
        body,
    );
    let body = reply
        .body
        .map(|text| serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}")));
    (reply.status, body.unwrap_or(Value::Null))
}

pub fn request(id: Value, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

pub fn legacy(method: &str, params: Value) -> (u16, Value) {
    let headers = Headers {
        version: Some("2025-11-25"),
        ..Headers::default()
    };
    raw(
        Some(headers),
        request(json!(1), method, params).to_string().as_bytes(),
    )
}

/// What a modern client says about itself.
pub fn meta(version: &str) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    })
}

pub fn modern(method: &str, mut params: Value) -> (u16, Value) {
    params["_meta"] = meta("2026-07-28");
    let name = params
        .get("name")
        .or(params.get("uri"))
        .and_then(Value::as_str)
        .map(str::to_owned);
    let headers = Headers {
        version: Some("2026-07-28"),
        method: Some(method),
        name: name.as_deref(),
    };
    raw(
        Some(headers),
        request(json!("m"), method, params).to_string().as_bytes(),
    )
}

/// Both eras must agree on a result, the modern stamp aside.
pub fn both(method: &str, params: Value) -> Value {
    let (status, old) = legacy(method, params.clone());
    let (modern_status, new) = modern(method, params);
    assert_eq!((status, modern_status), (200, 200), "{old} {new}");
    let (old, mut new) = (old["result"].clone(), new["result"].clone());
    assert_eq!(new["resultType"], "complete", "{new}");
    assert_eq!(
        new["_meta"]["io.modelcontextprotocol/serverInfo"]["name"],
        "escurel"
    );
    if let Some(new) = new.as_object_mut() {
        new.remove("resultType");
        if old.get("_meta").is_none() {
            new.remove("_meta");
        }
        if let Some(meta) = new.get_mut("_meta").and_then(Value::as_object_mut) {
            meta.remove("io.modelcontextprotocol/serverInfo");
        }
    }
    assert_eq!(old, new, "{method}");
    old
}

pub fn code(answer: &Value) -> i64 {
    answer["error"]["code"]
        .as_i64()
        .unwrap_or_else(|| panic!("no error: {answer}"))
}
