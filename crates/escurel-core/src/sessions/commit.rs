//! How a document becomes a version, and how versions enter the document.

use std::sync::atomic::Ordering;

use escurel_access::Caller;
use escurel_index::Entry;
use escurel_md::{Issue, Severity};
use escurel_store::{Draft, Kind};
use serde_json::{Map, Value};

use super::frames::Frame;
use super::page::{Base, LivePage, Said, State};
use super::{LONG_LOG, unknown};
use crate::api::{ClosedSession, UpdateAnswer};
use crate::facts::{Parsed, digest};
use crate::kb::Core;
use crate::lane::Work;
use crate::reconcile::{entry_draft, publish_entry};
use crate::write::NewText;
use crate::{Code, Refusal, Result};

impl Core {
    /// Closes a session: what was typed becomes the page's next version, or, if nobody else typed, goes.
    /// Where the commit is refused, `ok` is false and the session stays open.
    ///
    /// # Errors
    /// `unknown_session`; `session_shared` when others' changes would be dropped, too; `disk_full`, `io_error`.
    pub fn close_session(
        &self,
        caller: &Caller,
        session: &str,
        commit: bool,
    ) -> Result<ClosedSession> {
        let page = self.sessions.of(session)?;
        if !page.state.lock().handles.contains_key(session) {
            return Err(unknown(session));
        }
        let answer = if commit {
            self.commit_page(&page, caller)?
        } else {
            self.drop_changes(&page, caller, session)?
        };
        if answer.ok {
            self.close_handle(&page, session)?;
        }
        Ok(ClosedSession {
            ok: answer.ok,
            page_id: answer.page_id,
            final_version: answer.version,
            issues: answer.issues,
        })
    }

    /// Makes what was typed the page's next version, the session going on.
    pub(super) fn commit_page(&self, page: &LivePage, caller: &Caller) -> Result<UpdateAnswer> {
        let Some(entry) = self.view.load().dir.by_uid(page.uid).cloned() else {
            return Ok(self.gone(page));
        };
        let _page = self.page_locks.lock(&entry.path);
        let Some(entry) = self.caught_up_page(page)? else {
            return Ok(self.gone(page));
        };
        let mut state = page.state.lock();
        if !state.dirty {
            return Ok(unchanged(&entry, state.base.version));
        }
        let (text, point) = (state.document.text(), state.document.here());
        let known = Frame::Point {
            version: state.base.version + 1,
            point: point.0.clone(),
        };
        page.record(&mut state, &known, &[])?;
        let wrote = (
            std::mem::take(&mut state.writers),
            std::mem::take(&mut state.authors),
        );
        drop(state);
        let draft = NewText {
            content: text.as_bytes().into(),
            base_version: None,
            dry_run: false,
            authors: wrote.1.iter().cloned().collect(),
        };
        // Nothing is acknowledged of a version whose place in the document is not known after a crash.
        let written = page
            .sync()
            .map_err(Refusal::from)
            .and_then(|()| self.update_locked(caller, &entry.path, draft));
        let mut state = page.state.lock();
        match &written {
            Ok(answer) if answer.ok => {
                let head = self.view.load().dir.by_uid(page.uid).cloned();
                let plain = head.is_some_and(|head| head.digest == digest(text.as_bytes()));
                // What somebody saved in the same moment comes into the document as an edit of ours.
                let version = if plain { answer.version } else { 0 };
                state.committed(Base::of(version, point, &text));
            }
            _ => {
                state.writers.extend(wrote.0);
                state.authors.extend(wrote.1);
            }
        }
        drop(state);
        self.caught_up_page(page)?;
        self.shorten(page)?;
        written
    }

