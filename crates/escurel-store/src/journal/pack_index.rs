//! The sidecar of a pack: which objects it holds and where. A hint that can be
//! made again from the pack; a damaged one is ignored.
//!
//! Layout, little endian: magic 4, covered length 8, count 4, entries of id 32
//! and offset 4, CRC-32 of all before.

use crate::ObjectId;

const MAGIC: &[u8; 4] = b"ESI1";
const HEAD: usize = 16;
const ENTRY: usize = 36;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Entry {
    pub(crate) id: ObjectId,
    pub(crate) offset: u32,
}

/// `covered`: the index knows all frames of the pack's first so many bytes.
pub(crate) fn encode(covered: u64, entries: &[Entry]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEAD + entries.len() * ENTRY + 4);
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&covered.to_le_bytes());
    bytes.extend_from_slice(&(entries.len() as u32).to_le_bytes());
    for entry in entries {
        bytes.extend_from_slice(&entry.id.0);
        bytes.extend_from_slice(&entry.offset.to_le_bytes());
    }
    let crc = crc32fast::hash(&bytes);
    bytes.extend_from_slice(&crc.to_le_bytes());
    bytes
}

pub(crate) fn decode(bytes: &[u8]) -> Option<(u64, Vec<Entry>)> {
    let (body, crc) = bytes.split_last_chunk::<4>()?;
    if !body.starts_with(MAGIC) || crc32fast::hash(body) != u32::from_le_bytes(*crc) {
        return None;
    }
    let covered = u64::from_le_bytes(body.get(4..12)?.try_into().ok()?);
    let count = u32::from_le_bytes(body.get(12..16)?.try_into().ok()?);
    let entries = body.get(HEAD..)?;
    if entries.len() != count as usize * ENTRY {
        return None;
    }
    let entry = |chunk: &[u8]| {
        let (id, offset) = chunk.split_first_chunk::<32>()?;
        let offset = u32::from_le_bytes(offset.try_into().ok()?);
        Some(Entry {
            id: ObjectId(*id),
            offset,
        })
    };
    entries
        .chunks_exact(ENTRY)
        .map(entry)
        .collect::<Option<Vec<_>>>()
        .map(|e| (covered, e))
}
