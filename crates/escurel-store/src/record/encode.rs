//! From a record to its line.

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::{Record, SCHEMA_VERSION};
use crate::canonical::{write_integer, write_text, write_value};
use crate::{StoreError, hex};

enum Field<'a> {
    Text(&'a str),
    Owned(String),
    Int(u64),
    Note(&'a Value),
    Content(&'a super::Content),
}

/// Sets `entry_hash` and appends the record's line to `out`.
pub(crate) fn encode(record: &mut Record, out: &mut Vec<u8>) -> Result<(), StoreError> {
    let start = out.len();
    let insert_at = match write_preimage(record, out) {
        Ok(at) => at,
        Err(error) => {
            out.truncate(start);
            return Err(error);
        }
    };
    record.entry_hash = Sha256::digest(&out[start..]).into();
    let mut member = Vec::with_capacity(82);
    member.extend_from_slice(b"\"entry_hash\":\"");
    hex::push(&record.entry_hash, &mut member);
    member.extend_from_slice(b"\",");
    out.splice(insert_at..insert_at, member);
    out.push(b'\n');
    Ok(())
}

/// Answers where `entry_hash` belongs. `actor` sorts before it and `kind`
/// after it, so it is never the first or last member.
fn write_preimage(record: &Record, out: &mut Vec<u8>) -> Result<usize, StoreError> {
    let mut fields = fields(record)?;
    fields.sort_unstable_by(|a, b| a.0.cmp(b.0));
    let mut insert_at = out.len();
    out.push(b'{');
    for (index, (key, field)) in fields.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        if *key < "entry_hash" {
            insert_at = usize::MAX;
        } else if insert_at == usize::MAX {
            insert_at = out.len();
        }
        write_text(key, out);
        out.push(b':');
        write_field(field, out)?;
    }
    out.push(b'}');
    Ok(insert_at)
}

fn fields(record: &Record) -> Result<Vec<(&str, Field<'_>)>, StoreError> {
    let mut fields = vec![
        ("actor", Field::Text(&record.actor)),
        ("at", Field::Owned(time_text(record.at)?)),
        ("kind", Field::Text(record.kind.name())),
        ("prev_hash", Field::Owned(hex::encode(&record.prev_hash))),
        ("schema_version", Field::Text(SCHEMA_VERSION)),
        ("seq_id", Field::Int(record.seq)),
    ];
    if let Some(uid) = record.uid {
        fields.push(("uid", Field::Owned(uid.to_string())));
    }
    if let Some(path) = &record.path {
        fields.push(("path", Field::Text(path)));
    }
    if let Some(version) = record.version {
        fields.push(("version", Field::Int(version)));
    }
    if let Some(content) = &record.content {
        fields.push(("content", Field::Content(content)));
    }
    if let Some(from) = record.from {
        fields.push(("from", Field::Owned(time_text(from)?)));
    }
    for (key, value) in &record.note {
        fields.push((key, Field::Note(value)));
    }
    Ok(fields)
}

fn write_field(field: &Field<'_>, out: &mut Vec<u8>) -> Result<(), StoreError> {
    match field {
        Field::Text(text) => write_text(text, out),
        Field::Owned(text) => write_text(text, out),
        Field::Int(integer) => write_unsigned(*integer, out)?,
        Field::Note(value) => write_value(value, out)?,
        Field::Content(content) => {
            out.extend_from_slice(b"{\"bytes\":");
            write_unsigned(content.bytes, out)?;
            out.extend_from_slice(b",\"object\":\"");
            hex::push(&content.object.0, out);
            out.extend_from_slice(b"\"}");
        }
    }
    Ok(())
}

fn write_unsigned(integer: u64, out: &mut Vec<u8>) -> Result<(), StoreError> {
    let signed = i64::try_from(integer).map_err(|_| StoreError::BadNumber(integer.to_string()))?;
    write_integer(signed, out)
}

fn time_text(micros: i64) -> Result<String, StoreError> {
    jiff::Timestamp::from_microsecond(micros)
        .map(|time| time.to_string())
        .map_err(|_| {
            StoreError::BadRecord(format!("{micros} µs is not a time that can be written"))
        })
}
