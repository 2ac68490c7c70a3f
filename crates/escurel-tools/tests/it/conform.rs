//! Does a value satisfy a schema? Only the keywords that we publish.

use serde_json::{Map, Value};

/// Every disagreement, with its place.
pub fn problems(schema: &Value, value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    walk(schema, value, "$", &mut found);
    found
}

fn walk(schema: &Value, value: &Value, at: &str, found: &mut Vec<String>) {
    let Some(schema) = schema.as_object() else {
        if schema == &Value::Bool(false) {
            found.push(format!("{at}: nothing is allowed"));
        }
        return;
    };
    for keyword in schema.keys() {
        assert!(
            KNOWN.contains(&keyword.as_str()),
            "{at}: keyword {keyword} is not checked"
        );
    }
    if let Some(types) = schema.get("type")
        && !type_fits(types, value)
    {
        found.push(format!("{at}: {value} is not {types}"));
        return;
    }
    if let Some(choices) = schema.get("enum").and_then(Value::as_array)
        && !choices.contains(value)
    {
        found.push(format!("{at}: {value} is none of {choices:?}"));
    }
    match value {
        Value::Object(map) => object(schema, map, at, found),
        Value::Array(items) => array(schema, items, at, found),
        Value::Number(n) => number(schema, n.as_f64().unwrap_or(0.0), at, found),
        _ => {}
    }
}

const KNOWN: &[&str] = &[
    "type",
    "enum",
    "properties",
    "required",
    "items",
    "additionalProperties",
    "description",
    "default",
    "minimum",
    "maximum",
    "minItems",
    "maxItems",
];

fn type_fits(types: &Value, value: &Value) -> bool {
    match types {
        Value::Array(several) => several.iter().any(|t| type_fits(t, value)),
        one => match one.as_str().unwrap() {
            "null" => value.is_null(),
            "string" => value.is_string(),
            "boolean" => value.is_boolean(),
            "integer" => value.is_i64() || value.is_u64(),
            "number" => value.is_number(),
            "array" => value.is_array(),
            "object" => value.is_object(),
            other => panic!("no such type: {other}"),
        },
    }
}

fn object(
    schema: &Map<String, Value>,
    map: &Map<String, Value>,
    at: &str,
    found: &mut Vec<String>,
) {
    for name in schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
    {
        if !map.contains_key(name) {
            found.push(format!("{at}: {name} is missing"));
        }
    }
    let fields = schema.get("properties").and_then(Value::as_object);
    for (name, inner) in map {
        let path = format!("{at}.{name}");
        match (
            fields.and_then(|f| f.get(name)),
            schema.get("additionalProperties"),
        ) {
            (Some(field), _) | (None, Some(field)) => walk(field, inner, &path, found),
            // Clients tolerate more than is declared; we declare what we send.
            (None, None) => found.push(format!("{path}: is not declared")),
        }
    }
}

fn array(schema: &Map<String, Value>, items: &[Value], at: &str, found: &mut Vec<String>) {
    let size = |key: &str| schema.get(key).and_then(Value::as_u64);
    let n = items.len() as u64;
    if size("minItems").is_some_and(|min| n < min) || size("maxItems").is_some_and(|max| n > max) {
        found.push(format!("{at}: {n} items"));
    }
    if let Some(of) = schema.get("items") {
        for (i, item) in items.iter().enumerate() {
            walk(of, item, &format!("{at}[{i}]"), found);
        }
    }
}

fn number(schema: &Map<String, Value>, n: f64, at: &str, found: &mut Vec<String>) {
    let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
    if bound("minimum").is_some_and(|min| n < min) || bound("maximum").is_some_and(|max| n > max) {
        found.push(format!("{at}: {n} is out of range"));
    }
}
