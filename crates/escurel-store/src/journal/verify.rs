//! The full check: every byte of the chain and of the objects.

use std::collections::HashMap;

use super::frame::{self, Step};
use super::segments::{self, Seal};
use super::{Finding, Journal, JournalReport, packs};
use crate::record::{GENESIS, decode, decode_unchecked, peek_seq};
use crate::{ObjectId, Record, hex};

struct Walk<'a> {
    journal: &'a Journal,
    report: JournalReport,
    ends: Ends,
    /// Objects that records name, with the first such record.
    named: HashMap<ObjectId, u64>,
    next_seq: u64,
    expected: [u8; 32],
}

struct Ends {
    segment: u32,
    pack: u32,
    bytes: HashMap<String, u64>,
}

impl Journal {
    pub(crate) fn verify(&self) -> JournalReport {
        let _no_erasure = self.maintenance.lock();
        let mut walk = Walk {
            journal: self,
            ends: self.ends(),
            report: JournalReport::default(),
            named: HashMap::new(),
            next_seq: 1,
            expected: GENESIS,
        };
        walk.chain();
        walk.objects();
        walk.report.head = walk.next_seq - 1;
        walk.report.tip = walk.expected;
        let first = walk
            .report
            .findings
            .iter()
            .find(|finding| finding.file.starts_with(super::CHAIN));
        if let Some(finding) = first {
            let _ = self
                .broken
                .set((finding.seq.unwrap_or(walk.next_seq), finding.to_string()));
        }
        walk.report
    }

    /// Where the growing files end between two appends; what is appended later
    /// is not looked at.
    fn ends(&self) -> Ends {
        let _between_appends = self.writer.lock();
        let segment = segments::numbers(&*self.disk)
            .ok()
            .and_then(|numbers| numbers.last().copied());
        let (segment, pack) = (segment.unwrap_or(0), self.packs.mark().number);
        let len = |name: String| self.disk.len(&name).ok().flatten().map(|len| (name, len));
        let names = [segments::name(segment), packs::name(pack)];
        Ends {
            segment,
            pack,
            bytes: names.into_iter().filter_map(len).collect(),
        }
    }

    fn read_to_end(&self, name: &str, ends: &Ends) -> std::io::Result<Option<Vec<u8>>> {
        let bytes = self.disk.read_all(name)?;
        let end = ends
            .bytes
            .get(name)
            .and_then(|end| usize::try_from(*end).ok());
        Ok(bytes.map(|mut bytes| {
            bytes.truncate(end.unwrap_or(usize::MAX));
            bytes
        }))
    }
}

