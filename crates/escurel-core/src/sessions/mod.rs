//! Pages that people edit live: sessions, the one document that all sessions
//! of a page share, and how it and the page's versions follow each other.
//!
//! Lock order: [`Sessions::opening`], the page's write lock, a page's state.
//! Invariant: an acknowledged change is in the page's log on disk or in a
//! version of the page; so a restart goes on with the same history, and what a
//! client resends is taken once.

mod commit;
mod frames;
mod keep;
mod load;
mod page;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use escurel_access::{Caller, Verb};
use escurel_index::Entry;
use escurel_live::Unfit;
use escurel_store::Uid;
use parking_lot::{Condvar, Mutex};
use serde_json::{Map, Value};

use crate::api::{Attached, ChangeAck, OpenedSession, PageName};
use crate::facts::Parsed;
use crate::kb::Core;
use crate::sight::may;
use crate::{Code, Refusal, Result};

pub use frames::OpAuthor;
use frames::{Frame, encode};
pub(crate) use page::LivePage;
use page::{Handle, Peer, State};
pub use page::{Listener, Said};

/// A change may be so large. Bytes.
pub const MAX_OP: usize = 32 << 20;
/// A text may grow to this. Bytes.
const MAX_TEXT: usize = 64 << 20;
/// Open sessions of a knowledge base.
const MAX_SESSIONS: usize = 10_000;
/// A log that is larger is written anew when most of it is history.
const LONG_LOG: u64 = 4 << 20;

#[derive(Default)]
pub(crate) struct Sessions {
    /// One page at a time is put together or given up.
    opening: Mutex<()>,
    pages: Mutex<HashMap<Uid, Arc<LivePage>>>,
    /// Page of each open session.
    handles: Mutex<HashMap<String, Uid>>,
    peers: AtomicU64,
    bell: Bell,
}

impl Sessions {
    fn page(&self, uid: Uid) -> Option<Arc<LivePage>> {
        self.pages.lock().get(&uid).cloned()
    }

    fn of(&self, session: &str) -> Result<Arc<LivePage>> {
        let uid = self.handles.lock().get(session).copied();
        uid.and_then(|uid| self.page(uid))
            .ok_or_else(|| unknown(session))
    }

    fn all(&self) -> Vec<Arc<LivePage>> {
        self.pages.lock().values().cloned().collect()
    }

    /// A page was published: its document, if there is one, has to follow.
    pub fn published(&self, uids: impl Iterator<Item = Uid>) {
        let pages = self.pages.lock();
        if pages.is_empty() {
            return;
        }
        for page in uids.filter_map(|uid| pages.get(&uid)) {
            page.behind.store(true, Ordering::Release);
            self.bell.ring();
        }
    }

    /// Returns when there is something to look after, or after `patience`.
    pub fn wait(&self, patience: Duration) {
        self.bell.wait(patience);
    }

    pub fn wake(&self) {
        self.bell.ring();
    }

    fn forget(&self, session: &str) {
        self.handles.lock().remove(session);
    }
}

/// Wakes whoever looks after live pages.
#[derive(Default)]
struct Bell {
    rung: Mutex<bool>,
    heard: Condvar,
}

impl Bell {
    fn ring(&self) {
        *self.rung.lock() = true;
        self.heard.notify_all();
    }

    fn wait(&self, patience: Duration) {
        let mut rung = self.rung.lock();
        if !*rung {
            self.heard.wait_for(&mut rung, patience);
        }
        *rung = false;
    }
}

/// What a session is opened with.
#[derive(Clone, Debug, Default)]
pub struct OpenRequest {
    pub page_id: String,
    /// The scenario that the page belongs to.
    pub scenario: Option<String>,
    /// Version vector of what the caller has of the page's history.
    pub have: Option<Vec<u8>>,
    /// Commit by itself when the typing pauses.
    pub autosave: bool,
}

/// What a client says when it attaches to a session.
#[derive(Clone, Debug, Default)]
pub struct Hello {
    pub session: String,
    /// The history that it has.
    pub lineage: Option<String>,
    /// How much of it, as a version vector.
    pub have: Option<Vec<u8>>,
}