    /// Brings the newest version into the document. The caller holds the page's write lock.
    ///
    /// `None`: the page was deleted.
    pub(super) fn caught_up_page(&self, page: &LivePage) -> Result<Option<std::sync::Arc<Entry>>> {
        page.behind.store(false, Ordering::Release);
        let entry = self.view.load().dir.by_uid(page.uid).cloned();
        let mut state = page.state.lock();
        let Some(entry) = entry else {
            if !std::mem::replace(&mut state.gone, true) {
                state.tell(None, |_| Said::Resync("deleted"));
            }
            return Ok(None);
        };
        state.gone = false;
        if entry.version == state.base.version {
            return Ok(Some(entry));
        }
        if entry.digest == state.base.digest {
            state.base.version = entry.version;
            let known = Frame::Point {
                version: entry.version,
                point: state.base.point.0.clone(),
            };
            page.record(&mut state, &known, &[])?;
            return Ok(Some(entry));
        }
        let head = String::from_utf8(self.head_text(&entry)?)
            .map_err(|_| Refusal::new(Code::NotUtf8, format!("{} is not UTF-8.", entry.path)))?;
        self.take_version(page, &mut state, entry.version, &head)?;
        Ok(Some(entry))
    }

    /// What was changed elsewhere enters the document as one edit, and reaches everybody once it is safe.
    fn take_version(
        &self,
        page: &LivePage,
        state: &mut State,
        version: u64,
        head: &str,
    ) -> Result<()> {
        page.settle(state)?;
        let was_dirty = state.dirty;
        let edit = state
            .document
            .rewrite_at(&state.base.point.clone(), head, self.new_peer())
            .map_err(|unfit| super::broken(page.uid, &unfit))?;
        state.base = Base::of(version, edit.point, head);
        state.dirty = was_dirty && state.document.here() != state.base.point;
        let outside = Frame::Outside {
            version,
            point: state.base.point.0.clone(),
        };
        let recorded = page
            .record(state, &outside, &edit.update)
            .and_then(|()| page.log.sync());
        if let Err(error) = recorded {
            // Made again after a crash, the edit would be another one, and the text double.
            state.unsaved = true;
            page.settle(state).map_err(|_| Refusal::from(error))?;
        }
        if !edit.update.is_empty() {
            state.relay(&[edit.update], None);
        }
        Ok(())
    }

    /// Takes back what one session typed; the text stays in the page's history.
    fn drop_changes(
        &self,
        page: &LivePage,
        caller: &Caller,
        session: &str,
    ) -> Result<UpdateAnswer> {
        let path = self
            .view
            .load()
            .dir
            .by_uid(page.uid)
            .map(|e| e.path.clone());
        let _page = path.as_deref().map(|path| self.page_locks.lock(path));
        let entry = self.caught_up_page(page)?;
        let mut state = page.state.lock();
        let wrote = state.writers.contains(session);
        let last = state.handles.len() == 1;
        if !state.dirty || (!wrote && !last) {
            let version = state.base.version;
            return Ok(match entry {
                Some(entry) => unchanged(&entry, version),
                None => ok(path.as_deref().unwrap_or_default(), version),
            });
        }
        let others = state.writers.iter().any(|writer| writer != session);
        if others {
            let why = "Others have typed into this page since its last version.";
            return Err(Refusal::new(Code::SessionShared, why).at("commit"));
        }
        let Some(entry) = entry else {
            let why = "The page was deleted, so what was typed into it has no page to stay with.";
            return Err(Refusal::new(Code::SessionShared, why).at("commit"));
        };
        let text = state.document.text();
        let head = String::from_utf8(self.head_text(&entry)?)
            .map_err(|_| Refusal::new(Code::NotUtf8, format!("{} is not UTF-8.", entry.path)))?;
        let version = self.keep_draft(caller, &entry, &text, &head)?;
        let here = state.document.here();
        let back = state
            .document
            .rewrite_at(&here, &head, self.new_peer())
            .map_err(|unfit| super::broken(page.uid, &unfit))?;
        state.base = Base::of(version, back.point, &head);
        state.dirty = false;
        state.writers.clear();
        state.authors.clear();
        let outside = Frame::Outside {
            version,
            point: state.base.point.0.clone(),
        };
        page.record(&mut state, &outside, &back.update)?;
        page.log.sync()?;
        state.relay(&[back.update], None);
        Ok(ok(&entry.path, version))
    }

