//! Steps carried out on the knowledge base and on the model.

use std::sync::Arc;

use escurel_core::{Chore, Code, Put, Refusal, Written};
use escurel_store::Loss;
use parking_lot::Mutex;

use crate::index::Fate;
use crate::model::{Acknowledged, shown};
use crate::step::{Base, Fault, Outside, Step, Work};
use crate::text::{self, Change};
use crate::world::{Meddled, Outcome, Survivor, World, meddle};

/// What a fault came to.
enum Sprung {
    /// It was never reached, or there was none.
    Nothing,
    Failed,
    Crashed(Survivor),
    Meddled(Meddled),
}

/// A fault that waits for its moment.
enum Laid {
    Nothing,
    Fails,
    Crash(Arc<Mutex<Option<Survivor>>>),
    Meddles(Arc<Mutex<Option<Meddled>>>),
}

/// A page as readers see it before a write.
struct View {
    version: u64,
    missing: bool,
    text: Vec<u8>,
}

impl World {
    pub fn act(&mut self, step: &Step) -> Outcome {
        self.tick();
        match step {
            Step::Put {
                page,
                base,
                change,
                fault,
            } => self.put(*page, *base, change, fault),
            Step::Outside(outside) => {
                self.outside(outside);
                Ok(())
            }
            Step::Chore { chore, fault } => self.chore(*chore, fault),
            Step::Confirm { fault } => self.confirm(fault),
            Step::Advance(micros) => {
                self.clock.advance(*micros);
                Ok(())
            }
            Step::Read => self.check_reads().map(drop),
            Step::Settle => self.settle().map(drop),
            Step::Restart { index, fault } => self.restart(*index, fault),
            Step::Crash { loss, index, again } => {
                let survivor = self.crash_now(*loss, *index)?;
                self.resume_with(survivor, again.map(|after| (after, *loss, *index)))
            }
        }?;
        let found = self.files()?;
        self.model.accept(found)
    }

    fn put(&mut self, page: u32, base: Base, change: &Change, fault: &Fault) -> Outcome {
        let path = self.path(page);
        let view = self.view_of(&path)?;
        let old = view.as_ref().map_or(&[][..], |view| &view.text);
        let new = change.apply(old);
        let Ok(content) = String::from_utf8(new.clone()) else {
            return Ok(());
        };
        let base_version = match (base, &view) {
            (Base::Right, Some(view)) => Some(view.version),
            (Base::Stale, Some(view)) => Some(view.version + 1 - 2 * (view.version & 1)),
            _ => None,
        };
        let put = Put {
            path: &path,
            content: &content,
            base_version,
        };
        let expected = self.expected_refusal(&put, view.as_ref())?;
        let before = self.model.text(&path).cloned();
        if view.is_none() {
            self.model.fresh.insert(path.clone());
        }
        let laid = self.lay(fault);
        let result = self.kb.put_page(&self.me(), &put);
        match self.sprung(laid)? {
            Sprung::Nothing => self.told(&put, view.as_ref(), before, expected, result),
            Sprung::Crashed(survivor) => {
                self.may_come_out(&put, view.as_ref(), before)?;
                self.resume(survivor)
            }
            Sprung::Failed => {
                self.may_come_out(&put, view.as_ref(), before)?;
                if let Ok(written) = result {
                    self.acknowledge(&written)?;
                }
                Ok(())
            }
            Sprung::Meddled(done) => self.told_meanwhile(&put, view.as_ref(), done, result),
        }
    }

    /// The refusal that a write has to meet with, if any.
    fn expected_refusal(&self, put: &Put<'_>, view: Option<&View>) -> Outcome<Option<Code>> {
        let pages = self.pages()?;
        let new = self.page(put.path, put.content);
        let Some(view) = view else {
            let taken = pages
                .iter()
                .any(|p| p.id == new.id && p.read.skill == new.read.skill);
            return Ok(taken.then_some(Code::DuplicateId));
        };
        if view.missing {
            return Ok(Some(Code::MissingOnDisk));
        }
        let old = String::from_utf8_lossy(&view.text);
        if old.contains(char::REPLACEMENT_CHARACTER) {
            return Ok(Some(Code::NotUtf8));
        }
        if put.base_version.is_some_and(|base| base != view.version) {
            return Ok(Some(Code::Conflict));
        }
        let old = self.page(put.path, &old);
        let same = old.id == new.id && old.read.skill == new.read.skill;
        Ok((!same).then_some(Code::IdentityChanged))
    }