impl Core {
    /// The text of a page as it is being edited, if it says something that no version does.
    ///
    /// # Errors
    /// What taking in the newest version ends with.
    pub(crate) fn live_text(&self, entry: &Entry) -> Result<Option<String>> {
        let Some(page) = self.sessions.page(entry.uid) else {
            return Ok(None);
        };
        let known = page.state.lock().base.version;
        // A version that was acknowledged is read from then on.
        if known != entry.version {
            self.catch_up(&page)?;
        }
        let state = page.state.lock();
        Ok(state.dirty.then(|| state.document.text()))
    }

    /// Opens a session on a page.
    ///
    /// # Errors
    /// `page_not_found`, `ambiguous`, `forbidden`, `read_only`, `layer_read_only`, `backend_read_only`, `not_utf8`,
    /// `missing_on_disk`, `session_cap_reached`, `invalid_argument` for a damaged version vector.
    pub fn open_session(&self, caller: &Caller, request: &OpenRequest) -> Result<OpenedSession> {
        let name = PageName {
            id: request.page_id.clone(),
            scenario: request.scenario.clone(),
        };
        let entry = self.named(caller, &name)?;
        self.guard_session(caller, &entry)?;
        if self.sessions.handles.lock().len() >= MAX_SESSIONS {
            let why = format!("{MAX_SESSIONS} sessions are open.");
            return Err(Refusal::new(Code::SessionCapReached, why));
        }
        let _opening = self.sessions.opening.lock();
        let page = self.live_page(&entry)?;
        let session = self.new_name("sess_");
        let mut state = page.state.lock();
        let snapshot = lacking(&state, request.have.as_deref())?;
        let opened = Frame::Opened {
            session: session.clone(),
            by: caller.clone(),
            autosave: request.autosave,
        };
        let handle = Handle {
            by: caller.clone(),
            autosave: request.autosave,
            used_at: self.now(),
        };
        page.record(&mut state, &opened, &[])?;
        state.handles.insert(session.clone(), handle);
        self.sessions
            .handles
            .lock()
            .insert(session.clone(), page.uid);
        let opened = OpenedSession {
            session,
            lineage: state.lineage.clone(),
            head_version: state.base.version,
            snapshot,
        };
        drop(state);
        page.sync()?;
        Ok(opened)
    }

    /// Hears what happens in a session's page from now on; what the caller lacks is in the answer.
    ///
    /// # Errors
    /// `unknown_session`, `forbidden`, `lineage_changed`, `invalid_argument` for a damaged version vector.
    pub fn attach(
        &self,
        caller: &Caller,
        hello: &Hello,
        listener: Arc<dyn Listener>,
    ) -> Result<Attached> {
        let page = self.sessions.of(&hello.session)?;
        self.guard_attach(caller, page.uid)?;
        let mut state = page.state.lock();
        let Some(handle) = state.handles.get_mut(&hello.session) else {
            return Err(unknown(&hello.session));
        };
        handle.used_at = self.now();
        if let Some(lineage) = hello.lineage.as_ref().filter(|l| **l != state.lineage) {
            let shown: String = lineage.chars().take(40).collect();
            let why = format!("The page's history is {}, not {shown}.", state.lineage);
            return Err(Refusal::new(Code::LineageChanged, why).at("lineage"));
        }
        page.settle(&mut state)?;
        let update = lacking(&state, hello.have.as_deref())?;
        let id = self.sessions.peers.fetch_add(1, Ordering::Relaxed);
        let text = listener.wants_text().then(|| state.document.text());
        state.peers.push(Peer {
            id,
            session: hello.session.clone(),
            listener,
        });
        Ok(Attached {
            peer: id,
            lineage: state.lineage.clone(),
            head_version: state.base.version,
            update,
            text,
        })
    }

    /// Hears no more of it.
    pub fn detach(&self, session: &str, peer: u64) {
        if let Ok(page) = self.sessions.of(session) {
            let mut state = page.state.lock();
            state.peers.retain(|other| other.id != peer);
            if let Some(handle) = state.handles.get_mut(session) {
                handle.used_at = self.now();
            }
        }
    }

