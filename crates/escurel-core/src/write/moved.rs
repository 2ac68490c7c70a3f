//! A page under another name: its file, and every link that led to it, in one commit.
//!
//! Links are told by where they lead, before and after: one that leads where it
//! led stays as it is written, every other is given the name that leads there.
//! Links of pages that the mover may not see are kept as well; they say nothing
//! else than before.

use std::collections::BTreeMap;
use std::sync::Arc;

use escurel_access::{Caller, Verb};
use escurel_index::{Directory, Entry, EntryDraft, PageNo, Scope, folder, join, stem, strip_md};
use escurel_md::{
    Issue, Link, LinkKind, PageType, Severity, Wikilink, relative_path, relink, set_frontmatter_key,
};
use escurel_store::{Draft, Kind, Record, Removed, Replaced, Stat};
use serde_json::{Map, Value, json};

use super::update::{home, refused, unified};
use super::{checked_path, guard_present, guard_version, missing, version_draft};
use crate::api::{MoveAnswer, Relinked, UpdateAnswer};
use crate::facts::Parsed;
use crate::kb::Core;
use crate::lane::{LaneState, Work};
use crate::reconcile::{entry_draft, publish_entry};
use crate::sight::may;
use crate::{Code, Refusal, Result};

/// Pages that change while a move is planned make it plan again.
const MOST_PLANS: usize = 8;

/// Where a page goes and what it is called there.
struct Goal {
    path: String,
    content: Vec<u8>,
}

/// One page of the commit.
struct Step {
    entry: Arc<Entry>,
    path: String,
    planned: Vec<u8>,
    content: Arc<[u8]>,
    parsed: Parsed,
    /// Links that were given another name.
    links: usize,
    /// Lines of links that could not be.
    left: Vec<u32>,
}

impl Step {
    fn moves(&self) -> bool {
        *self.entry.path != *self.path
    }

    fn rewrites(&self) -> bool {
        self.planned[..] != self.content[..]
    }

    fn version(&self) -> u64 {
        self.entry.version + u64::from(self.rewrites())
    }

    fn drafts(&self, author: &str) -> Vec<Draft> {
        let entry = &self.entry;
        let mut drafts = Vec::new();
        if self.moves() {
            let note = [("from_path", &*entry.path), ("origin", "write")];
            let note = note.map(|(key, value)| (key.to_owned(), Value::from(value)));
            drafts.push(Draft {
                uid: Some(entry.uid),
                path: Some(self.path.clone()),
                note: Map::from_iter(note),
                ..Draft::new(Kind::PageMoved, author)
            });
        }
        if self.rewrites() {
            let (uid, version) = (entry.uid, self.version());
            drafts.push(version_draft(
                author,
                uid,
                &self.path,
                version,
                &self.content,
                "write",
            ));
        }
        drafts
    }

    fn publish(
        &self,
        state: &mut LaneState,
        records: &mut std::slice::Iter<'_, Record>,
        stat: Option<Stat>,
        work: &mut Work,
    ) {
        for record in records.take(usize::from(self.moves()) + usize::from(self.rewrites())) {
            let old = state.dir.by_uid(self.entry.uid).cloned();
            let draft = entry_draft(record, old.as_deref(), &self.parsed, stat);
            publish_entry(
                state,
                draft,
                old.as_deref(),
                &self.parsed,
                record,
                work,
                false,
            );
        }
    }
}

