//! JSON Schemas as MCP clients can read them.
//!
//! Owns the way from a Rust type to its published schema. Invariant: no
//! reference, no alternative at the root, nothing but plain keywords.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value};

/// The schema of arguments.
pub fn input<T: JsonSchema>() -> Value {
    published::<T>(settings().for_deserialize())
}

/// The schema of an answer.
pub fn output<T: JsonSchema>() -> Value {
    published::<T>(settings().for_serialize())
}

fn settings() -> SchemaSettings {
    SchemaSettings::draft2020_12().with(|s| {
        s.inline_subschemas = true;
        s.meta_schema = None;
    })
}

fn published<T: JsonSchema>(settings: SchemaSettings) -> Value {
    let mut schema = SchemaGenerator::new(settings)
        .into_root_schema_for::<T>()
        .to_value();
    plain(&mut schema);
    if let Value::Object(root) = &mut schema {
        // An argument struct without fields has no `properties`, and some clients insist.
        root.entry("properties")
            .or_insert_with(|| Value::Object(Map::new()));
    }
    schema
}

/// Removes what is no help to a caller and what strict validators stumble over.
fn plain(schema: &mut Value) {
    let Value::Object(map) = schema else { return };
    // The names of Rust types, and number formats that no standard knows.
    map.remove("title");
    map.remove("format");
    if let Some(Value::String(text)) = map.get_mut("description") {
        *text = reflow(text);
    }
    string_choices(map);
    for (key, value) in map.iter_mut() {
        match (key.as_str(), value) {
            ("properties", Value::Object(fields)) => fields.values_mut().for_each(plain),
            ("items" | "additionalProperties", inner) => plain(inner),
            _ => {}
        }
    }
}

/// Null among the choices is more than several model APIs can read; as an
/// argument it is accepted all the same, and no answer has it.
fn string_choices(map: &mut Map<String, Value>) {
    if let Some(Value::Array(choices)) = map.get_mut("enum") {
        choices.retain(|choice| !choice.is_null());
        map.insert("type".into(), "string".into());
    }
}

pub fn take_description(schema: &mut Value) -> String {
    match schema
        .as_object_mut()
        .and_then(|map| map.shift_remove("description"))
    {
        Some(Value::String(text)) => text,
        _ => String::new(),
    }
}

/// Joins the lines of a paragraph; blank lines and list items stay apart.
fn reflow(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.lines().map(str::trim) {
        let starts = line.is_empty() || line.starts_with("- ");
        if starts {
            out.push('\n');
        } else if !out.is_empty() && !out.ends_with('\n') {
            out.push(' ');
        }
        out.push_str(line);
        if line.is_empty() {
            out.push('\n');
        }
    }
    out.replace("\n\n\n", "\n\n").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::reflow;

    #[test]
    fn paragraphs_are_joined_and_lists_kept() {
        let check = |text: &str, expect: &str| assert_eq!(reflow(text), expect);
        check("One\nline.\n\nTwo\nlines.", "One line.\n\nTwo lines.");
        check("Pick:\n- a b\n  c\n- d", "Pick:\n- a b c\n- d");
        check("Pick:\n\n- a\n- d\n\nEnd.", "Pick:\n\n- a\n- d\n\nEnd.");
        check("", "");
    }
}