    /// Takes a change up and passes it on to the others. It is safe after [`Core::make_durable`].
    ///
    /// # Errors
    /// `unknown_session`, `op_invalid`, `op_incomplete`, `disk_full`, `io_error`.
    pub fn change(
        &self,
        caller: &Caller,
        session: &str,
        peer: Option<u64>,
        op: &[u8],
        wants_text: bool,
    ) -> Result<ChangeAck> {
        let page = self.sessions.of(session)?;
        let now = self.now();
        let mut state = page.state.lock();
        match state.handles.get_mut(session) {
            Some(handle) => handle.used_at = now,
            None => return Err(unknown(session)),
        }
        if state.unsaved {
            page.settle(&mut state)?;
        }
        let taken = self.take_change(&page, &mut state, op)?;
        if !taken.is_empty() {
            if !state.dirty {
                state.since = now;
            }
            state.dirty = true;
            state.changed_at = now;
            state.writers.insert(session.to_owned());
            state.authors.insert(caller.subject.clone());
            state.relay(&taken, peer);
            let frame = Frame::Op {
                session: session.to_owned(),
                by: caller.subject.clone(),
                at: now,
            };
            for op in &taken {
                page.record(&mut state, &frame, op)?;
                let number = state.ops.last().map_or(0, |op| op.number) + 1;
                state.ops.push(OpAuthor {
                    number,
                    at: now,
                    by: caller.subject.clone(),
                });
            }
        }
        Ok(ChangeAck {
            merged_version: state.merged_version(),
            text: wants_text.then(|| state.document.text()),
        })
    }

    /// Returns when every change that the session took before the call survives a power loss.
    ///
    /// # Errors
    /// `unknown_session`, `disk_full`, `io_error`: the changes are sent again then.
    pub fn make_durable(&self, session: &str) -> Result<()> {
        Ok(self.sessions.of(session)?.sync()?)
    }

    /// Tells the others where somebody is. Only known fields are passed on.
    ///
    /// # Errors
    /// `unknown_session`.
    pub fn presence(&self, session: &str, peer: u64, fields: &Map<String, Value>) -> Result<()> {
        let page = self.sessions.of(session)?;
        let known = ["user", "cursor", "anchor"];
        let known: Map<String, Value> = known
            .iter()
            .filter_map(|key| Some(((*key).to_owned(), fields.get(*key)?.clone())))
            .collect();
        let known = Arc::new(known);
        let mut state = page.state.lock();
        if let Some(handle) = state.handles.get_mut(session) {
            handle.used_at = self.now();
        }
        state.tell(Some(peer), |_| Said::Presence(known.clone()));
        Ok(())
    }

    /// Who sent the changes of a page that its log still has, oldest first. Empty for a page that the
    /// caller may not see.
    pub fn op_authors(&self, caller: &Caller, page_id: &str) -> Result<(String, Vec<OpAuthor>)> {
        let Some(entry) = self.reading(caller, None).find(page_id)? else {
            return Ok((page_id.to_owned(), Vec::new()));
        };
        let page = self.sessions.page(entry.uid);
        let ops = page.map(|page| page.state.lock().ops.clone());
        Ok((entry.path.to_string(), ops.unwrap_or_default()))
    }

    /// Sessions that are open.
    pub fn session_count(&self) -> usize {
        self.sessions.handles.lock().len()
    }

    /// May this caller change the page byte by byte?
    fn guard_session(&self, caller: &Caller, entry: &Entry) -> Result<()> {
        if !may(
            &*self.policy,
            caller,
            Verb::Update,
            &entry.path,
            &entry.facts,
        ) {
            let why = format!("{} may not write {}.", caller.subject, entry.path);
            return Err(Refusal::new(Code::Forbidden, why).at("page_id"));
        }
        self.guard_writable(&entry.path)?;
        crate::write::guard_present(entry)?;
        let text = self.head_text(entry)?;
        if std::str::from_utf8(&text).is_err() {
            let why = format!("{} is not UTF-8.", entry.path);
            return Err(Refusal::new(Code::NotUtf8, why).at("page_id"));
        }
        let parsed = Parsed::of(&entry.path, &text, self.layout);
        self.guard_kind(caller, Some(entry), &parsed)
    }

