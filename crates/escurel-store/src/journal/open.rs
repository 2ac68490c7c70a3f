//! Opening: seals of finished segments, the tail of the last one.

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;

use parking_lot::{Mutex, RwLock};

use super::append::{Queue, Writer};
use super::packs::Packs;
use super::segments::{self, Segment};
use super::{APPLIED, Journal, Limits};
use crate::disk::Disk;
use crate::record::{GENESIS, decode, peek_seq};
use crate::{Env, Record, StoreError};

/// How much of the last segment is checked, unless one line is longer.
const TAIL: u64 = 1 << 20;

struct Chain {
    segments: Vec<Segment>,
    seq: u64,
    tip: [u8; 32],
    broken: Option<(u64, String)>,
    warnings: Vec<String>,
    writable: bool,
    /// An unfinished line was cut off the end.
    torn: bool,
}

impl Journal {
    /// `writable`: a torn tail may be cut on disk, not only in memory.
    pub(crate) fn open(
        disk: Arc<dyn Disk>,
        env: Env,
        limits: Limits,
        writable: bool,
    ) -> Result<Journal, StoreError> {
        let mut chain = Chain {
            segments: Vec::new(),
            seq: 0,
            tip: GENESIS,
            broken: None,
            warnings: Vec::new(),
            writable,
            torn: false,
        };
        chain.load(&*disk)?;
        let applied = read_applied(&*disk, &mut chain)?;
        let mut warnings = chain.warnings;
        let packs = Packs::open(
            disk.clone(),
            env.clone(),
            limits.pack,
            writable,
            &mut warnings,
        )?;
        if writable {
            sync_last(&*disk, &chain.segments)?;
        }
        let broken = OnceLock::new();
        if let Some(found) = chain.broken {
            let _ = broken.set(found);
        }
        Ok(Journal {
            disk,
            env,
            limits,
            packs,
            queue: Mutex::new(Queue::default()),
            writer: Mutex::new(Writer {
                seq: chain.seq,
                tip: chain.tip,
                poisoned: None,
            }),
            segments: RwLock::new(chain.segments),
            head: AtomicU64::new(chain.seq),
            applied: AtomicU64::new(applied),
            applied_lock: Mutex::new(()),
            maintenance: Mutex::new(()),
            warnings,
            broken,
        })
    }

    /// Clean end: the next open need not scan the active pack.
    pub(crate) fn close(&self) {
        if let Err(error) = self.packs.close() {
            tracing::warn!(%error, "the object index could not be written; it will be made again");
        }
    }
}

impl Chain {
    fn load(&mut self, disk: &dyn Disk) -> Result<(), StoreError> {
        let numbers = segments::numbers(disk)?;
        let last = numbers.last().copied().unwrap_or(1);
        for number in 1..=last {
            if self.broken.is_some() {
                break;
            }
            match segments::read_seal(disk, number) {
                Ok(Some(seal)) => self.sealed(disk, number, &seal)?,
                Ok(None) if number == last => self.unsealed(disk, number)?,
                Ok(None) => self.break_here(format!("segment {number} has no seal")),
                Err(StoreError::Damaged { what, detail }) => {
                    self.break_here(format!("{what} is damaged: {detail}"));
                }
                Err(error) => return Err(error),
            }
        }
        if numbers.last().is_some() && self.segments.last().is_none_or(|s| s.number < last) {
            return Ok(());
        }
        self.begin_next(disk)
    }

    /// After a sealed segment comes an empty one.
    fn begin_next(&mut self, disk: &dyn Disk) -> Result<(), StoreError> {
        if self.broken.is_some() {
            return Ok(());
        }
        let sealed = match self.segments.last() {
            Some(segment) => segments::read_seal(disk, segment.number)?.is_some(),
            None => true,
        };
        if sealed {
            let number = self.segments.last().map_or(1, |segment| segment.number + 1);
            self.segments.push(self.segment(number, 0));
        }
        Ok(())
    }

    fn segment(&self, number: u32, len: u64) -> Segment {
        Segment {
            number,
            first_seq: self.seq + 1,
            prev: self.tip,
            len,
            marks: Vec::new(),
        }
    }

    fn break_here(&mut self, detail: String) {
        self.broken = Some((self.seq + 1, detail));
    }

    fn sealed(
        &mut self,
        disk: &dyn Disk,
        number: u32,
        seal: &segments::Seal,
    ) -> Result<(), StoreError> {
        let name = segments::name(number);
        let len = disk
            .len(&name)
            .map_err(|error| StoreError::from_io(&disk.path(&name), error))?;
        let joined = seal.first_seq == self.seq + 1 && seal.prev() == Some(self.tip);
        match (len, joined) {
            (Some(len), true) if len == seal.bytes => {
                self.segments.push(self.segment(number, len));
                self.seq = seal.last_seq;
                self.tip = seal.tip().unwrap_or(GENESIS);
            }
            (None, _) => self.break_here(format!("segment {number} is missing")),
            (Some(_), false) => self.break_here(format!("segment {number} does not follow")),
            (Some(len), true) => {
                self.break_here(format!(
                    "segment {number} has {len} bytes, sealed with {}",
                    seal.bytes
                ));
            }
        }
        Ok(())
    }

