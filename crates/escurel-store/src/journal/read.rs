//! Reading records in order, the chain checked on the way.

use std::sync::Arc;

use super::Journal;
use super::segments::{self, Segment};
use crate::record::decode;
use crate::{Record, StoreError};

const PIECE: usize = 256 << 10;

/// Records from one sequence number to another.
pub(crate) struct Records {
    journal: Arc<Journal>,
    next: u64,
    until: u64,
    prev: [u8; 32],
    lines: Option<Lines>,
    done: bool,
}

/// Lines of one segment, from some offset on.
struct Lines {
    segment: u32,
    file: String,
    offset: u64,
    end: u64,
    buffer: Vec<u8>,
    at: usize,
}

impl Journal {
    /// Records after `after`, up to the head of this moment.
    pub(crate) fn records(journal: &Arc<Journal>, after: u64) -> Records {
        let (next, until) = (after.saturating_add(1), journal.head());
        let journal = journal.clone();
        Records {
            journal,
            next,
            until,
            prev: [0; 32],
            lines: None,
            done: next > until,
        }
    }

    fn segment_of(&self, seq: u64) -> Option<Segment> {
        let segments = self.segments.read();
        let after = segments.partition_point(|segment| segment.first_seq <= seq);
        after
            .checked_sub(1)
            .and_then(|index| segments.get(index))
            .cloned()
    }

    fn fail_io(&self, file: &str, error: std::io::Error) -> StoreError {
        StoreError::from_io(&self.disk.path(file), error)
    }

    /// Lines of the segment from record `seq` on.
    fn lines_from(&self, segment: &Segment, seq: u64) -> Result<Lines, StoreError> {
        let (mut at, offset) = segment.nearest(seq);
        let file = segments::name(segment.number);
        let mut lines = Lines {
            segment: segment.number,
            file,
            offset,
            end: segment.len,
            buffer: Vec::new(),
            at: 0,
        };
        while at < seq {
            if lines.next(self)?.is_none() {
                return Err(self.break_at(at, "the segment ends before it".into()));
            }
            at += 1;
        }
        let place = lines.place();
        if let Some(segment) = self
            .segments
            .write()
            .iter_mut()
            .find(|known| known.number == segment.number)
        {
            segment.remember(seq, place);
        }
        Ok(lines)
    }
}

impl Lines {
    /// Offset of the next line in the file.
    fn place(&self) -> u64 {
        self.offset - (self.buffer.len() - self.at) as u64
    }

    /// Fills the buffer until it has a whole line; answers where that ends.
    fn fill(&mut self, journal: &Journal) -> Result<Option<usize>, StoreError> {
        let mut searched = self.at;
        loop {
            if let Some(end) = memchr::memchr(b'\n', &self.buffer[searched..]) {
                return Ok(Some(searched + end));
            }
            if self.offset >= self.end {
                return Ok(None);
            }
            self.buffer.drain(..self.at);
            self.at = 0;
            searched = self.buffer.len();
            let want = usize::try_from(self.end - self.offset)
                .unwrap_or(PIECE)
                .min(PIECE);
            let piece = journal
                .disk
                .read_at(&self.file, self.offset, want)
                .map_err(|error| journal.fail_io(&self.file, error))?;
            if piece.is_empty() {
                return Ok(None);
            }
            self.offset += piece.len() as u64;
            self.buffer.extend_from_slice(&piece);
        }
    }

    fn next(&mut self, journal: &Journal) -> Result<Option<&[u8]>, StoreError> {
        let Some(end) = self.fill(journal)? else {
            return Ok(None);
        };
        let line = &self.buffer[self.at..end];
        self.at = end + 1;
        Ok(Some(line))
    }
}

impl Records {
    fn step(&mut self) -> Result<Record, StoreError> {
        let seq = self.next;
        let mut lines = match self.lines.take() {
            Some(lines) => lines,
            None => self.begin(seq)?,
        };
        let journal = self.journal.clone();
        let line = match lines.next(&journal)? {
            Some(line) => line,
            None => {
                lines = self.following(lines.segment, seq)?;
                lines
                    .next(&journal)?
                    .ok_or_else(|| journal.break_at(seq, "it is missing".into()))?
            }
        };
        let record = decode(line).map_err(|detail| journal.break_at(seq, detail))?;
        if record.seq != seq {
            return Err(journal.break_at(seq, format!("seq {} is in its place", record.seq)));
        }
        if record.prev_hash != self.prev {
            let detail = "it does not follow the record before it (prev_hash)";
            return Err(journal.break_at(seq, detail.into()));
        }
        self.prev = record.entry_hash;
        self.lines = Some(lines);
        Ok(record)
    }

    /// Finds the line of `seq` and the hash that it must name.
    fn begin(&mut self, seq: u64) -> Result<Lines, StoreError> {
        let journal = self.journal.clone();
        let segment = journal
            .segment_of(seq)
            .ok_or_else(|| journal.break_at(seq, "its segment is missing".into()))?;
        self.prev = segment.prev;
        if seq == segment.first_seq {
            return journal.lines_from(&segment, seq);
        }
        let mut lines = journal.lines_from(&segment, seq - 1)?;
        let line = lines.next(&journal)?;
        let line = line.ok_or_else(|| journal.break_at(seq - 1, "it is missing".into()))?;
        let before = decode(line).map_err(|detail| journal.break_at(seq - 1, detail))?;
        self.prev = before.entry_hash;
        Ok(lines)
    }

    /// The active segment may have grown, or been sealed, since it was opened.
    fn following(&mut self, number: u32, seq: u64) -> Result<Lines, StoreError> {
        let journal = self.journal.clone();
        let segment = journal
            .segment_of(seq)
            .ok_or_else(|| journal.break_at(seq, "its segment is missing".into()))?;
        match segment.number == number {
            true => self.begin(seq),
            false => journal.lines_from(&segment, seq),
        }
    }
}

impl Iterator for Records {
    type Item = Result<Record, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let step = self.step();
        self.next += 1;
        self.done = step.is_err() || self.next > self.until;
        Some(step)
    }
}
