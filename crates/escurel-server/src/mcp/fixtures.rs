//! Tools and resources that exist only for the protocol's conformance suite.
//!
//! Never part of a served knowledge base: switched on by a hidden setting that
//! works on loopback addresses only.

use serde_json::{Value, json};

use super::reply::Answer;

/// One red pixel.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
/// A header and no samples.
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA=";

const TOOLS: &[&str] = &[
    "test_simple_text",
    "test_image_content",
    "test_audio_content",
    "test_multiple_content_types",
    "test_embedded_resource",
    "test_error_handling",
];

/// Adds the fixtures to the JSON text of a tool list.
pub fn extend_tools(list: &str) -> String {
    let mut tools: Vec<String> = TOOLS
        .iter()
        .map(|name| {
            json!({"name": name, "description": "Conformance fixture.", "inputSchema": {"type": "object", "properties": {}}}).to_string()
        })
        .collect();
    tools.push(json!({"name": "json_schema_2020_12_tool", "description": "Tool with JSON Schema 2020-12 features", "inputSchema": schema()}).to_string());
    let head = list.trim_end().trim_end_matches(']');
    let comma = if head.ends_with('[') { "" } else { "," };
    format!("{head}{comma}{}]", tools.join(","))
}

fn schema() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {"address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }},
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": false,
    })
}

pub fn call(name: &str) -> Option<Answer> {
    let image = json!({"type": "image", "data": PNG, "mimeType": "image/png"});
    let content = match name {
        "test_simple_text" | "json_schema_2020_12_tool" => {
            json!([text("This is a simple text response for testing.")])
        }
        "test_image_content" => json!([image]),
        "test_audio_content" => json!([{"type": "audio", "data": WAV, "mimeType": "audio/wav"}]),
        "test_multiple_content_types" => json!([
            text("Multiple content types test:"),
            image,
            embedded(
                "test://mixed-content-resource",
                "application/json",
                r#"{"test":"data","value":123}"#
            ),
        ]),
        "test_embedded_resource" => {
            json!([embedded(
                "test://embedded-resource",
                "text/plain",
                "This is an embedded resource content."
            )])
        }
        "test_error_handling" => {
            json!([text("This tool intentionally returns an error for testing")])
        }
        _ => return None,
    };
    let answer = Answer::default().with("content", &content);
    Some(if name == "test_error_handling" {
        answer.with("isError", &true)
    } else {
        answer
    })
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn embedded(uri: &str, mime: &str, text: &str) -> Value {
    json!({"type": "resource", "resource": {"uri": uri, "mimeType": mime, "text": text}})
}

pub fn resources() -> [Value; 2] {
    [
        json!({"uri": "test://static-text", "name": "static-text", "description": "Conformance fixture.", "mimeType": "text/plain"}),
        json!({"uri": "test://static-binary", "name": "static-binary", "description": "Conformance fixture.", "mimeType": "image/png"}),
    ]
}

pub fn template() -> Value {
    json!({"uriTemplate": "test://template/{id}/data", "name": "template", "description": "Conformance fixture.", "mimeType": "application/json"})
}

pub fn read(uri: &str) -> Option<Value> {
    Some(match uri {
        "test://static-text" => {
            json!({"uri": uri, "mimeType": "text/plain", "text": "This is the content of the static text resource."})
        }
        "test://static-binary" => json!({"uri": uri, "mimeType": "image/png", "blob": PNG}),
        _ => {
            let id = uri
                .strip_prefix("test://template/")?
                .strip_suffix("/data")?;
            let data =
                json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")});
            json!({"uri": uri, "mimeType": "application/json", "text": data.to_string()})
        }
    })
}