    /// A text that nobody wants as the page, but that must not be lost: a version, and after it at once the page as
    /// it is. The file is not touched. Answers the number of the second.
    pub(super) fn keep_draft(
        &self,
        caller: &Caller,
        entry: &Entry,
        text: &str,
        head: &str,
    ) -> Result<u64> {
        let texts = [(text, "draft"), (head, "restored")];
        let mut drafts = Vec::new();
        for ((text, origin), version) in texts.into_iter().zip(entry.version + 1..) {
            drafts.push(Draft {
                uid: Some(entry.uid),
                path: Some(entry.path.to_string()),
                version: Some(version),
                content: Some(text.as_bytes().into()),
                note: Map::from_iter([("origin".to_owned(), Value::from(origin))]),
                ..Draft::new(Kind::PageVersion, &*caller.subject)
            });
        }
        let parsed = texts.map(|(text, _)| Parsed::of(&entry.path, text.as_bytes(), self.layout));
        self.append(drafts)?.publish(|state, records| {
            let mut work = Work::default();
            for (record, parsed) in records.iter().zip(&parsed) {
                let old = state.dir.by_uid(entry.uid).cloned();
                let draft = entry_draft(record, old.as_deref(), parsed, entry.stat);
                publish_entry(
                    state,
                    draft,
                    old.as_deref(),
                    parsed,
                    record,
                    &mut work,
                    false,
                );
            }
            work
        })?;
        Ok(entry.version + 2)
    }

    /// Forgets a session; the last one ends the page's live history, unless something is not committed.
    pub(super) fn close_handle(&self, page: &LivePage, session: &str) -> Result<()> {
        let _opening = self.sessions.opening.lock();
        let mut state = page.state.lock();
        state.handles.remove(session);
        self.sessions.forget(session);
        let (closed, others) = std::mem::take(&mut state.peers)
            .into_iter()
            .partition(|peer| peer.session == session);
        state.peers = others;
        let closed: Vec<super::page::Peer> = closed;
        closed
            .iter()
            .for_each(|peer| peer.listener.hear(&Said::Closed));
        if state.handles.is_empty() && !state.dirty {
            state.ended = true;
            self.sessions.pages.lock().remove(&page.uid);
            return Ok(page.log.remove()?);
        }
        let frame = Frame::Closed {
            session: session.to_owned(),
        };
        page.record(&mut state, &frame, &[])?;
        drop(state);
        Ok(page.sync()?)
    }

    /// Throws away history that nobody needs any more, when there is much of it.
    fn shorten(&self, page: &LivePage) -> Result<()> {
        let mut state = page.state.lock();
        if page.log.size() > LONG_LOG && !state.ended {
            page.compact(&mut state)?;
        }
        Ok(())
    }

    fn gone(&self, page: &LivePage) -> UpdateAnswer {
        let issue = Issue {
            severity: Severity::Error,
            code: Code::PageNotFound.name(),
            location: "session".to_owned(),
            message: format!(
                "The page {} was deleted while it was edited; what was typed is kept.",
                page.uid
            ),
            suggestion: None,
        };
        UpdateAnswer {
            issues: vec![
                issue.suggest("Bring it back with restore_page, then close again.".to_owned()),
            ],
            ..UpdateAnswer::default()
        }
    }
}

fn unchanged(entry: &Entry, version: u64) -> UpdateAnswer {
    ok(&entry.path, version)
}

fn ok(path: &str, version: u64) -> UpdateAnswer {
    UpdateAnswer {
        ok: true,
        page_id: path.to_owned(),
        version,
        ..UpdateAnswer::default()
    }
}
