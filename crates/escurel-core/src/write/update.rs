//! A whole page, created or replaced: what is found in it, what stands in the
//! way, and what somebody else wrote since.

use std::collections::HashSet;
use std::sync::Arc;

use escurel_access::Caller;
use escurel_index::Entry;
use escurel_md::{BackendKind, Issue, Layout, Severity, Wikilink};
use escurel_store::Uid;

use super::edit::set_key;
use super::{Change, checked_path, merge_pages};
use crate::api::{PageName, UpdateAnswer, UpdateRequest};
use crate::facts::Parsed;
use crate::kb::Core;
use crate::read::{Reading, not_found, row_of};
use crate::{Code, Refusal, Result};

/// Findings of a draft that keep it from being written.
const REFUSED: &[&str] = &[
    "frontmatter_unparsable",
    "identity_unclear",
    "not_utf8",
    "duplicate_id",
    "wikilink_malformed",
    "anchor_missing",
];

/// The one finding whose weight an operator decides, as a value that stands there already would
/// make the page unwritable.
const AUTONOMY: &str = "frontmatter_autonomy_unknown";

/// What a write is told of a skill page whose `autonomy` is no known policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AutonomyLint {
    /// A warning in the answer.
    #[default]
    Off,
    /// And a warning in the server's log.
    Log,
    /// It is refused.
    Enforce,
}

/// Layers of this kind come from a pack and are never written.
const BASE: &str = "base@";

impl Core {
    /// Creates or replaces one page. What is wrong with the draft, and what stands in its way, is
    /// in the answer: `ok` is false and nothing was written.
    ///
    /// # Errors
    /// `page_not_found` for an unknown uid, `ambiguous`, `read_only`, `missing_on_disk`,
    /// `disk_full`, `journal_broken`.
    pub fn update_page(&self, caller: &Caller, request: &UpdateRequest) -> Result<UpdateAnswer> {
        let (path, content) = match self.place(caller, request) {
            Ok(placed) => placed,
            Err(refusal) => return refused(refusal),
        };
        let _page = self.page_locks.lock(&path);
        let draft = NewText {
            content: content.into(),
            base_version: request.base_version,
            dry_run: request.dry_run,
            authors: Vec::new(),
        };
        self.update_locked(caller, &path, draft)
    }

    /// As [`Core::update_page`] for callers that hold the page's lock.
    pub(crate) fn update_locked(
        &self,
        caller: &Caller,
        path: &str,
        draft: NewText,
    ) -> Result<UpdateAnswer> {
        let old = self.view.load().dir.by_path(path).cloned();
        let planned = old
            .as_deref()
            .map(|entry| self.head_text(entry))
            .transpose()?;
        let plan = self.plan_update(caller, path, old.clone(), planned.clone(), &draft);
        let (change, auto_merged) = match plan {
            Ok(plan) => plan,
            Err(refusal) if refusal.code == Code::Conflict => return conflicted(refusal, planned),
            Err(refusal) => return refused(refusal),
        };
        let issues = match self.findings(caller, path, &change.parsed, planned.as_deref()) {
            Ok(issues) => issues,
            Err(issues) => {
                return Ok(UpdateAnswer {
                    issues,
                    ..UpdateAnswer::default()
                });
            }
        };
        let diff = unified(
            path,
            planned.as_deref().unwrap_or_default(),
            &change.content,
        );
        let before = old.as_ref().map_or(0, |entry| entry.version);
        let mut answer = UpdateAnswer {
            ok: true,
            page_id: path.to_owned(),
            auto_merged,
            issues,
            diff,
            ..UpdateAnswer::default()
        };
        if draft.dry_run {
            answer.version = before + u64::from(!answer.diff.is_empty());
            return Ok(answer);
        }
        match self.write_page(caller, change) {
            Ok(written) => {
                answer.version = written.version;
                answer.auto_merged |= written.merged;
                Ok(answer)
            }
            Err(refusal) if refusal.code == Code::Conflict => {
                let head = self.view.load().dir.by_path(path).cloned();
                let text = head.map(|entry| self.head_text(&entry)).transpose()?;
                conflicted(refusal, text)
            }
            Err(refusal) => refused(refusal),
        }
    }