    /// What is being edited is read like the page; a deleted one by those who could write it.
    fn guard_attach(&self, caller: &Caller, uid: Uid) -> Result<()> {
        let view = self.view.load();
        let seen = view
            .dir
            .by_uid(uid)
            .is_none_or(|entry| may(&*self.policy, caller, Verb::Read, &entry.path, &entry.facts));
        match seen {
            true => Ok(()),
            false => Err(Refusal::new(
                Code::Forbidden,
                format!("{} may not read this page.", caller.subject),
            )),
        }
    }

    /// Puts one change into the document, or leaves the document as it was. Answers what is new.
    fn take_change(&self, page: &LivePage, state: &mut State, op: &[u8]) -> Result<Vec<Vec<u8>>> {
        if op.len() > MAX_OP {
            let why = format!("A change may have {MAX_OP} bytes, not {}.", op.len());
            return Err(Refusal::new(Code::OpInvalid, why).at("op"));
        }
        let taken = state.document.import(op);
        if taken.is_ok() && state.document.len() > MAX_TEXT {
            self.reload(page, state)?;
            let why = format!("A page may have {MAX_TEXT} bytes.");
            return Err(Refusal::new(Code::OpInvalid, why).at("op"));
        }
        let unfit = match taken {
            Ok(new) => return Ok(new),
            Err(unfit) => unfit,
        };
        if matches!(unfit, Unfit::Damaged(_)) {
            self.reload(page, state)?;
        }
        let code = match unfit {
            Unfit::Incomplete => Code::OpIncomplete,
            _ => Code::OpInvalid,
        };
        Err(Refusal::new(code, format!("The change is not taken: {unfit}.")).at("op"))
    }

    /// The document as its log has it.
    fn reload(&self, page: &LivePage, state: &mut State) -> Result<()> {
        let found = self.store.live()?.open(page.uid)?;
        let frames = found.map(|found| found.frames).unwrap_or_default();
        let told = frames::replay(&frames).map_err(|unfit| broken(page.uid, &unfit))?;
        state.document = told.document;
        Ok(())
    }

    fn new_name(&self, prefix: &str) -> String {
        let salt = self.store.env().ids.salt();
        let digits = salt.iter().take(16).map(|byte| format!("{byte:02x}"));
        std::iter::once(prefix.to_owned()).chain(digits).collect()
    }

    /// A writer that no history has seen. Zero is none.
    fn new_peer(&self) -> u64 {
        let salt = self.store.env().ids.salt();
        let mut eight = [0; 8];
        eight.copy_from_slice(&salt[..8]);
        (u64::from_le_bytes(eight) >> 1).max(1)
    }
}

/// What somebody lacks who has `have`: everything, if nothing.
fn lacking(state: &State, have: Option<&[u8]>) -> Result<Vec<u8>> {
    let exported = match have {
        None => state.document.snapshot(),
        Some(have) => state.document.since(have),
    };
    exported.map_err(|unfit| {
        let why = format!("`have` is not a version vector of Loro: {unfit}.");
        Refusal::new(Code::InvalidArgument, why).at("have")
    })
}

fn unknown(session: &str) -> Refusal {
    let shown: String = session.chars().take(60).collect();
    let why = format!("No session {shown:?} is open.");
    Refusal::new(Code::UnknownSession, why).at("session")
}

fn broken(uid: Uid, unfit: &Unfit) -> Refusal {
    let why = format!("The live changes of page {uid} cannot be put together: {unfit}.");
    Refusal::new(Code::Io, why)
}

/// A log that begins with this state.
fn beginning(lineage: &str, snapshot: &[u8]) -> Vec<Vec<u8>> {
    let begin = Frame::Begin {
        lineage: lineage.to_owned(),
    };
    vec![encode(&begin, &[]), encode(&Frame::Snapshot, snapshot)]
}
