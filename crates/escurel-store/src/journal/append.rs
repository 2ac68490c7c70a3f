//! Group commit: the first caller leads and writes for all who wait; when it is
//! done it names the next leader among those who came meanwhile.
//!
//! Order within a group: objects, their fsync, records, their fsync, head.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crossbeam_channel::{Sender, bounded};
use rayon::prelude::*;

use super::frame::{self, Frame};
use super::segments::{self, Seal, Segment};
use super::{CHAIN, Journal};
use crate::record::encode;
use crate::{Content, Draft, Record, StoreError, hex};

/// From so many drafts on, objects are made on all cores.
const PARALLEL_FROM: usize = 16;

type Answer = Result<Vec<Record>, StoreError>;

/// One caller's drafts, waiting to be written.
pub(crate) struct Pending {
    drafts: Vec<Draft>,
    /// One for each draft that has a content, in order.
    frames: Vec<Option<Frame>>,
    tell: Sender<Word>,
}

/// What a waiting caller is told.
enum Word {
    Lead,
    Done(Answer),
}

#[derive(Default)]
pub(crate) struct Queue {
    pending: Vec<Pending>,
    /// Somebody leads.
    busy: bool,
    /// Callers in the last group, and how many are likely to come again.
    last: usize,
    expected: usize,
}

/// How long a leader waits for callers who were there a moment ago: far less
/// than the fsyncs that they save by coming along.
const GATHER: Duration = Duration::from_micros(200);

/// Hands the lead on when dropped, however that comes about.
struct Lead<'a>(&'a Journal);

impl Drop for Lead<'_> {
    fn drop(&mut self) {
        let mut queue = self.0.queue.lock();
        let waiting = queue.pending.len();
        if waiting > 0 {
            queue.expected = queue.expected.max(queue.last + waiting);
        }
        // A caller waits until it is told, so the first one always hears this.
        queue.busy = queue
            .pending
            .first()
            .is_some_and(|first| first.tell.send(Word::Lead).is_ok());
    }
}

/// The end of the chain; only its holder writes.
pub(crate) struct Writer {
    pub(crate) seq: u64,
    pub(crate) tip: [u8; 32],
    /// A failed write could not be undone: nothing may be appended.
    pub(crate) poisoned: Option<String>,
}

/// What a group writes.
#[derive(Default)]
struct Group {
    lines: Vec<u8>,
    answers: Vec<(Sender<Word>, Vec<Record>)>,
    frames: Vec<Frame>,
}

impl Journal {
    pub(crate) fn append(&self, drafts: Vec<Draft>) -> Result<Vec<Record>, StoreError> {
        self.writable()?;
        if drafts.is_empty() {
            return Ok(Vec::new());
        }
        drafts.iter().try_for_each(Draft::check)?;
        let frames = self.frames(&drafts)?;
        let (tell, told) = bounded(2);
        let leads = {
            let mut queue = self.queue.lock();
            queue.pending.push(Pending {
                drafts,
                frames,
                tell,
            });
            !std::mem::replace(&mut queue.busy, true)
        };
        let lost = || StoreError::JournalPoisoned {
            detail: "its writer ended early".into(),
        };
        if !leads && let Word::Done(answer) = told.recv().map_err(|_| lost())? {
            return answer;
        }
        let lead = Lead(self);
        let batch = self.gather();
        self.commit(&mut self.writer.lock(), batch);
        drop(lead);
        match told.recv() {
            Ok(Word::Done(answer)) => answer,
            _ => Err(lost()),
        }
    }

    /// Takes all who wait, a little later if more are likely to come.
    fn gather(&self) -> Vec<Pending> {
        let start = Instant::now();
        loop {
            let mut queue = self.queue.lock();
            if queue.pending.len() >= queue.expected || start.elapsed() >= GATHER {
                queue.last = queue.pending.len();
                queue.expected = queue.expected.min(queue.last);
                return std::mem::take(&mut queue.pending);
            }
            drop(queue);
            std::thread::yield_now();
        }
    }

    fn frames(&self, drafts: &[Draft]) -> Result<Vec<Option<Frame>>, StoreError> {
        let salted: Vec<_> = drafts
            .iter()
            .map(|draft| {
                draft
                    .content
                    .as_ref()
                    .map(|content| (self.env.ids.salt(), content))
            })
            .collect();
        let build = |item: &Option<([u8; 32], &Arc<[u8]>)>| {
            item.as_ref()
                .map(|(salt, content)| frame::build(salt, content))
                .transpose()
        };
        match drafts.len() < PARALLEL_FROM {
            true => salted.iter().map(build).collect(),
            false => salted.par_iter().map(build).collect(),
        }
    }

    fn commit(&self, writer: &mut Writer, batch: Vec<Pending>) {
        let refusal = match &writer.poisoned {
            Some(detail) => Err(StoreError::JournalPoisoned {
                detail: detail.clone(),
            }),
            None => self.writable(),
        };
        if let Err(error) = refusal {
            for pending in batch {
                let _ = pending.tell.send(Word::Done(Err(error.clone())));
            }
            return;
        }
        let mut end = (writer.seq, writer.tip);
        let mut group = Group::default();
        for pending in batch {
            self.place(pending, &mut end, &mut group);
        }
        let result = self.write(writer, &group, end);
        for (tell, records) in group.answers {
            let _ = tell.send(Word::Done(result.clone().map(|()| records)));
        }
    }

