//! A new chain out of what is left of a broken one.
//!
//! Reads the broken chain and writes the new one to another disk. Invariant: a
//! record that is right in itself goes on with all that it says; only its number
//! and its links are new.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::segments::{self, Seal};
use super::{APPLIED, CHAIN, Journal, JournalReport, Limits};
use crate::disk::Disk;
use crate::record::{GENESIS, decode, encode, hash_is_right};
use crate::{Env, Kind, ObjectId, Record, StoreError, hex};

/// What a repair finds, and what it makes of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepairPlan {
    /// Records that can be read; after a repair one more tells of it.
    pub records: u64,
    /// Contents that they name and that cannot be read.
    pub missing_contents: u64,
    /// `None`: the chain is whole, and a repair changes nothing.
    pub broken: Option<BrokenChain>,
}

/// A chain that cannot be gone on with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokenChain {
    /// Number of the first record that is not as it was, and what is wrong with the chain.
    pub first: u64,
    pub problem: String,
    /// Records that are gone: how many, and their numbers, such as `4, 7-9`.
    pub lost: u64,
    pub lost_records: String,
    /// Folder beside the chain's that it is moved to.
    pub set_aside: String,
    /// File, numbers and SHA-256 of each old segment.
    segments: Vec<String>,
    /// The `applied` mark of the new chain.
    applied: u64,
}

impl Journal {
    /// `set_aside`: a name that is free.
    pub(crate) fn plan_repair(&self, set_aside: String) -> Result<RepairPlan, StoreError> {
        let report = self.verify();
        let mut found = Found::default();
        let segments = found.take_chain(&*self.disk)?;
        let mark = read_mark(&*self.disk)?;
        let broken = self.broken.get().map(|(seq, detail)| {
            let lost = found.lost(mark);
            BrokenChain {
                first: found.first_broken.unwrap_or(*seq),
                problem: problem(&report).unwrap_or_else(|| detail.clone()),
                lost: lost.iter().map(|(from, to)| to - from + 1).sum(),
                lost_records: ranges(&lost),
                applied: found.applied(mark, &lost),
                set_aside,
                segments,
            }
        });
        Ok(RepairPlan {
            records: found.kept.len() as u64,
            missing_contents: found.missing(&report),
            broken,
        })
    }

    /// Writes the new chain; durable on return.
    pub(crate) fn write_repaired(
        &self,
        to: Arc<dyn Disk>,
        broken: &BrokenChain,
        actor: &str,
    ) -> Result<(), StoreError> {
        let new = Arc::new(Journal::open(to, self.env.clone(), self.limits, true)?);
        let mut chain = NewChain::of(&new);
        chain.push(broken.record(actor, &self.env))?;
        let mut whole = Whole::default();
        each_segment(&*self.disk, |_, _, bytes| {
            whole.each(bytes, |record| record.map_or(Ok(()), |r| chain.push(r)))
        })?;
        chain.flush()?;
        new.set_applied(broken.applied)?;
        // What takes the place of the old chain has been read once.
        Journal::records(&new, 0).try_for_each(|record| record.map(drop))
    }
}

/// The first thing that the full check has against the chain.
fn problem(report: &JournalReport) -> Option<String> {
    let mut findings = report.findings.iter();
    let first = findings.find(|finding| finding.file.starts_with(CHAIN))?;
    Some(first.to_string())
}

impl BrokenChain {
    /// The first record of the new chain.
    fn record(&self, actor: &str, env: &Env) -> Record {
        let mut note: Map<String, Value> = Map::new();
        note.insert("set_aside".into(), self.set_aside.as_str().into());
        note.insert("first_broken".into(), self.first.into());
        note.insert("lost".into(), self.lost.into());
        note.insert("lost_records".into(), self.lost_records.as_str().into());
        note.insert("segments".into(), self.segments.join("; ").into());
        Record {
            seq: 0,
            at: env.clock.now_micros(),
            kind: Kind::ChainRepaired,
            actor: actor.to_owned(),
            uid: None,
            path: None,
            version: None,
            content: None,
            from: None,
            note,
            prev_hash: GENESIS,
            entry_hash: GENESIS,
        }
    }
}

/// Lines on their way into the new chain.
struct NewChain<'a> {
    journal: &'a Journal,
    batch: usize,
    lines: Vec<u8>,
    end: (u64, [u8; 32]),
}

/// Bytes written with one fsync.
const BATCH: u64 = 1 << 20;