    /// The change with what others wrote since its base, and whether there was any.
    fn plan_update<'a>(
        &self,
        caller: &Caller,
        path: &'a str,
        old: Option<Arc<Entry>>,
        planned: Option<Vec<u8>>,
        draft: &NewText,
    ) -> Result<(Change<'a>, bool)> {
        let mut content = draft.content.clone();
        let mut parsed = Parsed::of(path, &content, self.layout);
        self.guard(caller, path, old.as_deref(), &parsed, None)?;
        self.guard_kind(caller, old.as_deref(), &parsed)?;
        let base = draft.base_version;
        let mut merged = false;
        match (&old, base) {
            (Some(entry), Some(base)) if base != entry.version => {
                let head = planned.as_deref().unwrap_or_default();
                content = self.caught_up(entry, base, &content, head)?.into();
                parsed = Parsed::of(path, &content, self.layout);
                self.guard(caller, path, Some(entry), &parsed, None)?;
                merged = true;
            }
            (None, Some(base)) => {
                let why = format!("{path} does not exist, so it has no v{base}.");
                return Err(Refusal::new(Code::Conflict, why).at("base_version"));
            }
            _ => {}
        }
        Ok((
            Change {
                path,
                old,
                planned,
                parsed,
                content,
                authors: draft.authors.clone(),
            },
            merged,
        ))
    }

    /// `content`, made from version `base`, with what the head has changed since.
    fn caught_up(&self, entry: &Entry, base: u64, content: &[u8], head: &[u8]) -> Result<Vec<u8>> {
        let conflict = |why: String| Refusal::new(Code::Conflict, why).at("base_version");
        let then = self.version_text(entry.uid, base)?.ok_or_else(|| {
            conflict(format!(
                "{} is at v{} and has no v{base}.",
                entry.path, entry.version
            ))
        })?;
        merge_pages(&entry.path, self.layout, &then, content, head).ok_or_else(|| {
            conflict(format!(
                "{} is at v{}, and its changes since v{base} cannot be joined with yours.",
                entry.path, entry.version
            ))
        })
    }

    /// The text of an earlier version.
    pub(crate) fn version_text(&self, uid: Uid, version: u64) -> Result<Option<Vec<u8>>> {
        let view = self.view.load();
        if let Some(entry) = view.dir.by_uid(uid).filter(|e| e.version == version) {
            return self.head_text(entry).map(Some);
        }
        match self.sql.at(view.seq) {
            Ok(duck) => row_of(&duck.versions(uid)?, version)
                .map(|row| self.row_text(row))
                .transpose(),
            Err(_) => self.recorded_text(uid, version),
        }
    }

    /// The same from the journal alone, which takes as long as the journal is.
    fn recorded_text(&self, uid: Uid, version: u64) -> Result<Option<Vec<u8>>> {
        for record in self.store.records(0) {
            let record = record?;
            let wanted = record.uid == Some(uid) && record.version == Some(version);
            if let Some(content) = record.content.filter(|_| wanted) {
                return Ok(Some(self.store.object(&content.object)?));
            }
        }
        Ok(None)
    }

    /// Pages of packs and of other systems are not written through pages.
    pub(crate) fn guard_kind(
        &self,
        caller: &Caller,
        old: Option<&Entry>,
        new: &Parsed,
    ) -> Result<()> {
        let stored = old.and_then(|entry| entry.facts.layer.as_deref());
        let layers = [stored, new.page.layer.as_deref()];
        if let Some(layer) = layers
            .into_iter()
            .flatten()
            .find(|layer| layer.starts_with(BASE))
        {
            let why = format!("The layer {layer} comes from a pack and is not written here.");
            return Err(Refusal::new(Code::LayerReadOnly, why).at("frontmatter.layer"));
        }
        let reading = self.reading(caller, new.page.scenario.as_deref());
        let schema = reading.scoped(|scope| reading.view.dir.schema(&new.page.skill, scope));
        match schema {
            Some(schema)
                if schema.backend.kind != BackendKind::Markdown && new.page.schema.is_none() =>
            {
                let why = format!(
                    "What pages of `{}` say comes from another system.",
                    new.page.skill
                );
                Err(Refusal::new(Code::BackendReadOnly, why).at("frontmatter.skill"))
            }
            _ => Ok(()),
        }
    }

    /// Findings of the new text; in `Err` there is one that keeps it from being written. What was
    /// wrong before is no reason to refuse a change elsewhere.
    fn findings(
        &self,
        caller: &Caller,
        path: &str,
        new: &Parsed,
        before: Option<&[u8]>,
    ) -> Result<Vec<Issue>, Vec<Issue>> {
        let reading = self.reading(caller, new.page.scenario.as_deref());
        let mut issues = self.draft_issues(&reading, &new.page);
        let lasting =
            |issue: &&Issue| matches!(issue.code, "wikilink_malformed" | "anchor_missing");
        let doubtful = issues.iter().any(|issue| lasting(&issue));
        let known: HashSet<(&str, String)> = before
            .filter(|_| doubtful)
            .map(|bytes| self.draft_issues(&reading, &Parsed::of(path, bytes, self.layout).page))
            .iter()
            .flatten()
            .filter(lasting)
            .map(|issue| (issue.code, issue.message.clone()))
            .collect();
        let mut ok = true;
        for issue in &mut issues {
            let skill = issue.code == "unknown_skill" && issue.location == "frontmatter.skill";
            let refused = (skill || REFUSED.contains(&issue.code))
                && !known.contains(&(issue.code, issue.message.clone()))
                || issue.code == AUTONOMY && self.refuses_autonomy(caller, path);
            issue.severity = if refused {
                Severity::Error
            } else {
                Severity::Warning
            };
            ok &= !refused;
        }
        if ok { Ok(issues) } else { Err(issues) }
    }

    fn refuses_autonomy(&self, caller: &Caller, path: &str) -> bool {
        if self.autonomy_lint == AutonomyLint::Log {
            tracing::warn!(page = path, caller = %caller.subject, "a skill page is written whose `autonomy` is unknown");
        }
        self.autonomy_lint == AutonomyLint::Enforce
    }

    /// Where a page is or, if there is none of this name, where it goes; and its text, which says which scenario it
    /// belongs to.
    fn place(&self, caller: &Caller, request: &UpdateRequest) -> Result<(String, Vec<u8>)> {
        let (id, content) = (&request.page_id, request.content.as_bytes());
        let is_link = id.trim_start().starts_with("[[");
        let said = escurel_md::parse("page.md", content, self.layout).scenario;
        let content = match (&request.scenario, &said) {
            (Some(wanted), None) => set_key(content, "scenario", Some(&wanted.as_str().into()))?,
            (Some(wanted), Some(said)) if wanted != said => {
                let why = format!(
                    "The text says that it belongs to the scenario `{said}`, not `{wanted}`."
                );
                return Err(Refusal::new(Code::InvalidArgument, why).at("scenario"));
            }
            _ => content.to_vec(),
        };
        let name = PageName {
            id: id.clone(),
            scenario: request.scenario.clone().or(said.filter(|_| is_link)),
        };
        let scenario = self.scenario_of(&name);
        let reading = self.reading(caller, scenario.as_deref());
        let path = match reading.find(id)? {
            Some(entry) if entry.facts.scenario.as_deref() == scenario.as_deref() => {
                entry.path.to_string()
            }
            // The scenario has only the base's page.
            Some(entry) if is_link || *entry.path == **id => {
                let home = home(
                    self.layout,
                    scenario.as_deref(),
                    &entry.facts.skill,
                    &entry.facts.id,
                );
                checked_path(&home)?
            }
            _ if id.parse::<Uid>().is_ok() => return Err(not_found(id).at("page_id")),
            _ if is_link => self.place_of_link(&reading, id)?,
            _ => checked_path(id)?,
        };
        Ok((path, content))
    }

    fn place_of_link(&self, reading: &Reading<'_>, link: &str) -> Result<String> {
        let parsed = Wikilink::parse(link.trim()).ok();
        let parts = parsed.and_then(|link| Some((link.skill?, link.id?)));
        let Some((skill, id)) = parts else {
            let why = format!("`{link}` does not say where a new page goes.");
            return Err(Refusal::new(Code::PageIdInvalid, why).at("page_id"));
        };
        let path = home(self.layout, reading.scenario, &skill, &id);
        if reading.view.dir.by_path(&path).is_some() {
            let why = format!("{path}, where {link} would go, is another page.");
            return Err(Refusal::new(Code::PageIdInvalid, why).at("page_id"));
        }
        checked_path(&path)
    }
}

