//! One page while somebody edits it live.
//!
//! Invariant: what is in the document and not in its log is known to nobody as
//! saved ([`State::unsaved`]), and the next change saves all of it first.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use escurel_access::Caller;
use escurel_live::{Document, Point, Unfit};
use escurel_store::{LiveLog, Uid};
use parking_lot::Mutex;
use serde_json::{Map, Value};

use super::frames::{Frame, OpAuthor, Told, encode};
use crate::facts::digest;

/// Who hears what happens to a page. Called under the page's lock: it must not block.
pub trait Listener: Send + Sync {
    /// Does it want the whole text with each change?
    fn wants_text(&self) -> bool;
    fn hear(&self, said: &Said);
}

/// What is told to the attached.
#[derive(Clone, Debug)]
pub enum Said {
    /// Somebody else changed the text.
    Op {
        merged_version: u64,
        op: Arc<[u8]>,
        /// For listeners that want it.
        text: Option<Arc<str>>,
    },
    /// Where somebody else is; only known fields.
    Presence(Arc<Map<String, Value>>),
    /// The session was closed.
    Closed,
    /// The document was put together anew: what is missed is sent to whoever asks again.
    Resync(&'static str),
}

/// The version that the document is known to contain, and where in its history.
pub(super) struct Base {
    pub version: u64,
    pub point: Point,
    /// Of the version's text.
    pub digest: u64,
}

pub(super) struct Handle {
    pub by: Caller,
    pub autosave: bool,
    /// UTC microseconds.
    pub used_at: i64,
}

pub(super) struct Peer {
    pub id: u64,
    pub session: String,
    pub listener: Arc<dyn Listener>,
}

pub(super) struct State {
    pub document: Document,
    pub lineage: String,
    pub base: Base,
    /// The document holds something that no version has.
    pub dirty: bool,
    pub handles: BTreeMap<String, Handle>,
    pub peers: Vec<Peer>,
    /// Sessions and people who changed something since the last commit.
    pub writers: BTreeSet<String>,
    pub authors: BTreeSet<String>,
    pub ops: Vec<OpAuthor>,
    /// UTC microseconds: the first and the last change since the last commit.
    pub since: i64,
    pub changed_at: i64,
    /// Not before this an unattended commit is tried again.
    pub retry_at: i64,
    /// The log lacks something of the document.
    pub unsaved: bool,
    /// The page was deleted.
    pub gone: bool,
    /// No session is left; whoever opens one begins anew.
    pub ended: bool,
}

pub(crate) struct LivePage {
    pub uid: Uid,
    pub(super) state: Mutex<State>,
    pub(super) log: LiveLog,
    /// The page has a version that the document may not know.
    pub behind: AtomicBool,
}

impl State {
    pub fn of(told: Told, base: Base, now: i64) -> State {
        let dirty = told.document.here() != base.point;
        let handle = |(session, by, autosave)| {
            let handle = Handle {
                by,
                autosave,
                used_at: now,
            };
            (session, handle)
        };
        State {
            dirty,
            lineage: told.lineage,
            base,
            handles: told.handles.into_iter().map(handle).collect(),
            peers: Vec::new(),
            writers: told.writers.into_iter().collect(),
            authors: told.authors.into_iter().collect(),
            ops: told.ops,
            since: now,
            changed_at: now,
            retry_at: 0,
            unsaved: false,
            gone: false,
            ended: false,
            document: told.document,
        }
    }

    /// The number of the version that the next commit makes, or that there is nothing to commit to.
    pub fn merged_version(&self) -> u64 {
        self.base.version + u64::from(self.dirty)
    }

    /// The whole of it, as a log begins.
    pub fn frames(&self) -> Result<Vec<Vec<u8>>, Unfit> {
        let begin = Frame::Begin {
            lineage: self.lineage.clone(),
        };
        let base = Frame::Point {
            version: self.base.version,
            point: self.base.point.0.clone(),
        };
        let mut frames = vec![
            encode(&begin, &[]),
            encode(&Frame::Snapshot, &self.document.snapshot()?),
            encode(&base, &[]),
        ];
        if !self.writers.is_empty() {
            let wrote = Frame::Wrote {
                sessions: self.writers.iter().cloned().collect(),
                authors: self.authors.iter().cloned().collect(),
            };
            frames.push(encode(&wrote, &[]));
        }
        frames.extend(self.handles.iter().map(|(session, handle)| {
            let opened = Frame::Opened {
                session: session.clone(),
                by: handle.by.clone(),
                autosave: handle.autosave,
            };
            encode(&opened, &[])
        }));
        Ok(frames)
    }

    /// Tells everybody but one.
    pub fn tell(&self, except: Option<u64>, said: impl Fn(&dyn Listener) -> Said) {
        let others = self.peers.iter().filter(|peer| Some(peer.id) != except);
        others.for_each(|peer| peer.listener.hear(&said(&*peer.listener)));
    }

    /// Passes changes on; the whole text goes with the last of them.
    pub fn relay(&self, ops: &[Vec<u8>], except: Option<u64>) {
        let mut text: Option<Arc<str>> = None;
        let merged_version = self.merged_version();
        for (place, op) in ops.iter().enumerate() {
            let (op, last): (Arc<[u8]>, _) = (op.as_slice().into(), place + 1 == ops.len());
            for peer in self.peers.iter().filter(|peer| Some(peer.id) != except) {
                let wanted = last && peer.listener.wants_text();
                if wanted && text.is_none() {
                    text = Some(self.document.text().into());
                }
                peer.listener.hear(&Said::Op {
                    merged_version,
                    op: op.clone(),
                    text: text.clone().filter(|_| wanted),
                });
            }
        }
    }

    /// Forgets who wrote: all of it is in a version.
    pub fn committed(&mut self, base: Base) {
        self.dirty = self.document.here() != base.point;
        self.base = base;
        self.retry_at = 0;
        if !self.dirty {
            self.writers.clear();
            self.authors.clear();
        }
    }
}

impl LivePage {
    /// Adds a frame to the log, after all that it lacks.
    pub(super) fn record(&self, state: &mut State, frame: &Frame, body: &[u8]) -> io::Result<()> {
        self.settle(state)?;
        let recorded = self.log.append(&encode(frame, body));
        state.unsaved |= recorded.is_err();
        recorded
    }

    /// Makes the log hold what the document holds.
    pub(super) fn settle(&self, state: &mut State) -> io::Result<()> {
        if state.unsaved {
            self.compact(state)?;
        }
        Ok(())
    }

    /// Writes the log anew, as short as it can be.
    pub(super) fn compact(&self, state: &mut State) -> io::Result<()> {
        let frames = state
            .frames()
            .map_err(|error| io::Error::other(error.to_string()))?;
        self.log.rewrite(&frames)?;
        state.unsaved = false;
        state.ops.clear();
        Ok(())
    }

    /// Makes everything that was recorded durable. A failure leaves it to the next change to write all anew.
    pub(super) fn sync(&self) -> io::Result<()> {
        let synced = self.log.sync();
        if synced.is_err() {
            self.state.lock().unsaved = true;
        }
        synced
    }
}

impl Base {
    pub fn of(version: u64, point: Point, text: &str) -> Base {
        Base {
            version,
            point,
            digest: digest(text.as_bytes()),
        }
    }
}