impl Core {
    /// Gives a page another path, or another skill and id with the path that goes with them, and
    /// every link that led to it the new name. `to` is a path or `[[skill::id]]`.
    ///
    /// # Errors
    /// `page_not_found`, `ambiguous`, `read_only`, `missing_on_disk`, `disk_full`, `journal_broken`.
    pub fn move_page(
        &self,
        caller: &Caller,
        page_id: &str,
        to: &str,
        base_version: Option<u64>,
        dry_run: bool,
    ) -> Result<MoveAnswer> {
        for _ in 0..MOST_PLANS {
            let entry = self.named(caller, &page_id.into())?;
            if let Some(scenario) = &entry.facts.scenario {
                let why = format!(
                    "{} belongs to the scenario `{scenario}` and cannot be moved; write it anew and delete this one.",
                    entry.path
                );
                return Err(Refusal::new(Code::NotSupported, why).at("page_id"));
            }
            let steps = match self.plan_move(caller, &entry, to, base_version) {
                Ok(steps) => steps,
                Err(refusal) => return Ok(refused(refusal)?.into()),
            };
            if dry_run {
                return Ok(self.move_answer(caller, &steps, Vec::new()));
            }
            let paths = steps
                .iter()
                .flat_map(|step| [&*step.entry.path, &step.path]);
            let pages = self.page_locks.lock_all(paths);
            if !self.is_current(&steps) {
                continue;
            }
            let saved = self.saved_since(&steps)?;
            if saved.is_empty() {
                return self.carry_out(caller, &steps);
            }
            drop(pages);
            self.reconcile_paths(&saved)?;
        }
        let why = format!("Pages that link to {page_id} are being changed over and over.");
        let refusal = Refusal::new(Code::Conflict, why).at("page_id");
        Ok(refused(refusal)?.into())
    }

    /// The moved page first. Nothing is locked yet.
    fn plan_move(
        &self,
        caller: &Caller,
        entry: &Arc<Entry>,
        to: &str,
        base_version: Option<u64>,
    ) -> Result<Vec<Step>> {
        guard_version(entry, base_version)?;
        guard_present(entry)?;
        if !entry.facts.utf8 {
            let why = format!("{} is not UTF-8.", entry.path);
            return Err(Refusal::new(Code::NotUtf8, why).at("page_id"));
        }
        let planned = self.head_text(entry)?;
        let goal = self.goal(entry, &planned, to)?;
        let parsed = Parsed::of(&goal.path, &goal.content, self.layout);
        self.guard_move(caller, entry, &goal, &parsed)?;
        self.steps(entry, planned, goal, &parsed)
    }

    fn guard_move(
        &self,
        caller: &Caller,
        entry: &Entry,
        goal: &Goal,
        parsed: &Parsed,
    ) -> Result<()> {
        let allowed = may(
            &*self.policy,
            caller,
            Verb::Update,
            &entry.path,
            &entry.facts,
        ) && may(
            &*self.policy,
            caller,
            Verb::Create,
            &goal.path,
            &parsed.facts,
        );
        if !allowed {
            let why = format!("{} may not move {}.", caller.subject, entry.path);
            return Err(Refusal::new(Code::Forbidden, why).at("page_id"));
        }
        self.guard_writable(&entry.path)?;
        self.guard_writable(&goal.path)?;
        self.guard_kind(caller, Some(entry), parsed)?;
        let is_skill = entry.facts.page_type == PageType::Skill;
        if is_skill && *entry.facts.id != *parsed.page.id {
            let why = format!(
                "Pages name the skill {}, so it keeps its id.",
                entry.facts.id
            );
            return Err(Refusal::new(Code::IdentityChanged, why).at("to"));
        }
        if goal.path == *entry.path {
            return Ok(());
        }
        let invalid = |why: String| Refusal::new(Code::PageIdInvalid, why).at("to");
        if self.view.load().dir.by_path(&goal.path).is_some() {
            return Err(invalid(format!("{} is another page.", goal.path)));
        }
        // Before anything is recorded, as nothing could be taken back then.
        if let Err(error) = self.store.can_create(&goal.path) {
            return Err(invalid(format!(
                "{} cannot be created: {error}.",
                goal.path
            )));
        }
        let renamed =
            *entry.facts.skill != *parsed.page.skill || *entry.facts.id != *parsed.page.id;
        match renamed {
            true => self.guard_create(&goal.path, parsed),
            false => Ok(()),
        }
    }

