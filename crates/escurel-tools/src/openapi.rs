//! The tools as an OpenAPI 3.1 document: one POST per tool, arguments in,
//! result out.
//!
//! Invariant: the schemas are those of `tools/list`.

use serde_json::{Map, Value, json};

use crate::catalog::{Catalog, Derived};
use crate::tool::Entry;

/// All tools, administrators' included.
pub fn openapi(catalog: &Catalog) -> Value {
    openapi_with(catalog, Map::new())
}

/// The same with the plain routes of a server: path items by path.
pub fn openapi_with(catalog: &Catalog, plain: Map<String, Value>) -> Value {
    let mut paths = plain;
    for (entry, derived) in catalog.iter() {
        paths.insert(
            format!("/api/tools/{}", entry.spec.name),
            json!({ "post": operation(entry, derived) }),
        );
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "escurel",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "The tools of a knowledge base whose truth is a folder of markdown. The same tools are offered over MCP at /mcp.",
        },
        "paths": paths,
        "components": { "schemas": { "Error": error_schema() }, "securitySchemes": { "bearer": { "type": "http", "scheme": "bearer" } } },
        "security": [{}, { "bearer": [] }],
    })
}

fn operation(entry: &Entry, derived: &Derived) -> Value {
    let spec = &entry.spec;
    let content = |schema: Value| json!({ "application/json": { "schema": schema } });
    let refused = json!({ "$ref": "#/components/schemas/Error" });
    let mut body = content(derived.input.clone());
    let examples: Map<String, Value> = spec.examples.iter().filter_map(example).collect();
    if !examples.is_empty() {
        body["application/json"]["examples"] = Value::Object(examples);
    }
    json!({
        "operationId": spec.name,
        "summary": spec.title,
        "description": derived.description,
        "x-escurel-execution": spec.execution.as_str(),
        "x-escurel-scope": spec.scope.as_str(),
        "requestBody": { "required": !spec.examples.iter().any(|(_, a)| *a == "{}"), "content": body },
        "responses": {
            "200": { "description": "The result.", "content": content(derived.output.clone()) },
            "default": { "description": "A refusal, with a stable code.", "content": content(refused) },
        },
    })
}

fn example(&(shows, arguments): &(&str, &str)) -> Option<(String, Value)> {
    let value: Value = serde_json::from_str(arguments).ok()?;
    Some((
        shows.replace(' ', "_").replace(',', ""),
        json!({ "summary": shows, "value": value }),
    ))
}

fn error_schema() -> Value {
    json!({
        "type": "object",
        "required": ["error"],
        "properties": {
            "error": {
                "type": "object",
                "required": ["code", "message", "retryable"],
                "properties": {
                    "code": { "type": "string", "description": "Stable; branch on this." },
                    "message": { "type": "string", "description": "For people; may change." },
                    "retryable": { "type": "boolean", "description": "True when the same call can succeed later." },
                    "location": { "type": "string", "description": "The argument or header key at fault." },
                    "candidates": { "type": "array", "items": { "type": "string" }, "description": "What could have been meant." },
                },
            },
        },
    })
}
