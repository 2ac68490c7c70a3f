//! From a page or a log to a page that is edited live.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use escurel_index::Entry;
use escurel_live::Document;
use escurel_store::{LiveLog, Uid};
use parking_lot::Mutex;

use super::frames::{Frame, Told, encode, replay};
use super::page::{Base, LivePage, State};
use super::{beginning, broken};
use crate::kb::Core;
use crate::{Code, Refusal, Result};

impl Core {
    /// The page's document, which begins now if there is none. The caller holds `opening`.
    pub(super) fn live_page(&self, entry: &Entry) -> Result<Arc<LivePage>> {
        if let Some(page) = self.sessions.page(entry.uid) {
            return Ok(page);
        }
        let text = String::from_utf8(self.head_text(entry)?)
            .map_err(|_| Refusal::new(Code::NotUtf8, format!("{} is not UTF-8.", entry.path)))?;
        let lineage = self.new_uid().to_string();
        let document = Document::new(self.new_peer(), &text)
            .map_err(|unfit| Refusal::new(Code::Internal, unfit.to_string()))?;
        let point = document.here();
        let snapshot = document
            .snapshot()
            .map_err(|unfit| Refusal::new(Code::Internal, unfit.to_string()))?;
        let base = Base::of(entry.version, point, &text);
        let mut frames = beginning(&lineage, &snapshot);
        let known = Frame::Point {
            version: entry.version,
            point: base.point.0.clone(),
        };
        frames.push(encode(&known, &[]));
        let log = self.store.live()?.create(entry.uid, &frames)?;
        let told = Told {
            document,
            lineage,
            handles: Vec::new(),
            points: Vec::new(),
            ops: Vec::new(),
            writers: Vec::new(),
            authors: Vec::new(),
        };
        let state = State::of(told, base, self.now());
        Ok(self.enlist(entry.uid, state, log))
    }

    fn enlist(&self, uid: Uid, state: State, log: LiveLog) -> Arc<LivePage> {
        let mut handles: HashMap<String, Uid> = HashMap::new();
        handles.extend(state.handles.keys().map(|session| (session.clone(), uid)));
        let page = Arc::new(LivePage {
            uid,
            state: Mutex::new(state),
            log,
            // It may have been written while the document was made.
            behind: AtomicBool::new(true),
        });
        self.sessions.pages.lock().insert(uid, page.clone());
        self.sessions.handles.lock().extend(handles);
        self.sessions.wake();
        page
    }

    /// Goes on with what was being edited when the last process ended. What cannot be gone on
    /// with is kept: as a version in the page's history, else as its file.
    pub(crate) fn resume_sessions(&self) {
        let Ok(logs) = self.store.live() else { return };
        let pages = logs.pages().unwrap_or_default();
        for uid in pages {
            if let Err(refusal) = self.resume(uid) {
                self.progress.warn(format!(
                    "What was being typed into the page {uid} could not be taken up again: {refusal}"
                ));
            }
        }
    }

    fn resume(&self, uid: Uid) -> Result<()> {
        let _opening = self.sessions.opening.lock();
        let Some(found) = self.store.live()?.open(uid)? else {
            return Ok(());
        };
        if found.torn > 0 {
            tracing::warn!(%uid, bytes = found.torn, "the end of a log of live changes was torn and is cut");
        }
        let mut told = replay(&found.frames).map_err(|unfit| broken(uid, &unfit))?;
        let Some(base) = self.base_of(uid, &mut told)? else {
            let why = "none of its versions is in the history of the changes";
            return Err(Refusal::new(Code::Io, format!("{why}.")));
        };
        let page = self.enlist(uid, State::of(told, base, self.now()), found.log);
        // Everything that was read is safe before anybody is told that it is there.
        Ok(page.sync()?)
    }

    /// The newest version that the document is known to contain. Who wrote before it has nothing to commit.
    fn base_of(&self, uid: Uid, told: &mut Told) -> Result<Option<Base>> {
        for index in (0..told.points.len()).rev() {
            let known = &told.points[index];
            let Some(then) = self.version_text(uid, known.version)? else {
                continue;
            };
            let Ok(text) = told.document.text_at(&known.point) else {
                continue;
            };
            if text.as_bytes() != then {
                continue;
            }
            let known = told.points.swap_remove(index);
            told.writers.drain(..known.writers.min(told.writers.len()));
            told.authors.drain(..known.authors.min(told.authors.len()));
            return Ok(Some(Base::of(known.version, known.point, &text)));
        }
        Ok(None)
    }
}
