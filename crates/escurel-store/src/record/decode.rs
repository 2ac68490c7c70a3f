//! From a line to a record, with and without checking its hash.

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::{Content, Record, SCHEMA_VERSION};
use crate::{canonical, hex};

const HASH_MEMBER: &[u8] = b"\"entry_hash\":\"";

/// Decodes a line and checks that its hash is that of its content. `Err` says
/// what is wrong with it.
pub(crate) fn decode(line: &[u8]) -> Result<Record, String> {
    if hash_holds(line) {
        return decode_unchecked(line);
    }
    // Another writer may order or space members differently: hash the meaning.
    from_value(checked_value(line)?)
}

fn checked_value(line: &[u8]) -> Result<Value, String> {
    let value: Value = serde_json::from_slice(line).map_err(|e| format!("not JSON ({e})"))?;
    let stored = value.get("entry_hash").and_then(Value::as_str);
    let stored = stored.ok_or("it has no entry_hash")?;
    let computed = canonical::chain_hash(&value).map_err(|e| e.to_string())?;
    if computed != stored {
        return Err("its content was changed (entry_hash does not match)".into());
    }
    Ok(value)
}

/// Is it as it was written, whether or not this release understands it?
pub(crate) fn hash_is_right(line: &[u8]) -> bool {
    checked_value(line).is_ok()
}

/// Decodes a line whose hash somebody else checks.
pub(crate) fn decode_unchecked(line: &[u8]) -> Result<Record, String> {
    from_value(serde_json::from_slice(line).map_err(|e| format!("not JSON ({e})"))?)
}

/// The line's `seq_id` if it can be read at all; for naming a broken line.
pub(crate) fn peek_seq(line: &[u8]) -> Option<u64> {
    serde_json::from_slice::<Value>(line)
        .ok()?
        .get("seq_id")?
        .as_u64()
}

/// Inside JSON text a quote is escaped, so the member's bytes stand in a line
/// only as a member; every line that we write has it once.
fn hash_holds(line: &[u8]) -> bool {
    let Some(at) = memchr::memmem::find(line, HASH_MEMBER) else {
        return false;
    };
    let digits = at + HASH_MEMBER.len();
    let Some(stored) = line.get(digits..digits + 64).and_then(hex::decode::<32>) else {
        return false;
    };
    let Some(rest) = line
        .get(digits + 64..)
        .and_then(|rest| rest.strip_prefix(b"\","))
    else {
        return false;
    };
    let mut hash = Sha256::new();
    hash.update(&line[..at]);
    hash.update(rest);
    let computed: [u8; 32] = hash.finalize().into();
    computed == stored
}

fn from_value(value: Value) -> Result<Record, String> {
    let Value::Object(mut map) = value else {
        return Err("not a JSON object".into());
    };
    if text(&mut map, "schema_version")? != SCHEMA_VERSION {
        return Err("its schema_version is not known to this program; update it".into());
    }
    let record = Record {
        seq: integer(&mut map, "seq_id")?.ok_or("it has no seq_id")?,
        at: time(&mut map, "at")?.ok_or("it has no time")?,
        kind: text(&mut map, "kind")?
            .parse()
            .map_err(|e: crate::StoreError| e.to_string())?,
        actor: text(&mut map, "actor")?,
        uid: parsed(&mut map, "uid")?,
        path: optional_text(&mut map, "path")?,
        version: integer(&mut map, "version")?,
        content: map.remove("content").map(content).transpose()?,
        from: time(&mut map, "from")?,
        prev_hash: hash(&mut map, "prev_hash")?,
        entry_hash: hash(&mut map, "entry_hash")?,
        note: map,
    };
    Ok(record)
}

fn optional_text(map: &mut Map<String, Value>, key: &str) -> Result<Option<String>, String> {
    match map.shift_remove(key) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(format!("its {key} is not text")),
    }
}

fn text(map: &mut Map<String, Value>, key: &str) -> Result<String, String> {
    optional_text(map, key)?.ok_or_else(|| format!("it has no {key}"))
}

fn parsed<T: std::str::FromStr<Err = crate::StoreError>>(
    map: &mut Map<String, Value>,
    key: &str,
) -> Result<Option<T>, String> {
    let text = optional_text(map, key)?;
    text.map(|text| text.parse().map_err(|e: T::Err| e.to_string()))
        .transpose()
}

fn integer(map: &mut Map<String, Value>, key: &str) -> Result<Option<u64>, String> {
    match map.shift_remove(key) {
        None => Ok(None),
        Some(value) => value
            .as_u64()
            .map(Some)
            .ok_or_else(|| format!("its {key} is not a number")),
    }
}

fn time(map: &mut Map<String, Value>, key: &str) -> Result<Option<i64>, String> {
    let Some(text) = optional_text(map, key)? else {
        return Ok(None);
    };
    let time: jiff::Timestamp = text
        .parse()
        .map_err(|_| format!("its {key} is not a time"))?;
    Ok(Some(time.as_microsecond()))
}

fn hash(map: &mut Map<String, Value>, key: &str) -> Result<[u8; 32], String> {
    hex::decode(text(map, key)?.as_bytes()).ok_or_else(|| format!("its {key} is not a hash"))
}

fn content(value: Value) -> Result<Content, String> {
    let object = value
        .get("object")
        .and_then(Value::as_str)
        .and_then(|text| text.parse().ok());
    let bytes = value.get("bytes").and_then(Value::as_u64);
    match (object, bytes) {
        (Some(object), Some(bytes)) => Ok(Content { object, bytes }),
        _ => Err("its content does not name an object".into()),
    }
}