impl NewChain<'_> {
    fn of(journal: &Journal) -> NewChain<'_> {
        let Limits { segment, .. } = journal.limits;
        NewChain {
            journal,
            batch: usize::try_from(segment.min(BATCH)).unwrap_or(usize::MAX),
            lines: Vec::new(),
            end: (0, GENESIS),
        }
    }

    fn push(&mut self, mut record: Record) -> Result<(), StoreError> {
        (record.seq, record.prev_hash) = (self.end.0 + 1, self.end.1);
        encode(&mut record, &mut self.lines)?;
        self.end = (record.seq, record.entry_hash);
        match self.lines.len() < self.batch {
            true => Ok(()),
            false => self.flush(),
        }
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        if !self.lines.is_empty() {
            self.journal.write_records(&self.lines, self.end)?;
            self.lines.clear();
        }
        Ok(())
    }
}

/// What reading the old chain came to.
#[derive(Default)]
struct Found {
    /// Numbers that the records had, in their order.
    kept: Vec<u64>,
    contents: HashSet<ObjectId>,
    first_broken: Option<u64>,
    /// Seq and hash of the record before.
    before: (u64, [u8; 32]),
    /// Lines since then that are no records any more.
    unreadable: u64,
    /// The newest record that a seal names.
    sealed: u64,
}

/// Numbers from one to another, both included.
type Range = (u64, u64);

impl Found {
    /// Answers what is to be said of each segment.
    fn take_chain(&mut self, disk: &dyn Disk) -> Result<Vec<String>, StoreError> {
        let mut told = Vec::new();
        let mut whole = Whole::default();
        each_segment(disk, |name, seal, bytes| {
            let from = self.kept.len();
            whole.each(bytes, |record| {
                self.take(record.as_ref());
                Ok(())
            })?;
            let seqs = &self.kept[from..];
            let read = seqs.iter().min().copied().zip(seqs.iter().max().copied());
            let sealed = seal.filter(|seal| number(seal.last_seq) && seal.spans());
            let sealed = sealed.map(|seal| (seal.first_seq, seal.last_seq));
            self.sealed = self.sealed.max(sealed.map_or(0, |(_, last)| last));
            told.extend(bytes.map(|bytes| tell(name, sealed.or(read), bytes)));
            Ok(())
        })?;
        Ok(told)
    }

    fn take(&mut self, record: Option<&Record>) {
        let next = self.before.0 + 1;
        let follows = record.is_some_and(|r| (r.seq, r.prev_hash) == (next, self.before.1));
        if !follows {
            self.first_broken.get_or_insert(next);
        }
        let Some(record) = record else {
            self.unreadable += 1;
            return;
        };
        self.kept.push(record.seq);
        self.contents.extend(record.content.map(|c| c.object));
        self.before = (record.seq, record.entry_hash);
        self.unreadable = 0;
    }

    /// Numbers that were given and that no record has.
    fn lost(&self, mark: Option<u64>) -> Vec<Range> {
        let mut known = self.kept.clone();
        known.sort_unstable();
        let mut lost = Vec::new();
        let mut last = 0;
        for seq in known {
            if seq > last + 1 {
                lost.push((last + 1, seq - 1));
            }
            last = seq;
        }
        let end = self
            .sealed
            .max(mark.unwrap_or(0))
            .max(last + self.unreadable);
        if end > last {
            lost.push((last + 1, end));
        }
        lost
    }

    /// The same record as before. When it is not known, or records after it are lost that
    /// changed files, files count as they are: none is taken for older than its page.
    fn applied(&self, mark: Option<u64>, lost: &[Range]) -> u64 {
        let all = self.kept.len();
        let known = mark.filter(|mark| lost.iter().all(|(_, to)| to <= mark));
        let through = known.map_or(all, |mark| {
            let last = self.kept.iter().rposition(|seq| *seq <= mark);
            last.map_or(0, |index| index + 1)
        });
        1 + through as u64
    }

    fn missing(&self, report: &JournalReport) -> u64 {
        let gone: HashSet<ObjectId> = report.findings.iter().filter_map(|f| f.object).collect();
        gone.intersection(&self.contents).count() as u64
    }
}

fn tell(name: &str, seqs: Option<Range>, bytes: &[u8]) -> String {
    use sha2::{Digest, Sha256};
    let file = name.rsplit('/').next().unwrap_or(name);
    let seqs = seqs.map_or_else(
        || "no records".into(),
        |seqs| format!("records {}", range(&seqs)),
    );
    format!(
        "{file} {seqs} sha256 {}",
        hex::encode(&Sha256::digest(bytes))
    )
}

fn range((from, to): &Range) -> String {
    match from == to {
        true => from.to_string(),
        false => format!("{from}-{to}"),
    }
}