    /// The new path, and the text with the identity that goes with it.
    fn goal(&self, entry: &Entry, planned: &[u8], to: &str) -> Result<Goal> {
        let (path, skill, id) = if to.trim_start().starts_with("[[") {
            let link = Wikilink::parse(to.trim()).ok();
            let Some((skill, id)) = link.and_then(|link| Some((link.skill?, link.id?))) else {
                let why = format!("`{to}` is not [[skill::id]].");
                return Err(Refusal::new(Code::PageIdInvalid, why).at("to"));
            };
            (self.path_named(entry, &skill, &id), skill, id)
        } else {
            let path = checked_path(to).map_err(|refusal| refusal.at("to"))?;
            let page = escurel_md::parse(&entry.path, planned, self.layout);
            let id = match page.frontmatter.contains_key("id") {
                true => id_after(entry, &path),
                false => escurel_md::parse(&path, planned, self.layout).id,
            };
            (path, entry.facts.skill.to_string(), id)
        };
        let path = checked_path(&path).map_err(|refusal| refusal.at("to"))?;
        let mut content = planned.to_vec();
        for (key, value) in [("skill", skill), ("id", id)] {
            let page = escurel_md::parse(&path, &content, self.layout);
            let stands = if key == "skill" {
                &*page.skill
            } else {
                &*page.id
            };
            if stands != value {
                content =
                    set_frontmatter_key(&content, key, Some(&json!(value))).map_err(|error| {
                        Refusal::new(Code::PageIdInvalid, format!("{}: {error}.", entry.path))
                            .at("page_id")
                    })?;
            }
        }
        Ok(Goal { path, content })
    }

    /// A page that stands where one of its name goes moves to where one of the new name goes;
    /// any other stays in its folder.
    fn path_named(&self, entry: &Entry, skill: &str, id: &str) -> String {
        let facts = &entry.facts;
        if *entry.path == *home(self.layout, None, &facts.skill, &facts.id) {
            return home(self.layout, None, skill, id);
        }
        match folder(&entry.path) {
            // Without an id of its own a page of a vault is called by its path.
            folder if !folder.is_empty() && !id.contains('/') => format!("{folder}/{id}.md"),
            _ => format!("{id}.md"),
        }
    }

    fn steps(
        &self,
        entry: &Arc<Entry>,
        planned: Vec<u8>,
        goal: Goal,
        parsed: &Parsed,
    ) -> Result<Vec<Step>> {
        let before = self.view.load().dir.clone();
        let mut after = before.clone();
        after.upsert(EntryDraft {
            path: goal.path.as_str().into(),
            facts: parsed.facts.clone(),
            ..draft_of(entry)
        });
        let referrers = before
            .referrers(&entry.facts, &entry.path)
            .into_iter()
            .chain(after.referrers(&parsed.facts, &goal.path));
        let mut pages: BTreeMap<Arc<str>, PageNo> = referrers
            .filter_map(|no| Some((before.get(no)?.path.clone(), no)))
            .collect();
        pages.remove(&entry.path);
        let done = self.relinked(&before, &after, entry, &goal.path, &goal.content);
        let mut steps = vec![self.step(entry, goal.path, planned, done)];
        for no in pages.into_values() {
            let Some(page) = before
                .get(no)
                .filter(|page| !page.missing && page.facts.utf8)
            else {
                continue;
            };
            if crate::builtin::is_builtin(&page.path) {
                continue;
            }
            let text = self.head_text(page)?;
            let done = self.relinked(&before, &after, page, &page.path, &text);
            if done.changed > 0 || !done.left.is_empty() {
                steps.push(self.step(page, page.path.to_string(), text, done));
            }
        }
        Ok(steps)
    }

    /// A page's content, at `path` after the move, with its links leading where they led.
    fn relinked(
        &self,
        before: &Directory,
        after: &Directory,
        entry: &Arc<Entry>,
        path: &str,
        content: &[u8],
    ) -> escurel_md::Relinked {
        let page = escurel_md::parse(path, content, self.layout);
        let from = after.by_uid(entry.uid).unwrap_or(entry);
        let moved = from.path != entry.path;
        let scope = Scope {
            scenario: page.scenario.as_deref(),
            visible: &|_| true,
        };
        relink(&page, path, self.layout, |link| {
            if link.kind == LinkKind::Asset {
                return moved.then(|| asset_from(entry, path, link)).flatten();
            }
            let old = before.resolve(&link.target, link.kind, Some(entry), &scope);
            let target = old.found()?;
            let leads = |link: &Wikilink, kind| {
                let now = after.resolve(link, kind, Some(from), &scope);
                now.found().is_some_and(|now| now.uid == target.uid)
            };
            if leads(&link.target, link.kind) {
                return None;
            }
            let target = after.by_uid(target.uid)?;
            let mut names = names(link, target, path).into_iter();
            let found = names.find(|name| {
                let named = if link.kind == LinkKind::Markdown {
                    Ok(Wikilink {
                        id: Some(name.clone()),
                        ..Wikilink::default()
                    })
                } else {
                    Wikilink::parse(name)
                };
                named.is_ok_and(|named| leads(&named, link.kind))
            });
            // What cannot be named is told as left, not silently broken.
            Some(found.unwrap_or_default())
        })
    }

