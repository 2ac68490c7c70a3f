//! The argument that every writing tool has: a key that makes a call happen once.
//!
//! Declared here alone: it is put into the schemas of writing tools and taken
//! out of their arguments, so that no tool can forget or misread it.

use escurel_core::{Code, Done, Refusal, Request};
use serde_json::{Value, json};

use crate::spec::{Effect, Spec};
use crate::tool::{Call, Entry};

const KEY: &str = "idempotency_key";
/// Characters.
const MOST: usize = 200;

/// Adds the argument to the schema of a tool that writes.
pub fn declare(spec: &Spec, input: &mut Value) {
    if spec.effect == Effect::Read {
        return;
    }
    if let Some(fields) = input["properties"].as_object_mut() {
        let field = json!({
            "description": "Makes a repetition harmless: the same call with the same key, within a day, is not \
                carried out again but answered as before. A new one for each new call; at most 200 characters.",
            "type": ["string", "null"],
        });
        fields.insert(KEY.to_owned(), field);
    }
}

/// Runs a tool; with a key at most once.
pub fn run(entry: &Entry, cx: &Call<'_>, mut arguments: Value) -> Result<String, Refusal> {
    let key = match entry.spec.effect {
        Effect::Read => None,
        _ => taken(&mut arguments)?,
    };
    let Some(key) = key else {
        return (entry.run)(cx, arguments);
    };
    let request = Request {
        tool: entry.spec.name,
        key: &key,
        arguments: &arguments,
    };
    cx.kb.once(cx.caller, &request, || {
        let answer = (entry.run)(cx, arguments.clone())?;
        let told: Value = serde_json::from_str(&answer).unwrap_or_default();
        let wrote = told["ok"] != false && told["dry_run"] != true;
        Ok(Done { answer, wrote })
    })
}

fn taken(arguments: &mut Value) -> Result<Option<String>, Refusal> {
    let key = arguments
        .as_object_mut()
        .and_then(|map| map.shift_remove(KEY));
    match key {
        None => Ok(None),
        Some(Value::String(key)) if (1..=MOST).contains(&key.chars().count()) => Ok(Some(key)),
        Some(_) => {
            let why = format!("{KEY}: expected 1 to {MOST} characters.");
            Err(Refusal::new(Code::InvalidArgument, why).at(KEY))
        }
    }
}
