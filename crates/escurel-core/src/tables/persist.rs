//! The tables as one file beside the page directory.
//!
//! Layout: magic, checksum of the rest, postcard bytes. Only rows are stored:
//! orders are built from them, so that a file cannot disagree with the code.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Chat, EventRow, Events, MessageRow, RequestRow, Requests, Tables};

/// The last byte is the version: raise it with every change of a row.
const MAGIC: &[u8; 8] = b"ESCTABv\x02";
const HEADER: usize = 16;

#[derive(Serialize)]
struct Stored<'a> {
    seq: u64,
    generation: u128,
    events: Vec<&'a EventRow>,
    messages: Vec<&'a MessageRow>,
    requests: Vec<&'a RequestRow>,
}

#[derive(Deserialize)]
struct Loaded {
    seq: u64,
    generation: u128,
    events: Vec<EventRow>,
    messages: Vec<MessageRow>,
    requests: Vec<RequestRow>,
}

pub(crate) fn file(index: &Path) -> PathBuf {
    index.join("tables.bin")
}

impl Tables {
    /// In one step, so that a crash leaves the old file or the new one.
    pub fn save(&self, path: &Path, generation: u128) -> io::Result<()> {
        let stored = Stored {
            seq: self.seq,
            generation,
            events: self.events.rows().collect(),
            messages: self.chat.rows().collect(),
            requests: self.requests.rows().collect(),
        };
        let body = postcard::to_allocvec(&stored).map_err(io::Error::other)?;
        let temp = path.with_extension("tmp");
        let mut file = fs::File::create(&temp)?;
        file.write_all(MAGIC)?;
        file.write_all(&checksum(&body))?;
        file.write_all(&body)?;
        file.sync_data()?;
        fs::rename(&temp, path)
    }
}

/// Nothing when there is no file, or one that belongs to another index or release.
///
/// # Errors
/// What is wrong with a damaged file.
pub(crate) fn load(path: &Path, generation: u128) -> Result<Option<Tables>, String> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    let (Some(head), Some(body)) = (bytes.get(..HEADER), bytes.get(HEADER..)) else {
        return Err("it is cut".to_owned());
    };
    if head[..7] != MAGIC[..7] || head[8..] != checksum(body) {
        return Err("its checksum is wrong".to_owned());
    }
    if head[7] != MAGIC[7] {
        return Ok(None);
    }
    let loaded: Loaded = postcard::from_bytes(body).map_err(|error| error.to_string())?;
    let tables = Tables {
        seq: loaded.seq,
        events: Events::of(loaded.events),
        chat: Chat::of(loaded.messages),
        requests: Requests::of(loaded.requests),
    };
    Ok((loaded.generation == generation).then_some(tables))
}

fn checksum(body: &[u8]) -> [u8; 8] {
    rapidhash::v3::rapidhash_v3(body).to_le_bytes()
}
