//! Segments of the chain and the seals of the finished ones.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::CHAIN;
use crate::disk::Disk;
use crate::{StoreError, hex};

/// A file of the chain as far as it is known without reading it.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    pub(crate) number: u32,
    pub(crate) first_seq: u64,
    /// Hash that the first record names as its predecessor.
    pub(crate) prev: [u8; 32],
    /// Bytes of whole, durable records.
    pub(crate) len: u64,
    /// Known places: (seq, offset of its line), ascending, far apart.
    pub(crate) marks: Vec<(u64, u64)>,
}

/// Bytes between two remembered places.
const MARK_EVERY: u64 = 64 << 10;

impl Segment {
    /// The nearest known place at or before `seq`.
    pub(crate) fn nearest(&self, seq: u64) -> (u64, u64) {
        let after = self.marks.partition_point(|(at, _)| *at <= seq);
        match after.checked_sub(1).and_then(|index| self.marks.get(index)) {
            Some(mark) => *mark,
            None => (self.first_seq, 0),
        }
    }

    pub(crate) fn remember(&mut self, seq: u64, offset: u64) {
        if self.nearest(seq).1 + MARK_EVERY <= offset {
            let index = self.marks.partition_point(|(at, _)| *at < seq);
            self.marks.insert(index, (seq, offset));
        }
    }
}

/// What a finished segment holds, so that a missing or changed one is named.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Seal {
    pub(crate) first_seq: u64,
    pub(crate) last_seq: u64,
    pub(crate) count: u64,
    pub(crate) bytes: u64,
    pub(crate) prev: String,
    pub(crate) tip: String,
    pub(crate) sha256: String,
}

impl Seal {
    /// Do its numbers agree with each other?
    pub(crate) fn spans(&self) -> bool {
        self.first_seq.checked_add(self.count) == self.last_seq.checked_add(1)
    }

    pub(crate) fn tip(&self) -> Option<[u8; 32]> {
        hex::decode(self.tip.as_bytes())
    }

    pub(crate) fn prev(&self) -> Option<[u8; 32]> {
        hex::decode(self.prev.as_bytes())
    }
}

pub(crate) fn name(number: u32) -> String {
    format!("{CHAIN}/{number:08}.jsonl")
}

pub(crate) fn seal_name(number: u32) -> String {
    format!("{CHAIN}/{number:08}.seal")
}

/// Numbers of segments that are there or whose seal is, ascending.
pub(crate) fn numbers(disk: &dyn Disk) -> Result<Vec<u32>, StoreError> {
    let names = disk
        .list(CHAIN)
        .map_err(|error| StoreError::from_io(&disk.path(CHAIN), error))?;
    let number = |name: &String| {
        let stem = name
            .strip_suffix(".jsonl")
            .or_else(|| name.strip_suffix(".seal"))?;
        stem.parse().ok()
    };
    let mut numbers: Vec<u32> = names.iter().filter_map(number).collect();
    numbers.dedup();
    Ok(numbers)
}

/// `Ok(None)`: no seal. `Err`: there is one, but it cannot be understood.
pub(crate) fn read_seal(disk: &dyn Disk, number: u32) -> Result<Option<Seal>, StoreError> {
    let name = seal_name(number);
    let bytes = disk
        .read_all(&name)
        .map_err(|error| StoreError::from_io(&disk.path(&name), error))?;
    let Some(bytes) = bytes else { return Ok(None) };
    let seal: Result<Seal, _> = serde_json::from_slice(&bytes);
    match seal {
        Ok(seal) if seal.tip().is_some() && seal.prev().is_some() => Ok(Some(seal)),
        Ok(_) => Err(StoreError::Damaged {
            what: name,
            detail: "its hashes are not hashes".into(),
        }),
        Err(error) => Err(StoreError::Damaged {
            what: name,
            detail: error.to_string(),
        }),
    }
}

/// SHA-256 of a file's first `len` bytes, read in pieces.
pub(crate) fn digest(disk: &dyn Disk, name: &str, len: u64) -> std::io::Result<[u8; 32]> {
    let mut hash = Sha256::new();
    let mut offset = 0;
    while offset < len {
        let piece = usize::try_from(len - offset)
            .unwrap_or(usize::MAX)
            .min(1 << 20);
        let bytes = disk.read_at(name, offset, piece)?;
        if bytes.is_empty() {
            break;
        }
        offset += bytes.len() as u64;
        hash.update(&bytes);
    }
    Ok(hash.finalize().into())
}