fn ranges(all: &[Range]) -> String {
    let all: Vec<String> = all.iter().map(range).collect();
    all.join(", ")
}

/// Segments in order, each with what is left of its seal and of its file.
fn each_segment(
    disk: &dyn Disk,
    mut each: impl FnMut(&str, Option<Seal>, Option<&[u8]>) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    for number in segments::numbers(disk)? {
        let name = segments::name(number);
        let seal = match segments::read_seal(disk, number) {
            Err(StoreError::Damaged { .. }) => None,
            seal => seal?,
        };
        let bytes = disk
            .read_all(&name)
            .map_err(|error| StoreError::from_io(&disk.path(&name), error))?;
        each(&name, seal, bytes.as_deref())?;
    }
    Ok(())
}

/// The mark as it stands in its file, if that can be read.
fn read_mark(disk: &dyn Disk) -> Result<Option<u64>, StoreError> {
    let bytes = disk
        .read_all(APPLIED)
        .map_err(|error| StoreError::from_io(&disk.path(APPLIED), error))?;
    let text = String::from_utf8(bytes.unwrap_or_default()).unwrap_or_default();
    Ok(text.trim().parse().ok().filter(|mark| number(*mark)))
}

/// Can it be the number of a record?
fn number(seq: u64) -> bool {
    seq < 1 << 53
}

/// Takes records out of segments, each once: a copy has nothing new to say.
#[derive(Default)]
struct Whole(HashSet<[u8; 32]>);

/// How a line of ours begins. Inside JSON text quotes are escaped, so these bytes
/// stand at the beginning of a record only.
const BEGIN: &[u8] = b"{\"actor\":";

impl Whole {
    /// `None` for a line that is no record any more; some may stand in it.
    fn each(
        &mut self,
        segment: Option<&[u8]>,
        mut each: impl FnMut(Option<Record>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let lines = segment.unwrap_or_default().split(|byte| *byte == b'\n');
        for line in lines.filter(|line| !line.trim_ascii().is_empty()) {
            let mut found = vec![whole(line)?];
            if found[0].is_none() {
                for piece in pieces(line) {
                    found.extend(whole(piece)?.map(Some));
                }
            }
            let new = |found: &Option<Record>| match found {
                Some(record) => self.0.insert(record.entry_hash),
                None => true,
            };
            found.into_iter().filter(new).try_for_each(&mut each)?;
        }
        Ok(())
    }
}

/// What may be records in a line that is none, as when damage has joined some.
fn pieces(line: &[u8]) -> Vec<&[u8]> {
    let mut begins: Vec<usize> = memchr::memmem::find_iter(line, BEGIN).collect();
    begins.push(line.len());
    let piece = |ends: &[usize]| {
        let piece = &line[ends[0]..ends[1]];
        let end = memchr::memrchr(b'}', piece).map_or(0, |at| at + 1);
        &piece[..end]
    };
    begins.windows(2).map(piece).collect()
}

fn whole(line: &[u8]) -> Result<Option<Record>, StoreError> {
    match decode(line) {
        Ok(record) => Ok(Some(record)),
        Err(detail) if hash_is_right(line) => Err(StoreError::NotUnderstood { detail }),
        Err(_) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_no_record_has_are_lost() {
        let check = |kept: &[u64], unreadable, mark, expected: &str| {
            let found = Found {
                kept: kept.to_vec(),
                unreadable,
                ..Found::default()
            };
            assert_eq!(ranges(&found.lost(mark)), expected, "{kept:?}");
        };
        check(&[], 0, None, "");
        check(&[1, 2, 3], 0, Some(3), "");
        check(&[1, 2, 3], 2, Some(3), "4-5");
        check(&[2, 5, 6, 9], 0, Some(10), "1, 3-4, 7-8, 10");
        check(&[3, 4, 1], 0, None, "2");
    }

    #[test]
    fn files_are_as_new_as_the_mark_said_or_as_new_as_can_be() {
        let check = |kept: &[u64], mark, lost: &[Range], expected| {
            let found = Found {
                kept: kept.to_vec(),
                ..Found::default()
            };
            assert_eq!(found.applied(mark, lost), expected, "{kept:?} {mark:?}");
        };
        check(&[1, 2, 4, 5], Some(4), &[(3, 3)], 4);
        check(&[1, 2, 3, 5], Some(3), &[(4, 4)], 5);
        check(&[1, 2], None, &[], 3);
        check(&[4, 5], Some(3), &[(1, 3)], 1);
        check(&[1, 2], Some(9), &[(3, 9)], 3);
    }
}