    fn step(
        &self,
        entry: &Arc<Entry>,
        path: String,
        planned: Vec<u8>,
        done: escurel_md::Relinked,
    ) -> Step {
        let content: Arc<[u8]> = done.text.into_bytes().into();
        Step {
            parsed: Parsed::of(&path, &content, self.layout),
            entry: entry.clone(),
            path,
            planned,
            content,
            links: done.changed,
            left: done.left,
        }
    }

    /// Whether nobody wrote one of the pages, or a new one at the goal, since the plan was made.
    fn is_current(&self, steps: &[Step]) -> bool {
        let dir = &self.view.load().dir;
        steps.iter().all(|step| {
            let there = dir.by_uid(step.entry.uid);
            let same = there.is_some_and(|now| now.seq == step.entry.seq && !now.missing);
            same && (!step.moves() || dir.by_path(&step.path).is_none())
        })
    }

    /// Pages whose files somebody saved, of which the watcher has not told yet.
    fn saved_since(&self, steps: &[Step]) -> Result<Vec<String>> {
        let mut saved = Vec::new();
        for step in steps {
            match self.store.read(&step.entry.path)? {
                Some((bytes, _)) if bytes == step.planned => {}
                Some(_) => saved.push(step.entry.path.to_string()),
                None => {
                    self.request_rescan();
                    return Err(missing(&step.entry));
                }
            }
        }
        Ok(saved)
    }

    fn carry_out(&self, caller: &Caller, steps: &[Step]) -> Result<MoveAnswer> {
        let drafts = steps.iter().flat_map(|step| step.drafts(&caller.subject));
        let drafts: Vec<Draft> = drafts.collect();
        if drafts.is_empty() {
            return Ok(self.move_answer(caller, steps, Vec::new()));
        }
        let ticket = self.append(drafts)?;
        let mut stats = Vec::with_capacity(steps.len());
        let mut issues = Vec::new();
        let mut failed = None;
        for step in steps {
            match self.put_step(step) {
                Ok(Put::Done(stat)) => stats.push(Some(stat)),
                Ok(Put::Saved) => {
                    let place = &step.entry.path;
                    let why = format!(
                        "{place} was saved by somebody else in this moment; what they saved stands there."
                    );
                    issues.push(warning("save_kept", place, why));
                    stats.push(None);
                }
                Err(error) => {
                    stats.push(None);
                    failed.get_or_insert(error.at(step.path.clone()));
                }
            }
        }
        let rescan = failed.is_some() || !issues.is_empty();
        ticket.publish(|state, records| {
            let (mut work, mut records) = (Work::default(), records.iter());
            for (step, stat) in steps.iter().zip(stats) {
                step.publish(state, &mut records, stat, &mut work);
            }
            work
        })?;
        if rescan {
            self.request_rescan();
        }
        match failed {
            Some(refusal) => Err(refusal),
            None => Ok(self.move_answer(caller, steps, issues)),
        }
    }

    /// The file under its new name with its new text, then the old one away.
    fn put_step(&self, step: &Step) -> Result<Put> {
        let planned = (!step.moves()).then_some(&step.planned[..]);
        let stat = match self.store.replace(&step.path, planned, &step.content)? {
            Replaced::Done(stat) | Replaced::Displaced { stat, found: None } => stat,
            Replaced::Displaced {
                found: Some(found), ..
            } => {
                self.put_back(&step.path, step.content.to_vec(), found)?;
                return Ok(Put::Saved);
            }
        };
        self.reach("core.after_replace")?;
        if step.moves() {
            // Of the two names one must be durable before the other goes.
            self.store.flush_files()?;
            let removed = self.store.remove(&step.entry.path, &step.planned)?;
            self.reach("core.after_remove")?;
            if let Removed::Changed { .. } = removed {
                return Ok(Put::Saved);
            }
        }
        Ok(Put::Done(stat))
    }

