//! What stands in a page's log of live changes.
//!
//! A frame is the length of its header (4, little endian), the header as JSON,
//! and the bytes that belong to it: a Loro snapshot or update.

use escurel_access::Caller;
use escurel_live::{Document, Point, Unfit};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "frame", rename_all = "snake_case")]
pub(super) enum Frame {
    /// The first one; `lineage` names the history that begins with the snapshot.
    Begin {
        lineage: String,
    },
    /// Everything up to here.
    Snapshot,
    /// A change that came through a session.
    Op {
        session: String,
        by: String,
        at: i64,
    },
    /// A change of the page made elsewhere, which led to `version`.
    Outside {
        version: u64,
        point: Vec<u8>,
    },
    /// The document had the text of `version` at `point`, if that version ever came to be.
    Point {
        version: u64,
        point: Vec<u8>,
    },
    Opened {
        session: String,
        by: Caller,
        autosave: bool,
    },
    Closed {
        session: String,
    },
    /// Who has changed something since the last commit, after the changes themselves were put together.
    Wrote {
        sessions: Vec<String>,
        authors: Vec<String>,
    },
}

pub(super) fn encode(frame: &Frame, body: &[u8]) -> Vec<u8> {
    let header = serde_json::to_vec(frame).unwrap_or_default();
    let mut bytes = Vec::with_capacity(4 + header.len() + body.len());
    bytes.extend_from_slice(&(header.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&header);
    bytes.extend_from_slice(body);
    bytes
}

pub(super) fn decode(bytes: &[u8]) -> Option<(Frame, &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let (header, body) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    Some((serde_json::from_slice(header).ok()?, body))
}

/// A log read back.
pub(super) struct Told {
    pub document: Document,
    pub lineage: String,
    pub handles: Vec<(String, Caller, bool)>,
    /// Oldest first.
    pub points: Vec<ToldPoint>,
    pub ops: Vec<OpAuthor>,
    pub writers: Vec<String>,
    pub authors: Vec<String>,
}

/// A moment at which the document may have been a version, and who had changed it by then.
pub(super) struct ToldPoint {
    pub version: u64,
    pub point: Point,
    /// So many of the writers told of belong to it or to what was before.
    pub writers: usize,
    pub authors: usize,
}

/// Who sent a change.
#[derive(Clone, Debug)]
pub struct OpAuthor {
    /// Position in the retained log, from 1.
    pub number: u64,
    /// UTC microseconds.
    pub at: i64,
    pub by: String,
}

/// Puts a document together from its frames.
pub(super) fn replay(frames: &[Vec<u8>]) -> Result<Told, Unfit> {
    let damaged = || Unfit::Unreadable("a frame cannot be read".to_owned());
    let mut frames = frames.iter().map(|bytes| decode(bytes).ok_or_else(damaged));
    let Some((Frame::Begin { lineage }, _)) = frames.next().transpose()? else {
        return Err(Unfit::Unreadable("the log has no beginning".to_owned()));
    };
    let Some((Frame::Snapshot, snapshot)) = frames.next().transpose()? else {
        return Err(Unfit::Unreadable("the log has no snapshot".to_owned()));
    };
    let mut told = Told {
        document: Document::load(snapshot)?,
        lineage,
        handles: Vec::new(),
        points: Vec::new(),
        ops: Vec::new(),
        writers: Vec::new(),
        authors: Vec::new(),
    };
    let mut changes = Vec::new();
    for frame in frames {
        let (frame, body) = frame?;
        // Nothing, where a change made elsewhere left the text as it was.
        if matches!(frame, Frame::Op { .. } | Frame::Outside { .. }) && !body.is_empty() {
            changes.push(body.to_vec());
        }
        told.take(frame);
    }
    told.document.replay(&changes)?;
    Ok(told)
}

impl Told {
    fn take(&mut self, frame: Frame) {
        match frame {
            Frame::Begin { .. } | Frame::Snapshot => {}
            Frame::Op { session, by, at } => {
                self.writers.push(session);
                self.authors.push(by.clone());
                let number = self.ops.len() as u64 + 1;
                self.ops.push(OpAuthor { number, at, by });
            }
            Frame::Outside { version, point } => {
                // What was typed before it is still not committed.
                let (writers, authors) = self
                    .points
                    .last()
                    .map_or((0, 0), |last| (last.writers, last.authors));
                self.points.push(ToldPoint {
                    version,
                    point: Point(point),
                    writers,
                    authors,
                });
            }
            Frame::Point { version, point } => self.points.push(ToldPoint {
                version,
                point: Point(point),
                writers: self.writers.len(),
                authors: self.authors.len(),
            }),
            Frame::Opened {
                session,
                by,
                autosave,
            } => self.handles.push((session, by, autosave)),
            Frame::Closed { session } => self.handles.retain(|(open, ..)| *open != session),
            Frame::Wrote { sessions, authors } => {
                self.writers.extend(sessions);
                self.authors.extend(authors);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_back_as_they_went() {
        let frame = Frame::Op {
            session: "sess_1".into(),
            by: "ann".into(),
            at: 5,
        };
        let bytes = encode(&frame, b"update");
        let (back, body) = decode(&bytes).unwrap();
        assert_eq!(format!("{back:?}"), format!("{frame:?}"));
        assert_eq!(body, b"update");
        assert!(decode(&bytes[..3]).is_none() && decode(&bytes[..9]).is_none());
    }
}
