//! The bytes that are hashed: compact JSON, keys sorted by code point, ASCII
//! only, integers only.
//!
//! Floats are refused because verifiers in different languages print them
//! differently, and integers beyond ±(2^53−1) because some cannot hold them.

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::StoreError;
use crate::hex;

/// Largest integer that every verifier reads exactly.
pub(crate) const MAX_INTEGER: i64 = (1 << 53) - 1;

/// Canonical bytes of a value.
pub fn canonical(value: &Value) -> Result<Vec<u8>, StoreError> {
    let mut out = Vec::new();
    write_value(value, &mut out)?;
    Ok(out)
}

/// `entry_hash` of a record: SHA-256 over its canonical bytes without
/// `entry_hash` and `event_sig`; lowercase hex.
pub fn chain_hash(record: &Value) -> Result<String, StoreError> {
    let Value::Object(map) = record else {
        return Err(StoreError::BadRecord("a record is a JSON object".into()));
    };
    let mut out = Vec::new();
    write_object(
        map,
        |key| key != "entry_hash" && key != "event_sig",
        &mut out,
    )?;
    Ok(hex::encode(&Sha256::digest(&out)))
}

pub(crate) fn write_value(value: &Value, out: &mut Vec<u8>) -> Result<(), StoreError> {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::Number(number) => match number.as_i64() {
            Some(integer) => write_integer(integer, out)?,
            None => return Err(StoreError::BadNumber(number.to_string())),
        },
        Value::String(text) => write_text(text, out),
        Value::Array(items) => write_array(items, out)?,
        Value::Object(map) => write_object(map, |_| true, out)?,
    }
    Ok(())
}

pub(crate) fn write_integer(integer: i64, out: &mut Vec<u8>) -> Result<(), StoreError> {
    if !(-MAX_INTEGER..=MAX_INTEGER).contains(&integer) {
        return Err(StoreError::BadNumber(integer.to_string()));
    }
    out.extend_from_slice(integer.to_string().as_bytes());
    Ok(())
}

fn write_array(items: &[Value], out: &mut Vec<u8>) -> Result<(), StoreError> {
    out.push(b'[');
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write_value(item, out)?;
    }
    out.push(b']');
    Ok(())
}

fn write_object(
    map: &Map<String, Value>,
    keep: impl Fn(&str) -> bool,
    out: &mut Vec<u8>,
) -> Result<(), StoreError> {
    // Byte order of UTF-8 is code point order.
    let mut fields: Vec<(&String, &Value)> = map.iter().filter(|(key, _)| keep(key)).collect();
    fields.sort_unstable_by_key(|(key, _)| *key);
    out.push(b'{');
    for (index, (key, value)) in fields.into_iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write_text(key, out);
        out.push(b':');
        write_value(value, out)?;
    }
    out.push(b'}');
    Ok(())
}

pub(crate) fn write_text(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    for character in text.chars() {
        match character {
            '"' => out.extend_from_slice(b"\\\""),
            '\\' => out.extend_from_slice(b"\\\\"),
            '\n' => out.extend_from_slice(b"\\n"),
            '\r' => out.extend_from_slice(b"\\r"),
            '\t' => out.extend_from_slice(b"\\t"),
            '\u{8}' => out.extend_from_slice(b"\\b"),
            '\u{c}' => out.extend_from_slice(b"\\f"),
            ' '..='~' => out.push(character as u8),
            _ => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    out.extend_from_slice(b"\\u");
                    hex::push(&unit.to_be_bytes(), out);
                }
            }
        }
    }
    out.push(b'"');
}