    fn move_answer(&self, caller: &Caller, steps: &[Step], mut issues: Vec<Issue>) -> MoveAnswer {
        let reading = self.reading(caller, None);
        let mut answer = MoveAnswer::default();
        let mut diff = String::new();
        for (n, step) in steps.iter().enumerate() {
            if n > 0 && !reading.sight.sees(&step.entry) {
                continue;
            }
            for line in &step.left {
                let why = format!(
                    "A link in line {line} of {} could not be renamed.",
                    step.path
                );
                issues.push(warning("link_not_rewritten", &step.path, why));
            }
            if step.rewrites() {
                diff.push_str(&unified(&step.path, &step.planned, &step.content));
            }
            if step.links > 0 {
                answer.relinked.push(Relinked {
                    page_id: step.path.clone(),
                    version: step.version(),
                    links: step.links as u64,
                });
            }
        }
        let moved = &steps[0];
        answer.from = moved.entry.path.to_string();
        answer.update = UpdateAnswer {
            ok: true,
            page_id: moved.path.clone(),
            version: moved.version(),
            issues,
            diff,
            ..UpdateAnswer::default()
        };
        answer
    }
}

enum Put {
    Done(Stat),
    /// Somebody saved the file at the same moment.
    Saved,
}

impl From<UpdateAnswer> for MoveAnswer {
    fn from(update: UpdateAnswer) -> MoveAnswer {
        MoveAnswer {
            update,
            ..MoveAnswer::default()
        }
    }
}

fn warning(code: &'static str, page: &str, message: String) -> Issue {
    Issue {
        severity: Severity::Warning,
        code,
        location: page.to_owned(),
        message,
        suggestion: None,
    }
}

/// An id that says what the file's name says follows it; any other stays.
fn id_after(entry: &Entry, path: &str) -> String {
    let id = &*entry.facts.id;
    let after = if id == stem(&entry.path) {
        stem(path)
    } else if id == strip_md(&entry.path) {
        strip_md(path)
    } else {
        id
    };
    after.to_owned()
}

/// What a link may call the page, in the manner of the link as it is.
fn names(link: &Link, target: &Entry, from: &str) -> Vec<String> {
    let path = &*target.path;
    let bare = strip_md(path);
    let (skill, id) = (&target.facts.skill, &target.facts.id);
    let typed = format!("{skill}::{id}");
    if link.kind == LinkKind::Markdown {
        return vec![relative_path(folder(from), path)];
    }
    if link.target.skill.is_some() {
        return vec![typed];
    }
    let written = link.target.id.as_deref().unwrap_or_default();
    let mut names = if written.ends_with(".md") {
        vec![path.to_owned()]
    } else if written.contains('/') {
        vec![bare.to_owned()]
    } else {
        vec![stem(path).to_owned(), id.to_string(), bare.to_owned()]
    };
    names.extend([path.to_owned(), typed]);
    names
}

/// A relative path of a page that went to another folder leads to the file it led to.
fn asset_from(entry: &Entry, path: &str, link: &Link) -> Option<String> {
    let written = link.target.id.as_deref()?;
    let in_brackets = link.raw.trim_start_matches('!').starts_with("[[");
    if in_brackets || written.starts_with('/') || written.contains(':') {
        return None;
    }
    let (old, new) = (folder(&entry.path), folder(path));
    let target = relative_path(new, &join(old, written)?);
    (old != new && target != written).then_some(target)
}

fn draft_of(entry: &Entry) -> EntryDraft {
    EntryDraft {
        uid: entry.uid,
        path: entry.path.clone(),
        version: entry.version,
        seq: entry.seq,
        from: entry.from,
        written_at: entry.written_at,
        author: entry.author.clone(),
        stat: entry.stat,
        object: entry.object,
        digest: entry.digest,
        bytes: entry.bytes,
        missing: entry.missing,
        facts: entry.facts.clone(),
    }
}
