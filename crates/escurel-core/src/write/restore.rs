//! An earlier text of a page made its newest, also of a page that was deleted.

use escurel_access::{Caller, Verb};
use escurel_index::VersionRow;
use escurel_store::Uid;

use super::Change;
use super::update::{NewText, refused, unified};
use crate::api::{PageName, UpdateAnswer};
use crate::facts::Parsed;
use crate::kb::Core;
use crate::read::{instant, not_found, row_of, uid_of};
use crate::sight::may;
use crate::{Code, Refusal, Result};

/// Which text is meant.
#[derive(Clone, Debug)]
pub enum Then {
    Version(u64),
    /// RFC 3339.
    Time(String),
    /// The last one: for a page that was deleted.
    Last,
}

impl Core {
    /// Brings a page back to an earlier text, as a new version.
    ///
    /// # Errors
    /// `page_not_found`, `ambiguous`, `invalid_argument` for a version or time without a text,
    /// `time_invalid`, `content_erased`, and those of [`Core::update_page`].
    pub fn restore_page(
        &self,
        caller: &Caller,
        page_id: impl Into<PageName>,
        then: &Then,
        dry_run: bool,
    ) -> Result<UpdateAnswer> {
        let name = page_id.into();
        let (scenario, page_id) = (self.scenario_of(&name), name.id.as_str());
        let reading = self.reading(caller, scenario.as_deref());
        let live = reading
            .find(page_id)
            .map_err(|refusal| refusal.at("page_id"))?;
        let duck = self.sql.at(reading.view.seq)?;
        let uid = uid_of(live.as_deref(), page_id, &duck)?;
        let uid = uid.ok_or_else(|| not_found(page_id).at("page_id"))?;
        let row = self.text_then(uid, then, page_id)?;
        let text = self.row_text(&row)?;
        let Some(entry) = live else {
            return self.revive(caller, row, &text, dry_run);
        };
        let _page = self.page_locks.lock(&entry.path);
        let draft = NewText {
            content: text.into(),
            base_version: None,
            dry_run,
            authors: Vec::new(),
        };
        self.update_locked(caller, &entry.path, draft)
    }

    fn text_then(&self, uid: Uid, then: &Then, page_id: &str) -> Result<VersionRow> {
        let duck = self.sql.at(self.view.load().seq)?;
        let rows = duck.versions(uid)?;
        if rows.is_empty() {
            return Err(not_found(page_id).at("page_id"));
        }
        let none = |argument: &str, what: String| {
            Refusal::new(
                Code::InvalidArgument,
                format!("{page_id} had no text {what}."),
            )
            .at(argument.to_owned())
        };
        match then {
            Then::Last => rows
                .into_iter()
                .rfind(|row| !row.deleted)
                .ok_or_else(|| none("page_id", "ever".into())),
            Then::Version(version) => row_of(&rows, *version)
                .cloned()
                .ok_or_else(|| none("version", format!("at v{version}"))),
            Then::Time(time) => {
                let at = instant(time)?;
                let row = duck.version_at(uid, at)?.filter(|row| !row.deleted);
                row.ok_or_else(|| none("as_of", format!("at {time}")))
            }
        }
    }

    /// A deleted page comes back under its uid, where it was.
    fn revive(
        &self,
        caller: &Caller,
        row: VersionRow,
        text: &[u8],
        dry_run: bool,
    ) -> Result<UpdateAnswer> {
        let path = row.path.as_str();
        let _page = self.page_locks.lock(path);
        let parsed = Parsed::of(path, text, self.layout);
        // Who may not have known of the page does not learn that there was one.
        if !may(&*self.policy, caller, Verb::Read, path, &parsed.facts) {
            return Err(not_found(path).at("page_id"));
        }
        if self.view.load().dir.by_path(path).is_some() {
            let why = format!("{path} is another page now.");
            return refused(Refusal::new(Code::Conflict, why).at("page_id"));
        }
        if let Err(refusal) = self.guard(caller, path, None, &parsed, None) {
            return refused(refusal);
        }
        let newest = self.sql.at(self.view.load().seq)?.versions(row.uid)?;
        let next = newest.iter().map(|row| row.version).max().unwrap_or(0) + 1;
        let mut answer = UpdateAnswer {
            ok: true,
            page_id: path.to_owned(),
            version: next,
            diff: unified(path, b"", text),
            ..UpdateAnswer::default()
        };
        if dry_run {
            return Ok(answer);
        }
        let change = Change {
            path,
            old: None,
            planned: None,
            parsed,
            content: text.into(),
            authors: Vec::new(),
        };
        match self.write_rounds(caller, row.uid, next, change) {
            Ok(written) => {
                self.deletions.reappeared(std::iter::once(row.uid));
                answer.version = written.version;
                Ok(answer)
            }
            Err(refusal) => refused(refusal),
        }
    }
}
