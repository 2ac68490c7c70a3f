//! Is the journal still the one that was read? Checksums of its files tell so in
//! a fraction of the time that walking the chain takes.
//!
//! They prove nothing to anybody else: they stand beside what is derived, and a
//! difference only means that the chain is walked.

use std::io;

use serde::{Deserialize, Serialize};

use super::Journal;
use super::segments;

/// Of one file: how much of it there was, and what stood there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileSum {
    pub file: String,
    pub len: u64,
    /// CRC-32 of the first `len` bytes; `None` for packs, whose frames have their own.
    pub crc: Option<u32>,
}

/// Read in one piece.
const PIECE: usize = 1 << 20;

impl Journal {
    /// The sums of all files; of those in `known` only what is new is read.
    pub(crate) fn sums(&self, known: &[FileSum]) -> io::Result<Vec<FileSum>> {
        let lens: Vec<(u32, u64)> = {
            let segments = self.segments.read();
            segments.iter().map(|s| (s.number, s.len)).collect()
        };
        let mut sums = Vec::new();
        for (number, len) in lens.into_iter().filter(|(_, len)| *len > 0) {
            let file = segments::name(number);
            let before = known.iter().find(|sum| sum.file == file && sum.len <= len);
            let crc = self.crc(&file, before, len)?;
            sums.push(FileSum {
                file,
                len,
                crc: Some(crc),
            });
        }
        for file in self.packs.files() {
            let len = self.disk.len(&file)?.unwrap_or(0);
            sums.push(FileSum {
                file,
                len,
                crc: None,
            });
        }
        Ok(sums)
    }

    /// Does every segment begin with what it began with?
    pub(crate) fn begins_with(&self, known: &[FileSum]) -> io::Result<bool> {
        for sum in known {
            let Some(crc) = sum.crc else { continue };
            let len = self.disk.len(&sum.file)?.unwrap_or(0);
            if len < sum.len || self.crc(&sum.file, None, sum.len)? != crc {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Packs that were there and are not.
    pub(crate) fn missing_packs(&self, known: &[FileSum]) -> Vec<String> {
        let packs = known.iter().filter(|sum| sum.crc.is_none());
        let gone = packs.filter(|sum| matches!(self.disk.len(&sum.file), Ok(None)));
        gone.map(|sum| sum.file.clone()).collect()
    }

    fn crc(&self, file: &str, before: Option<&FileSum>, len: u64) -> io::Result<u32> {
        let known = before.and_then(|sum| Some((sum.crc?, sum.len)));
        let (crc, mut at) = known.unwrap_or((0, 0));
        let mut hasher = crc32fast::Hasher::new_with_initial_len(crc, at);
        while at < len {
            let want = usize::try_from(len - at).map_or(PIECE, |left| left.min(PIECE));
            let bytes = self.disk.read_at(file, at, want)?;
            if bytes.is_empty() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            hasher.update(&bytes);
            at += bytes.len() as u64;
        }
        Ok(hasher.finalize())
    }
}
