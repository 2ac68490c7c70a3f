//! One object in a pack: its header, its payload, its checks.
//!
//! Layout, little endian: magic 4, flags 1, zero 3, stored length 4, raw
//! length 4, CRC-32 4, id 32, payload. The CRC covers all but the magic and
//! itself; raw bytes are 32 random bytes followed by the content.

use std::cell::RefCell;

use sha2::{Digest, Sha256};

use crate::{ObjectId, StoreError};

pub(crate) const HEADER: usize = 52;
const MAGIC: &[u8; 4] = b"ESO1";
const SALT: usize = 32;
const FLAG_ZSTD: u8 = 1;
const FLAG_ERASED: u8 = 2;
const ZSTD_LEVEL: i32 = 1;

/// Larger contents are refused: a damaged length must not ask for all memory.
const MAX_CONTENT: usize = 256 << 20;

#[derive(Clone, Debug)]
pub(crate) struct Frame {
    pub(crate) id: ObjectId,
    pub(crate) bytes: Vec<u8>,
}

/// A frame's header once its magic and lengths make sense.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Header {
    pub(crate) id: ObjectId,
    pub(crate) stored: usize,
    raw: usize,
    flags: u8,
    crc: u32,
}

thread_local! {
    static COMPRESSOR: RefCell<Option<zstd::bulk::Compressor<'static>>> = const { RefCell::new(None) };
}

pub(crate) fn build(salt: &[u8; SALT], content: &[u8]) -> Result<Frame, StoreError> {
    if content.len() > MAX_CONTENT {
        return Err(StoreError::BadRecord(
            "a content is larger than 256 MiB".into(),
        ));
    }
    let mut raw = Vec::with_capacity(SALT + content.len());
    raw.extend_from_slice(salt);
    raw.extend_from_slice(content);
    let id = ObjectId(Sha256::digest(&raw).into());
    let packed = compress(&raw).filter(|packed| packed.len() < raw.len());
    let (flags, payload) = match &packed {
        Some(packed) => (FLAG_ZSTD, packed),
        None => (0, &raw),
    };
    Ok(Frame {
        id,
        bytes: assemble(id, flags, raw.len(), payload),
    })
}

/// What takes the place of an erased object.
pub(crate) fn tombstone(id: ObjectId) -> Frame {
    Frame {
        id,
        bytes: assemble(id, FLAG_ERASED, 0, &[]),
    }
}

fn assemble(id: ObjectId, flags: u8, raw_len: usize, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER + payload.len());
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&[flags, 0, 0, 0]);
    // Both lengths are below MAX_CONTENT plus the salt.
    bytes.extend_from_slice(&(payload.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&(raw_len as u32).to_le_bytes());
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(&id.0);
    bytes.extend_from_slice(payload);
    let crc = checksum(&bytes);
    bytes[16..20].copy_from_slice(&crc.to_le_bytes());
    bytes
}

fn compress(raw: &[u8]) -> Option<Vec<u8>> {
    COMPRESSOR.with_borrow_mut(|slot| {
        if slot.is_none() {
            *slot = zstd::bulk::Compressor::new(ZSTD_LEVEL).ok();
        }
        slot.as_mut()?.compress(raw).ok()
    })
}

/// `frame` is a header and its payload, nothing more.
fn checksum(frame: &[u8]) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(&frame[4..16]);
    crc.update(&frame[20..]);
    crc.finalize()
}

impl Header {
    /// `None`: no frame begins here.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Header> {
        let head = bytes.get(..HEADER)?;
        let word =
            |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let (stored, raw) = (word(8) as usize, word(12) as usize);
        let limit = MAX_CONTENT + SALT;
        if !head.starts_with(MAGIC) || stored > limit || raw > limit {
            return None;
        }
        let mut id = [0; 32];
        id.copy_from_slice(&head[20..HEADER]);
        Some(Header {
            id: ObjectId(id),
            stored,
            raw,
            flags: head[4],
            crc: word(16),
        })
    }

    pub(crate) fn total(&self) -> usize {
        HEADER + self.stored
    }

    pub(crate) fn erased(&self) -> bool {
        self.flags & FLAG_ERASED != 0
    }

    /// `frame` has [`Header::total`] bytes.
    pub(crate) fn intact(&self, frame: &[u8]) -> bool {
        frame.len() == self.total() && checksum(frame) == self.crc
    }

    /// The content, once CRC, lengths and name agree.
    pub(crate) fn open(&self, frame: &[u8]) -> Option<Vec<u8>> {
        if !self.intact(frame) || self.erased() {
            return None;
        }
        let payload = &frame[HEADER..];
        let mut raw = match self.flags & FLAG_ZSTD {
            0 => payload.to_vec(),
            _ => zstd::bulk::decompress(payload, self.raw).ok()?,
        };
        let digest: [u8; 32] = Sha256::digest(&raw).into();
        if raw.len() != self.raw || raw.len() < SALT || digest != self.id.0 {
            return None;
        }
        raw.drain(..SALT);
        Some(raw)
    }
}

/// A walk over the bytes of a pack.
pub(crate) enum Step {
    Frame {
        at: usize,
        header: Header,
    },
    /// No whole frame from `at` up to `until`.
    Damage {
        at: usize,
        until: usize,
        id: Option<ObjectId>,
    },
}

/// Walks frames, going on at the next whole frame after damage.
pub(crate) fn walk(bytes: &[u8], mut step: impl FnMut(Step)) {
    let mut at = 0;
    while at < bytes.len() {
        if let Some(header) = whole(&bytes[at..]) {
            step(Step::Frame { at, header });
            at += header.total();
            continue;
        }
        let until = next_whole(bytes, at + 1).unwrap_or(bytes.len());
        let id = Header::parse(&bytes[at..]).map(|header| header.id);
        step(Step::Damage { at, until, id });
        at = until;
    }
}

fn whole(bytes: &[u8]) -> Option<Header> {
    let header = Header::parse(bytes)?;
    bytes
        .get(..header.total())
        .filter(|frame| header.intact(frame))
        .map(|_| header)
}

fn next_whole(bytes: &[u8], from: usize) -> Option<usize> {
    memchr::memmem::find_iter(&bytes[from..], MAGIC)
        .map(|found| from + found)
        .find(|at| whole(&bytes[*at..]).is_some())
}