    /// The answer to an undisturbed write must be the one that the model expects.
    fn told(
        &mut self,
        put: &Put<'_>,
        view: Option<&View>,
        before: Option<Vec<u8>>,
        expected: Option<Code>,
        result: Result<Written, Refusal>,
    ) -> Outcome {
        let new = put.content.as_bytes();
        let planned = view.map(|view| &view.text);
        let version = view.map_or(0, |view| view.version);
        match (&result, expected) {
            (Err(refusal), Some(code)) if refusal.code == code => return Ok(()),
            (_, Some(code)) => {
                return Err(format!("{}: expected {code:?}, got {result:?}", put.path));
            }
            _ => {}
        }
        if planned.is_some_and(|planned| planned == new) {
            let same = matches!(&result, Ok(w) if w.version == version && !w.merged);
            return claim(same, || format!("nothing to write, but {result:?}"));
        }
        let undisturbed = before.is_none() || before.as_ref() == planned;
        match result {
            Ok(written) if undisturbed => {
                let as_told = written.version == version + 1 && !written.merged;
                claim(as_told, || format!("v{version} became {written:?}"))?;
                self.model.set(put.path, Some(new.to_vec()));
                self.acknowledge(&written)
            }
            Err(refusal) if undisturbed => Err(format!("{}: refused, {refusal}", put.path)),
            answer => {
                let theirs = before.unwrap_or_default();
                let base = planned.cloned().unwrap_or_default();
                self.told_of_a_stranger(put, &base, &theirs, answer)
            }
        }
    }

    /// The write met a file that nobody had told us of.
    fn told_of_a_stranger(
        &mut self,
        put: &Put<'_>,
        base: &[u8],
        theirs: &[u8],
        answer: Result<Written, Refusal>,
    ) -> Outcome {
        let new = put.content.as_bytes();
        let got = self.file(put.path)?;
        match answer {
            Ok(written) => {
                let merged = got
                    .as_ref()
                    .is_some_and(|got| text::is_merge(base, new, theirs, got));
                claim(merged && written.merged, || {
                    format!(
                        "{}: {written:?}, but the file holds {}",
                        put.path,
                        shown(got.as_ref())
                    )
                })?;
                self.model.set(put.path, got);
                self.acknowledge(&written)
            }
            Err(refusal) if refusal.code == Code::Conflict => {
                claim(got.as_deref() == Some(theirs), || {
                    format!(
                        "{}: their text was to stand, but the file holds {}",
                        put.path,
                        shown(got.as_ref())
                    )
                })
            }
            Err(refusal) => Err(format!("{}: {refusal}", put.path)),
        }
    }

    /// Somebody changed files while the write was under way.
    fn told_meanwhile(
        &mut self,
        put: &Put<'_>,
        view: Option<&View>,
        done: Meddled,
        result: Result<Written, Refusal>,
    ) -> Outcome {
        let before = self.model.text(put.path).cloned();
        let theirs = done
            .iter()
            .rev()
            .find(|(path, _)| path == put.path)
            .map(|(_, text)| text.clone());
        self.meddled(done);
        let got = self.file(put.path)?;
        let base = view.map_or(&[][..], |view| &view.text);
        let new = put.content.as_bytes();
        let right = match (&theirs, &got) {
            (None | Some(None), Some(got)) => {
                got == new || before.is_some_and(|before| text::keeps(base, &before, got))
            }
            (Some(Some(theirs)), Some(got)) => text::keeps(base, theirs, got),
            (Some(Some(_)), None) => false,
            (_, None) => true,
        };
        claim(right, || {
            format!(
                "{}: they saved {}, we {new:?}, and the file holds {}",
                put.path,
                shown(theirs.clone().flatten().as_ref()),
                shown(got.as_ref())
            )
        })?;
        self.model.set(put.path, got);
        // A crash may bring back what this write put in place.
        self.model.may_be(put.path, Some(new.to_vec()));
        match result {
            Ok(written) if written.merged => self.acknowledge(&written)?,
            Ok(written) => self.acknowledge_text(&written, new.to_vec()),
            Err(_) => {}
        }
        Ok(())
    }

    /// A write that ended without an answer is wholly there or wholly absent.
    fn may_come_out(
        &mut self,
        put: &Put<'_>,
        view: Option<&View>,
        before: Option<Vec<u8>>,
    ) -> Outcome {
        let new = put.content.as_bytes().to_vec();
        let base = view.map(|view| view.text.clone()).unwrap_or_default();
        if let Some(got) = self.file(put.path)?
            && let Some(theirs) = &before
            && text::is_merge(&base, &new, theirs, &got)
        {
            self.model.may_be(put.path, Some(got));
        }
        self.model.may_be(put.path, before);
        self.model.may_be(put.path, Some(new));
        Ok(())
    }

    fn acknowledge(&mut self, written: &Written) -> Outcome {
        let text = self.file(&written.path)?.unwrap_or_default();
        self.acknowledge_text(written, text);
        Ok(())
    }

    fn acknowledge_text(&mut self, written: &Written, text: Vec<u8>) {
        self.model.acknowledged.push(Acknowledged {
            path: written.path.clone(),
            version: written.version,
            text,
        });
    }

    fn file(&self, path: &str) -> Outcome<Option<Vec<u8>>> {
        Ok(self.files()?.remove(path))
    }

    /// What readers see at exactly this path.
    fn view_of(&self, path: &str) -> Outcome<Option<View>> {
        let page = self.pages()?.into_iter().find(|page| page.path == path);
        let Some(page) = page else { return Ok(None) };
        Ok(Some(View {
            version: page.version,
            missing: page.held,
            text: page.text.into_bytes(),
        }))
    }