    /// Gives the drafts their place behind `end`, or refuses all of them.
    fn place(&self, pending: Pending, end: &mut (u64, [u8; 32]), group: &mut Group) {
        let Pending {
            drafts,
            frames,
            tell,
        } = pending;
        let mut next = *end;
        let start = group.lines.len();
        let mut records = Vec::with_capacity(drafts.len());
        for (draft, frame) in drafts.into_iter().zip(&frames) {
            let mut record = self.record(draft, frame.as_ref(), next);
            if let Err(error) = encode(&mut record, &mut group.lines) {
                group.lines.truncate(start);
                let _ = tell.send(Word::Done(Err(error)));
                return;
            }
            next = (record.seq, record.entry_hash);
            records.push(record);
        }
        *end = next;
        group.frames.extend(frames.into_iter().flatten());
        group.answers.push((tell, records));
    }

    fn record(&self, draft: Draft, frame: Option<&Frame>, end: (u64, [u8; 32])) -> Record {
        let content = match (frame, &draft.content) {
            (Some(frame), Some(bytes)) => Some(Content {
                object: frame.id,
                bytes: bytes.len() as u64,
            }),
            _ => None,
        };
        Record {
            seq: end.0 + 1,
            at: draft.at.unwrap_or_else(|| self.env.clock.now_micros()),
            kind: draft.kind,
            actor: draft.actor,
            uid: draft.uid,
            path: draft.path,
            version: draft.version,
            content,
            from: draft.from,
            note: draft.note,
            prev_hash: end.1,
            entry_hash: [0; 32],
        }
    }

    fn write(
        &self,
        writer: &mut Writer,
        group: &Group,
        end: (u64, [u8; 32]),
    ) -> Result<(), StoreError> {
        if group.answers.is_empty() {
            return Ok(());
        }
        let fail = |error| StoreError::from_io(&self.disk.path(CHAIN), error);
        self.rotate(writer).map_err(fail)?;
        let mark = self.packs.mark();
        let frames: Vec<&Frame> = group.frames.iter().collect();
        let written = self
            .packs
            .append(&frames)
            .and_then(|()| self.write_lines(writer, &group.lines, end));
        written.map_err(|error| {
            self.packs.back_to(mark);
            fail(error)
        })
    }

    /// Records that have their place behind the end and whose objects are there.
    pub(super) fn write_records(
        &self,
        lines: &[u8],
        end: (u64, [u8; 32]),
    ) -> Result<(), StoreError> {
        let mut writer = self.writer.lock();
        let written = self
            .rotate(&writer)
            .and_then(|()| self.write_lines(&mut writer, lines, end));
        written.map_err(|error| StoreError::from_io(&self.disk.path(CHAIN), error))
    }

    fn write_lines(
        &self,
        writer: &mut Writer,
        lines: &[u8],
        end: (u64, [u8; 32]),
    ) -> io::Result<()> {
        let (number, len) = match self.segments.read().last() {
            Some(segment) => (segment.number, segment.len),
            None => return Err(io::ErrorKind::NotFound.into()),
        };
        let file = segments::name(number);
        let point = |point| self.env.failpoints.reach(point);
        let written = point("journal.before_record_write")
            .and_then(|()| self.disk.write_at(&file, len, lines))
            .and_then(|()| point("journal.before_record_fsync"))
            .and_then(|()| self.disk.sync(&file))
            .and_then(|()| point("journal.before_ack"));
        if let Err(error) = written {
            self.undo(writer, &file, len);
            return Err(error);
        }
        if let Some(segment) = self.segments.write().last_mut() {
            segment.remember(writer.seq + 1, len);
            segment.len = len + lines.len() as u64;
        }
        (writer.seq, writer.tip) = end;
        self.head.store(end.0, Ordering::Release);
        Ok(())
    }

    /// Half a group on disk would be taken for the truth at the next start.
    fn undo(&self, writer: &mut Writer, file: &str, len: u64) {
        match self.disk.truncate(file, len) {
            Ok(()) => {}
            // The file was never made, so there is nothing to cut.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => writer.poisoned = Some(error.to_string()),
        }
    }

    /// Seals the last segment when it is full, and begins the next.
    fn rotate(&self, writer: &Writer) -> io::Result<()> {
        let last = match self.segments.read().last() {
            Some(segment) if segment.len >= self.limits.segment => segment.clone(),
            _ => return Ok(()),
        };
        self.env.failpoints.reach("journal.before_seal")?;
        let sha256 = segments::digest(&*self.disk, &segments::name(last.number), last.len)?;
        let seal = Seal {
            first_seq: last.first_seq,
            last_seq: writer.seq,
            count: writer.seq + 1 - last.first_seq,
            bytes: last.len,
            prev: hex::encode(&last.prev),
            tip: hex::encode(&writer.tip),
            sha256: hex::encode(&sha256),
        };
        let text = serde_json::to_vec_pretty(&seal)?;
        self.disk.put(&segments::seal_name(last.number), &text)?;
        self.segments.write().push(Segment {
            number: last.number + 1,
            first_seq: writer.seq + 1,
            prev: writer.tip,
            len: 0,
            marks: Vec::new(),
        });
        Ok(())
    }
}