    fn unsealed(&mut self, disk: &dyn Disk, number: u32) -> Result<(), StoreError> {
        let name = segments::name(number);
        let fail = |error| StoreError::from_io(&disk.path(&name), error);
        let len = disk.len(&name).map_err(fail)?.unwrap_or(0);
        let mut segment = self.segment(number, len);
        let (start, tail) = read_tail(disk, &name, len).map_err(fail)?;
        let mut walk = TailWalk {
            prev: (start == 0).then_some((self.seq, self.tip)),
            good: start,
        };
        let (end, broken) = walk.run(&tail, start);
        segment.len = walk.good;
        if let Some((seq, tip)) = walk.prev {
            (self.seq, self.tip) = (seq, tip);
        }
        if let Some(detail) = broken {
            let bad = usize::try_from(end - start)
                .ok()
                .and_then(|at| tail.get(at..));
            let line = bad.and_then(|bad| bad.split(|byte| *byte == b'\n').next());
            let seq = line.filter(|_| walk.prev.is_none()).and_then(peek_seq);
            self.broken = Some((seq.unwrap_or(self.seq + 1), detail));
        } else if end < len {
            self.cut(disk, &name, end, len).map_err(fail)?;
        }
        self.segments.push(segment);
        Ok(())
    }

    fn cut(&mut self, disk: &dyn Disk, name: &str, end: u64, len: u64) -> std::io::Result<()> {
        self.torn = true;
        self.warnings.push(format!(
            "{name}: {} bytes of an unfinished write were cut",
            len - end
        ));
        match self.writable {
            true => disk.truncate(name, end),
            false => Ok(()),
        }
    }
}

/// A killed process may have written records that it did not come to sync; they
/// count from here on. Their objects were synced before.
fn sync_last(disk: &dyn Disk, segments: &[Segment]) -> Result<(), StoreError> {
    let Some(last) = segments.last().filter(|segment| segment.len > 0) else {
        return Ok(());
    };
    let name = segments::name(last.number);
    disk.sync(&name)
        .map_err(|error| StoreError::from_io(&disk.path(&name), error))
}

/// Whole lines at the end of the file; at least one if there is one.
fn read_tail(disk: &dyn Disk, name: &str, len: u64) -> std::io::Result<(u64, Vec<u8>)> {
    let mut want = TAIL;
    loop {
        let start = len.saturating_sub(want);
        let size = usize::try_from(len - start).map_err(|_| std::io::ErrorKind::FileTooLarge)?;
        let mut bytes = match size {
            0 => Vec::new(),
            size => disk.read_at(name, start, size)?,
        };
        if start == 0 {
            return Ok((0, bytes));
        }
        let first = memchr::memchr(b'\n', &bytes).map(|at| at + 1);
        if let Some(first) = first
            && memchr::memchr(b'\n', &bytes[first..]).is_some()
        {
            bytes.drain(..first);
            return Ok((start + first as u64, bytes));
        }
        want *= 2;
    }
}

struct TailWalk {
    /// Seq and hash of the record before; `None`: not known yet.
    prev: Option<(u64, [u8; 32])>,
    /// End of the last good line.
    good: u64,
}

impl TailWalk {
    /// Where good lines end, and what is broken there if it is not just torn.
    fn run(&mut self, tail: &[u8], start: u64) -> (u64, Option<String>) {
        let mut at = 0;
        while at < tail.len() {
            let newline = memchr::memchr(b'\n', &tail[at..]);
            let line = newline.map(|end| &tail[at..at + end]);
            let checked = match line {
                Some(line) => self.check(line),
                None => Err("it is not finished".into()),
            };
            if let Err(detail) = checked {
                let broken = !is_torn(&tail[at..]);
                return (start + at as u64, broken.then_some(detail));
            }
            at += newline.map_or(0, |end| end + 1);
            self.good = start + at as u64;
        }
        (start + at as u64, None)
    }

    fn check(&mut self, line: &[u8]) -> Result<(), String> {
        let record: Record = decode(line)?;
        if let Some((seq, tip)) = self.prev {
            if record.seq != seq + 1 {
                return Err(format!("seq {} follows seq {seq}", record.seq));
            }
            if record.prev_hash != tip {
                return Err("it does not follow the record before it (prev_hash)".into());
            }
        }
        self.prev = Some((record.seq, record.entry_hash));
        Ok(())
    }
}

/// A crash leaves an unfinished line, or a hole of NUL bytes; a whole line
/// that is wrong, or good lines after a bad one, are damage.
fn is_torn(rest: &[u8]) -> bool {
    let mut lines = rest.split(|byte| *byte == b'\n');
    let first = lines.next().unwrap_or_default();
    let whole = first.len() < rest.len();
    (!whole || first.contains(&0)) && !lines.any(|line| decode(line).is_ok())
}

fn read_applied(disk: &dyn Disk, chain: &mut Chain) -> Result<u64, StoreError> {
    let bytes = disk
        .read_all(APPLIED)
        .map_err(|error| StoreError::from_io(&disk.path(APPLIED), error))?;
    let text = String::from_utf8(bytes.unwrap_or_default()).unwrap_or_default();
    let applied = match text.trim() {
        "" => 0,
        text => text.parse().unwrap_or_else(|_| {
            chain.warnings.push(format!(
                "{APPLIED} is damaged; page files are compared again"
            ));
            0
        }),
    };
    if chain.torn && applied == chain.seq + 1 {
        // Whoever cuts into the last line takes one record; what it was about is in its file.
        chain.warnings.push(format!(
            "record {applied} was complete once and lost its end; its page is taken up from its file as an outside edit"
        ));
        return Ok(chain.seq);
    }
    if applied > chain.seq && chain.broken.is_none() {
        let detail = format!("records through {applied} were written once and are gone");
        chain.break_here(detail);
    }
    Ok(applied.min(chain.seq))
}