    fn chore(&mut self, work: Work, fault: &Fault) -> Outcome {
        let chore = match work {
            Work::Scan => Chore::Scan,
            Work::Look(page) => Chore::Look(vec![self.path(page)]),
            Work::Settle => Chore::Settle,
            Work::Fold => Chore::Fold,
            Work::Save => Chore::Save,
        };
        let laid = self.lay(fault);
        let result = self.kb.do_chore(&chore);
        match self.sprung(laid)? {
            Sprung::Nothing => {
                result.map_err(|refusal| format!("{chore:?}: {refusal}"))?;
                if matches!(work, Work::Fold | Work::Save) {
                    self.model.fresh.clear();
                }
                Ok(())
            }
            Sprung::Failed => Ok(()),
            Sprung::Crashed(survivor) => self.resume(survivor),
            Sprung::Meddled(done) => {
                self.meddled(done);
                Ok(())
            }
        }
    }

    fn confirm(&mut self, fault: &Fault) -> Outcome {
        let laid = self.lay(fault);
        let result = self.kb.confirm_deletions(&self.me());
        match self.sprung(laid)? {
            Sprung::Nothing => result
                .map(drop)
                .map_err(|refusal| format!("confirming: {refusal}")),
            Sprung::Failed => Ok(()),
            Sprung::Crashed(survivor) => self.resume(survivor),
            Sprung::Meddled(done) => {
                self.meddled(done);
                Ok(())
            }
        }
    }

    fn restart(&mut self, index: Fate, fault: &Fault) -> Outcome {
        self.settle()?;
        let before = self.fingerprint()?;
        let laid = self.lay(fault);
        self.kb.close();
        let survivor = match self.sprung(laid)? {
            Sprung::Crashed(survivor) => survivor,
            Sprung::Meddled(done) => {
                self.meddled(done);
                let survivor = self.leave(Loss::Kill, index)?;
                return self.resume(survivor);
            }
            Sprung::Nothing | Sprung::Failed => self.leave(Loss::Kill, index)?,
        };
        self.resume(survivor)?;
        let after = self.fingerprint()?;
        match before.iter().zip(&after).find(|(a, b)| a != b) {
            None if before.len() == after.len() => Ok(()),
            None => Err("a restart changed how many answers there are".into()),
            Some((a, b)) => Err(format!("a restart changed the answer\n  {a}\nto\n  {b}")),
        }
    }

    /// Opens again after an end of whatever kind, and looks at what came of it.
    fn resume(&mut self, survivor: Survivor) -> Outcome {
        self.resume_with(survivor, None)
    }

    fn resume_with(&mut self, survivor: Survivor, again: Option<(u32, Loss, Fate)>) -> Outcome {
        if let Some(survivor) = self.go_on(survivor, again)? {
            self.go_on(survivor, None)?;
        }
        self.settle().map(drop)
    }

    fn lay(&self, fault: &Fault) -> Laid {
        match fault {
            Fault::None => Laid::Nothing,
            Fault::Fails { after } => {
                let fail = |point| Err(std::io::Error::other(format!("{point} was told to fail")));
                self.trap.arm(*after, Box::new(fail));
                Laid::Fails
            }
            Fault::Crash { after, loss, index } => {
                let kb = Arc::downgrade(&self.kb);
                Laid::Crash(self.lay_crash(*after, *loss, *index, kb))
            }
            Fault::Meanwhile { after, outside } => {
                Laid::Meddles(self.lay_meddling(*after, outside))
            }
        }
    }

    pub fn meddled(&mut self, done: Meddled) {
        for (path, text) in done {
            self.model.outside(&path, text);
        }
    }

    fn lay_meddling(&self, after: u32, outside: &Outside) -> Arc<Mutex<Option<Meddled>>> {
        let slot = Arc::new(Mutex::new(None));
        let (out, store) = (slot.clone(), self.store.clone());
        let (layout, outside) = (self.layout, outside.clone());
        let past = crate::model::Model {
            past: self.model.past.clone(),
            ..Default::default()
        };
        let spring = move |_: &'static str| {
            let files = crate::world::files(&store).map_err(std::io::Error::other)?;
            *out.lock() = Some(meddle(&store, layout, &files, &past, &outside));
            Ok(())
        };
        self.trap.arm(after, Box::new(spring));
        slot
    }

    fn sprung(&self, laid: Laid) -> Outcome<Sprung> {
        let armed = self.trap.disarm();
        Ok(match laid {
            Laid::Fails if !armed => Sprung::Failed,
            Laid::Crash(slot) => match slot.lock().take() {
                Some(survivor) => Sprung::Crashed(survivor),
                None if armed => Sprung::Nothing,
                None => return Err("the crash itself failed".into()),
            },
            Laid::Meddles(slot) => slot.lock().take().map_or(Sprung::Nothing, Sprung::Meddled),
            _ => Sprung::Nothing,
        })
    }
}

fn claim(holds: bool, otherwise: impl FnOnce() -> String) -> Outcome {
    match holds {
        true => Ok(()),
        false => Err(otherwise()),
    }
}
