//! The directory as one file: versioned, checksummed, replaced atomically.
//!
//! Layout: header of 64 bytes, then frames {length u32, postcard bytes}. The
//! first frame lists who got which number, each further one holds up to 1,024
//! entries. Indexes are not stored but built, so that a file can never
//! disagree with the code that reads it.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use escurel_store::{ObjectId, Stat, Uid};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::Directory;
use super::bulk::Prepared;
use crate::{Entry, Facts, IndexError, PageNo};

const MAGIC: &[u8; 8] = b"ESCDIRv\0";
/// Raise it with every change of [`Stored`], [`Facts`] or the layout.
const VERSION: u32 = 1;
const HEADER: usize = 64;
const PER_FRAME: usize = 1024;

#[derive(Serialize)]
struct Stored<'a> {
    no: u32,
    path: &'a str,
    version: u64,
    seq: u64,
    from: i64,
    written_at: i64,
    author: &'a str,
    stat: Option<Stat>,
    object: [u8; 32],
    digest: u64,
    bytes: u32,
    missing: bool,
    facts: &'a Facts,
}

#[derive(Deserialize)]
struct Loaded<'a> {
    no: u32,
    path: &'a str,
    version: u64,
    seq: u64,
    from: i64,
    written_at: i64,
    author: &'a str,
    stat: Option<Stat>,
    object: [u8; 32],
    digest: u64,
    bytes: u32,
    missing: bool,
    facts: Facts,
}

struct Header {
    seq: u64,
    generation: u128,
    length: u64,
    checksum: u64,
}

impl Header {
    fn bytes(&self) -> [u8; HEADER] {
        let mut out = [0; HEADER];
        out[..8].copy_from_slice(MAGIC);
        out[8..12].copy_from_slice(&VERSION.to_le_bytes());
        out[16..24].copy_from_slice(&self.seq.to_le_bytes());
        out[24..40].copy_from_slice(&self.generation.to_le_bytes());
        out[40..48].copy_from_slice(&self.length.to_le_bytes());
        out[48..56].copy_from_slice(&self.checksum.to_le_bytes());
        let own = rapidhash::v3::rapidhash_v3(&out[..56]);
        out[56..].copy_from_slice(&own.to_le_bytes());
        out
    }
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

impl Directory {
    pub fn save(&self, path: &Path, seq: u64, generation: u128) -> Result<(), IndexError> {
        let body = self.encode().map_err(|e| IndexError::Io {
            what: "cannot encode",
            path: path.to_owned(),
            source: io::Error::other(e),
        })?;
        let checksum = rapidhash::v3::rapidhash_v3(&body);
        let header = Header {
            seq,
            generation,
            length: body.len() as u64,
            checksum,
        };
        let temp = path.with_extension("tmp");
        let write = || {
            let mut file = fs::File::create(&temp)?;
            file.write_all(&header.bytes())?;
            file.write_all(&body)?;
            file.sync_data()?;
            fs::rename(&temp, path)
        };
        write().map_err(IndexError::io("cannot write", path))
    }

    fn encode(&self) -> Result<Vec<u8>, postcard::Error> {
        let numbered: Vec<u128> = self.numbered.iter().copied().collect();
        let mut frames = vec![postcard::to_allocvec(&numbered)?];
        let entries: Vec<&Arc<Entry>> = self.iter().collect();
        let parts: Vec<_> = entries
            .par_chunks(PER_FRAME)
            .map(encode_frame)
            .collect::<Result<_, _>>()?;
        frames.extend(parts);
        let mut body = Vec::with_capacity(frames.iter().map(|f| f.len() + 4).sum());
        for frame in frames {
            body.extend_from_slice(&(frame.len() as u32).to_le_bytes());
            body.extend_from_slice(&frame);
        }
        Ok(body)
    }

    /// None: there is no file.
    pub fn load(path: &Path) -> Result<Option<(Directory, u64, u128)>, IndexError> {
        let bytes = match fs::read(path) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(IndexError::io("cannot read", path)(e)),
        };
        let damaged = |reason: &str| IndexError::Damaged {
            path: path.to_owned(),
            reason: reason.to_owned(),
        };
        if bytes.get(..8) != Some(MAGIC) || bytes.len() < HEADER {
            return Err(damaged("no header"));
        }
        if u64_at(&bytes, 56) != Some(rapidhash::v3::rapidhash_v3(&bytes[..56])) {
            return Err(damaged("header checksum"));
        }
        let version = u64_at(&bytes, 8).unwrap_or(0) as u32;
        if version != VERSION {
            return Err(IndexError::OtherVersion {
                path: path.to_owned(),
                found: version,
            });
        }
        let body = &bytes[HEADER..];
        if u64_at(&bytes, 40) != Some(body.len() as u64) {
            return Err(damaged("length"));
        }
        if u64_at(&bytes, 48) != Some(rapidhash::v3::rapidhash_v3(body)) {
            return Err(damaged("checksum"));
        }
        let seq = u64_at(&bytes, 16).unwrap_or(0);
        let half = |at| u128::from(u64_at(&bytes, at).unwrap_or(0));
        let generation = half(24) | half(32) << 64;
        let directory = decode(body).ok_or_else(|| damaged("contents"))?;
        Ok(Some((directory, seq, generation)))
    }
}

fn encode_frame(entries: &[&Arc<Entry>]) -> Result<Vec<u8>, postcard::Error> {
    let stored: Vec<Stored<'_>> = entries
        .iter()
        .map(|e| Stored {
            no: e.no.0,
            path: &e.path,
            version: e.version,
            seq: e.seq,
            from: e.from,
            written_at: e.written_at,
            author: &e.author,
            stat: e.stat,
            object: e.object.0,
            digest: e.digest,
            bytes: e.bytes,
            missing: e.missing,
            facts: &e.facts,
        })
        .collect();
    postcard::to_allocvec(&stored)
}

fn decode(mut body: &[u8]) -> Option<Directory> {
    let mut frames = Vec::new();
    while !body.is_empty() {
        let (length, rest) = body.split_at_checked(4)?;
        let length = u32::from_le_bytes(length.try_into().ok()?) as usize;
        let (frame, rest) = rest.split_at_checked(length)?;
        frames.push(frame);
        body = rest;
    }
    let (numbered, frames) = frames.split_first()?;
    let numbered: Vec<u128> = postcard::from_bytes(numbered).ok()?;
    let prepared: Vec<Vec<Prepared>> = frames
        .par_iter()
        .map(|f| decode_frame(f, &numbered))
        .collect::<Option<_>>()?;
    Some(Directory::filled(
        &numbered,
        prepared.into_iter().flatten().collect(),
    ))
}

fn decode_frame(frame: &[u8], numbered: &[u128]) -> Option<Vec<Prepared>> {
    let loaded: Vec<Loaded<'_>> = postcard::from_bytes(frame).ok()?;
    let prepare = |l: Loaded<'_>| {
        Some(Prepared::of(Entry {
            no: PageNo(l.no),
            uid: Uid(*numbered.get(PageNo(l.no).index())?),
            path: l.path.into(),
            version: l.version,
            seq: l.seq,
            from: l.from,
            written_at: l.written_at,
            author: crate::intern::intern(l.author),
            stat: l.stat,
            object: ObjectId(l.object),
            digest: l.digest,
            bytes: l.bytes,
            missing: l.missing,
            facts: Arc::new(l.facts),
        }))
    };
    loaded.into_iter().map(prepare).collect()
}