/// Where a page of this name goes if nobody says another place.
pub(super) fn home(layout: Layout, scenario: Option<&str>, skill: &str, id: &str) -> String {
    let root = match layout {
        Layout::Tenant => "markdown/",
        Layout::Vault => "",
    };
    match (scenario, layout) {
        (Some(name), _) => format!("{root}scenarios/{name}/{skill}/{id}.md"),
        (None, Layout::Tenant) => format!("{root}instances/{skill}/{id}.md"),
        (None, Layout::Vault) => format!("{skill}/{id}.md"),
    }
}

/// What is to be written and on what it was made.
pub(crate) struct NewText {
    pub content: Arc<[u8]>,
    pub base_version: Option<u64>,
    pub dry_run: bool,
    /// Who wrote it, where that is not the caller alone.
    pub authors: Vec<String>,
}

/// What a caller can mend is an answer; the rest is a refusal.
pub(super) fn refused(refusal: Refusal) -> Result<UpdateAnswer> {
    match refusal.code {
        Code::PageIdInvalid
        | Code::Forbidden
        | Code::NotUtf8
        | Code::DuplicateId
        | Code::IdentityChanged
        | Code::Conflict
        | Code::LayerReadOnly
        | Code::BackendReadOnly => Ok(UpdateAnswer {
            issues: vec![finding(&refusal)],
            ..UpdateAnswer::default()
        }),
        _ => Err(refusal),
    }
}

fn conflicted(refusal: Refusal, head: Option<Vec<u8>>) -> Result<UpdateAnswer> {
    let head_content = head.and_then(|bytes| String::from_utf8(bytes).ok());
    Ok(UpdateAnswer {
        head_content,
        ..refused(refusal)?
    })
}

fn finding(refusal: &Refusal) -> Issue {
    let location = refusal
        .location
        .clone()
        .unwrap_or_else(|| "page_id".to_owned());
    let issue = Issue {
        severity: Severity::Error,
        code: refusal.code.name(),
        location,
        message: refusal.message.clone(),
        suggestion: None,
    };
    issue.suggest(refusal.next_step())
}

/// What changes, as a unified diff; empty when nothing does.
pub(crate) fn unified(path: &str, before: &[u8], after: &[u8]) -> String {
    if before == after {
        return String::new();
    }
    let [before, after] = [before, after].map(String::from_utf8_lossy);
    let mut options = diffy::DiffOptions::new();
    options
        .set_original_filename(path.to_owned())
        .set_modified_filename(path.to_owned());
    options.create_patch(&before, &after).to_string()
}
