//! What callers hand in besides pages: its limits, and how it is kept.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use escurel_md::When;
use escurel_store::{ObjectId, StoreError};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::kb::Core;
use crate::read::{MAX_LIMIT, cursor};
use crate::{Code, Refusal, Result};

/// Bytes of a body or of a message.
const MOST_TEXT: usize = 1 << 20;
/// Bytes of provenance or metadata, as JSON.
const MOST_JSON: usize = 64 << 10;
/// Of lists and objects in each other.
const MOST_LEVELS: usize = 32;
/// Characters of an id.
pub(crate) const MOST_ID: usize = 128;
/// Characters of what fits a line.
const MOST_LINE: usize = 1_000;
/// Bytes of texts after which a page of a listing ends.
pub(crate) const FULL_PAGE: u64 = 4 << 20;

impl Core {
    /// Refuses as long as the tables may lack what the journal has.
    pub(crate) fn demand_tables(&self) -> Result<()> {
        if self.is_unrecorded() {
            return Ok(self.store.writable()?);
        }
        match self.caught_up.load(Ordering::Acquire) {
            true => Ok(()),
            false => Err(Refusal::new(
                Code::Indexing,
                "The journal is still being read.",
            )),
        }
    }

    pub(crate) fn guard_tables(&self) -> Result<()> {
        if self.store.read_only() {
            let why = "Nothing is written into a folder that is served read-only.";
            return Err(Refusal::new(Code::ReadOnly, why));
        }
        Ok(self.store.writable()?)
    }

    /// A content as JSON; `None`: it was erased.
    pub(crate) fn json_object<T: DeserializeOwned>(&self, id: &ObjectId) -> Result<Option<T>> {
        let bytes = match self.store.object(id) {
            Err(StoreError::ContentErased(_)) => return Ok(None),
            bytes => bytes?,
        };
        let read = serde_json::from_slice(&bytes);
        read.map(Some).map_err(|error| {
            Refusal::new(Code::Io, format!("The object {id} is no JSON: {error}."))
        })
    }
}

/// Time and sequence number of the row before, out of a cursor.
pub(crate) fn place(listing: &str, text: Option<&str>) -> Result<Option<(i64, u64)>> {
    let Some(text) = text else { return Ok(None) };
    let place = cursor::open(listing, text)?;
    let parts = place.split_once('|');
    let read = parts.and_then(|(at, seq)| Some((at.parse().ok()?, seq.parse().ok()?)));
    read.map(Some).ok_or_else(cursor::bad)
}

pub(crate) fn check_id(name: &str, id: Option<&str>) -> Result<()> {
    let Some(id) = id else { return Ok(()) };
    if id.trim().is_empty() || id.chars().count() > MOST_ID || id.chars().any(char::is_control) {
        let why = format!("{name}: 1 to {MOST_ID} characters, no control characters.");
        return Err(bad(name, why));
    }
    Ok(())
}

pub(crate) fn check_line(name: &str, line: Option<&str>) -> Result<()> {
    match line.filter(|line| line.chars().count() > MOST_LINE) {
        Some(_) => Err(bad(
            name,
            format!("{name}: at most {MOST_LINE} characters."),
        )),
        None => Ok(()),
    }
}

pub(crate) fn check_text(name: &str, text: Option<&str>) -> Result<()> {
    match text.filter(|text| text.len() > MOST_TEXT) {
        Some(text) => {
            let why = format!("{name}: {} bytes; at most {MOST_TEXT}.", text.len());
            Err(bad(name, why))
        }
        None => Ok(()),
    }
}

pub(crate) fn check_json(name: &str, map: Option<&Map<String, Value>>) -> Result<()> {
    let Some(map) = map else { return Ok(()) };
    match serde_json::to_vec(map) {
        Ok(text) if text.len() > MOST_JSON => Err(bad(
            name,
            format!("{name}: {} bytes as JSON; at most {MOST_JSON}.", text.len()),
        )),
        Ok(_) if map.values().all(|value| fits(value, MOST_LEVELS)) => Ok(()),
        _ => Err(bad(
            name,
            format!("{name}: at most {MOST_LEVELS} levels of lists and objects."),
        )),
    }
}

/// What is nested deeper than parsers go could be kept and never be read again.
fn fits(value: &Value, levels: usize) -> bool {
    let inner = |value| levels > 0 && fits(value, levels - 1);
    match value {
        Value::Array(items) => items.iter().all(inner),
        Value::Object(map) => map.values().all(inner),
        _ => true,
    }
}

pub(crate) fn check_limit(limit: usize) -> Result<()> {
    match (1..=MAX_LIMIT).contains(&limit) {
        true => Ok(()),
        false => Err(bad("limit", format!("limit is between 1 and {MAX_LIMIT}."))),
    }
}

pub(crate) fn bad(at: &str, why: String) -> Refusal {
    Refusal::new(Code::InvalidArgument, why).at(at)
}

/// A time as callers write it; a date is its whole day.
pub(crate) fn moment(text: &str, argument: &str) -> Result<When> {
    let shown = || text.chars().take(60).collect::<String>();
    When::parse(text.trim()).ok_or_else(|| {
        let why = format!("`{}` is not a time.", shown().escape_debug());
        Refusal::new(Code::TimeInvalid, why).at(argument)
    })
}

pub(crate) fn content(value: &impl Serialize) -> Result<Arc<[u8]>> {
    let text = serde_json::to_vec(value);
    text.map(Arc::from)
        .map_err(|error| Refusal::new(Code::Internal, format!("Not written as JSON: {error}.")))
}

pub(crate) fn note(fields: impl IntoIterator<Item = (&'static str, String)>) -> Map<String, Value> {
    let fields = fields.into_iter();
    fields
        .map(|(name, value)| (name.to_owned(), value.into()))
        .collect()
}
