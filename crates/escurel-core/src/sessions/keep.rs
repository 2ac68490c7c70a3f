//! What happens to live pages without anybody asking: outside changes come in,
//! pauses save, forgotten sessions end.

use std::sync::atomic::Ordering;
use std::time::Duration;

use escurel_access::Caller;
use escurel_store::Uid;

use super::page::{LivePage, Said, State};
use crate::api::Compaction;
use crate::kb::Core;
use crate::{Code, Refusal, Result};

/// A pause in typing after which an autosaving session commits. Microseconds.
const PAUSE: i64 = 2_000_000;
/// It commits at least so often while somebody types.
const AT_LEAST: i64 = 10_000_000;
/// A commit that was refused is tried again after this.
const AGAIN: i64 = 10_000_000;
/// A session that nobody is attached to and nobody uses ends after this.
const IDLE: i64 = 600_000_000;

/// Pauses are noticed this late at most.
const ROUND: Duration = Duration::from_millis(250);

impl Core {
    /// Looks after live pages until the knowledge base is closed.
    pub(crate) fn attend_sessions(&self) {
        while !self.stopping() {
            self.sessions.wait(ROUND);
            self.keep_sessions();
        }
    }

    /// One round over all live pages; a page that fails is warned of and looked at again.
    pub(crate) fn keep_sessions(&self) {
        for page in self.sessions.all() {
            if let Err(refusal) = self.keep_page(&page) {
                tracing::warn!(page = %page.uid, %refusal, "a page that is being edited could not be looked after");
            }
        }
    }

    fn keep_page(&self, page: &LivePage) -> Result<()> {
        if page.behind.load(Ordering::Acquire) {
            self.catch_up(page)?;
        }
        let now = self.now();
        let (saver, idle) = {
            let state = page.state.lock();
            (autosaver(&state, now), idle(&state, now))
        };
        if let Some(caller) = saver {
            self.save_unattended(page, &caller, now)?;
        }
        for (session, caller) in idle {
            self.end_idle(page, &session, &caller, now)?;
        }
        Ok(())
    }

    /// Writes the logs of live pages as short as they can be.
    pub(crate) fn compact_live(&self) -> Result<Compaction> {
        let mut done = Compaction::default();
        for page in self.sessions.all() {
            let mut state = page.state.lock();
            if state.ended {
                continue;
            }
            let (ops, before) = (state.ops.len() as u64, page.log.size());
            page.compact(&mut state)?;
            done.ops += ops;
            done.bytes += before.saturating_sub(page.log.size());
        }
        Ok(done)
    }

    /// Makes what is being typed into a page its next version.
    pub(crate) fn commit_live(&self, caller: &Caller, uid: Uid) -> Result<()> {
        let Some(page) = self.sessions.page(uid) else {
            return Ok(());
        };
        let answer = self.commit_page(&page, caller)?;
        match answer.issues.into_iter().next().filter(|_| !answer.ok) {
            Some(issue) => Err(Refusal::new(Code::Conflict, issue.message)),
            None => Ok(()),
        }
    }

    /// Ends all sessions of a page; nothing of what was typed stays.
    pub(crate) fn end_live(&self, uid: Uid) -> Result<()> {
        let _opening = self.sessions.opening.lock();
        let Some(page) = self.sessions.page(uid) else {
            // One that could not be taken up again.
            return match self.store.live()?.open(uid)? {
                Some(found) => Ok(found.log.remove()?),
                None => Ok(()),
            };
        };
        let mut state = page.state.lock();
        for peer in std::mem::take(&mut state.peers) {
            peer.listener.hear(&Said::Closed);
        }
        for session in std::mem::take(&mut state.handles).into_keys() {
            self.sessions.forget(&session);
        }
        state.ended = true;
        self.sessions.pages.lock().remove(&uid);
        Ok(page.log.remove()?)
    }

    pub(super) fn catch_up(&self, page: &LivePage) -> Result<()> {
        let path = self
            .view
            .load()
            .dir
            .by_uid(page.uid)
            .map(|e| e.path.clone());
        let _page = path.as_deref().map(|path| self.page_locks.lock(path));
        self.caught_up_page(page).map(drop)
    }

    /// Says whether everything is in a version now.
    fn save_unattended(&self, page: &LivePage, caller: &Caller, now: i64) -> Result<bool> {
        let answer = self.commit_page(page, caller);
        let saved = matches!(&answer, Ok(answer) if answer.ok);
        if !saved {
            page.state.lock().retry_at = now + AGAIN;
        }
        answer.map(|answer| answer.ok)
    }

    fn end_idle(&self, page: &LivePage, session: &str, caller: &Caller, now: i64) -> Result<()> {
        let last = page.state.lock().handles.len() == 1;
        if !last || self.save_unattended(page, caller, now)? {
            return self.close_handle(page, session);
        }
        Ok(())
    }
}

/// Who commits now, if it is time for it.
fn autosaver(state: &State, now: i64) -> Option<Caller> {
    let due = state.dirty
        && !state.gone
        && now >= state.retry_at
        && (now - state.changed_at >= PAUSE || now - state.since >= AT_LEAST);
    let mut handles = state.handles.values().filter(|handle| handle.autosave);
    handles
        .next()
        .filter(|_| due)
        .map(|handle| handle.by.clone())
}

/// Sessions that were left.
fn idle(state: &State, now: i64) -> Vec<(String, Caller)> {
    let attached = |session: &str| state.peers.iter().any(|peer| peer.session == session);
    state
        .handles
        .iter()
        .filter(|(session, handle)| now - handle.used_at >= IDLE && !attached(session))
        .filter(|_| now >= state.retry_at)
        .map(|(session, handle)| (session.clone(), handle.by.clone()))
        .collect()
}