impl Walk<'_> {
    fn find(&mut self, code: &'static str, file: &str, detail: impl Into<String>) -> &mut Finding {
        self.report.findings.push(Finding {
            code,
            file: file.to_owned(),
            offset: None,
            seq: None,
            object: None,
            detail: detail.into(),
        });
        let last = self.report.findings.len() - 1;
        &mut self.report.findings[last]
    }

    fn chain(&mut self) {
        let last = self.ends.segment;
        for number in 1..=last {
            self.segment(number, number == last);
        }
    }

    fn segment(&mut self, number: u32, last: bool) {
        let disk = &*self.journal.disk;
        let file = segments::name(number);
        let seal = match segments::read_seal(disk, number) {
            Ok(seal) => seal,
            Err(error) => {
                self.find(
                    "seal_damaged",
                    &segments::seal_name(number),
                    error.to_string(),
                );
                None
            }
        };
        let bytes = match self.journal.read_to_end(&file, &self.ends) {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return self.missing(&file, seal),
            Err(error) => {
                self.find("unreadable", &file, error.to_string());
                return;
            }
        };
        let seal_file = segments::seal_name(number);
        if seal.is_none() && !last && !self.report.findings.iter().any(|f| f.file == seal_file) {
            self.find("seal_damaged", &seal_file, "it is missing");
        }
        let first = self.next_seq;
        self.lines(&file, &bytes);
        if let Some(seal) = seal {
            self.seal(&file, &bytes, &seal, first);
        }
    }

    fn missing(&mut self, file: &str, seal: Option<Seal>) {
        let first = self.next_seq;
        let detail = match &seal {
            Some(seal) => format!(
                "records {} to {} are missing",
                seal.first_seq, seal.last_seq
            ),
            None => "the file is missing".into(),
        };
        self.find("segment_missing", file, detail).seq = Some(first);
        if let Some(seal) = seal {
            self.next_seq = seal.last_seq + 1;
            self.expected = seal.tip().unwrap_or(GENESIS);
        }
    }

    fn seal(&mut self, file: &str, bytes: &[u8], seal: &Seal, first: u64) {
        use sha2::{Digest, Sha256};
        if hex::encode(&Sha256::digest(bytes)) != seal.sha256 || bytes.len() as u64 != seal.bytes {
            self.find("segment_changed", file, "it is not what was sealed")
                .seq = Some(first);
        }
        let tip = seal.tip().unwrap_or(GENESIS);
        if seal.first_seq != first || self.next_seq != seal.last_seq + 1 || tip != self.expected {
            self.find("seal_damaged", file, "the seal names other records")
                .seq = Some(first);
        }
    }

    fn lines(&mut self, file: &str, bytes: &[u8]) {
        let mut offset = 0;
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line(file, offset, line);
            offset += line.len() as u64;
        }
    }

    fn line(&mut self, file: &str, offset: u64, line: &[u8]) {
        let whole = line.strip_suffix(b"\n");
        let text = whole.unwrap_or(line);
        let checked = match whole {
            Some(line) => decode(line),
            None => Err("the line is not finished".into()),
        };
        let record = match checked {
            Ok(record) => Some(record),
            Err(detail) => {
                let seq = peek_seq(text).unwrap_or(self.next_seq);
                let finding = self.find("record_changed", file, detail);
                (finding.seq, finding.offset) = (Some(seq), Some(offset));
                decode_unchecked(text).ok()
            }
        };
        match record {
            Some(record) => self.record(file, offset, &record),
            // What it said is lost; its place in the chain is not.
            None => self.next_seq += 1,
        }
    }

    fn record(&mut self, file: &str, offset: u64, record: &Record) {
        self.report.records += 1;
        let lost_link = self.report.findings.last().is_some_and(|f| {
            f.code == "record_changed" && f.seq == Some(record.seq.wrapping_sub(1))
        });
        if record.seq != self.next_seq {
            let detail = format!("expected seq {}", self.next_seq);
            let finding = self.find("seq_wrong", file, detail);
            (finding.seq, finding.offset) = (Some(record.seq), Some(offset));
        } else if record.prev_hash != self.expected && !lost_link {
            let finding = self.find("chain_broken", file, "prev_hash names another record");
            (finding.seq, finding.offset) = (Some(record.seq), Some(offset));
        }
        self.next_seq = record.seq + 1;
        self.expected = record.entry_hash;
        if let Some(content) = &record.content {
            self.named.entry(content.object).or_insert(record.seq);
        }
    }

    fn objects(&mut self) {
        let numbers = match packs::numbers(&*self.journal.disk) {
            Ok(numbers) => numbers,
            Err(error) => {
                self.find("unreadable", packs::DIR, error.to_string());
                return;
            }
        };
        let mut there = HashMap::new();
        let last = self.ends.pack;
        for number in numbers.into_iter().filter(|number| *number <= last) {
            self.pack(&packs::name(number), &mut there);
        }
        let mut missing: Vec<(u64, ObjectId)> = self
            .named
            .iter()
            .filter(|(id, _)| !there.contains_key(*id))
            .map(|(id, seq)| (*seq, *id))
            .collect();
        missing.sort_unstable();
        for (seq, id) in missing {
            let finding = self.find("object_missing", packs::DIR, "no pack holds it");
            (finding.seq, finding.object) = (Some(seq), Some(id));
        }
    }

    fn pack(&mut self, file: &str, there: &mut HashMap<ObjectId, ()>) {
        let bytes = match self.journal.read_to_end(file, &self.ends) {
            Ok(bytes) => bytes.unwrap_or_default(),
            Err(error) => {
                self.find("unreadable", file, error.to_string());
                return;
            }
        };
        frame::walk(&bytes, |step| match step {
            Step::Frame { at, header } => {
                let whole = &bytes[at..at + header.total()];
                if header.erased() {
                    self.report.erased += 1;
                } else if header.open(whole).is_none() {
                    self.damage(
                        "object_changed",
                        file,
                        at,
                        Some(header.id),
                        "its hash is not its name",
                    );
                } else {
                    self.report.objects += 1;
                }
                there.insert(header.id, ());
            }
            Step::Damage { at, id, .. } => {
                let id = id.filter(|id| self.named.contains_key(id));
                self.damage("pack_damaged", file, at, id, "its bytes were changed");
                there.extend(id.map(|id| (id, ())));
            }
        });
    }

    fn damage(
        &mut self,
        code: &'static str,
        file: &str,
        at: usize,
        id: Option<ObjectId>,
        detail: &str,
    ) {
        let seq = id.and_then(|id| self.named.get(&id).copied());
        let finding = self.find(code, file, detail);
        (finding.offset, finding.object, finding.seq) = (Some(at as u64), id, seq);
    }
}
