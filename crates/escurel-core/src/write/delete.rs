//! A page deleted: its file goes, its history stays.

use escurel_access::{Caller, Verb};
use escurel_store::{Kind, Removed};

use super::update::{refused, unified};
use super::{guard_present, guard_version};
use crate::api::{PageName, UpdateAnswer};
use crate::facts::Parsed;
use crate::kb::Core;
use crate::reconcile::deletions;
use crate::sight::may;
use crate::{Code, Refusal, Result};

impl Core {
    /// Deletes a page; it can be restored.
    ///
    /// # Errors
    /// `page_not_found`, `ambiguous`, `read_only`, `missing_on_disk`, `disk_full`, `journal_broken`.
    pub fn delete_page(
        &self,
        caller: &Caller,
        page_id: impl Into<PageName>,
        base_version: Option<u64>,
        dry_run: bool,
    ) -> Result<UpdateAnswer> {
        let path = self.named(caller, &page_id.into())?.path.to_string();
        let _page = self.page_locks.lock(&path);
        let entry = self.named(caller, &PageName::from(&path))?;
        if let Err(refusal) = guard_version(&entry, base_version) {
            return refused(refusal);
        }
        if !may(&*self.policy, caller, Verb::Delete, &path, &entry.facts) {
            let why = format!("{} may not delete {path}.", caller.subject);
            return refused(Refusal::new(Code::Forbidden, why).at("page_id"));
        }
        self.guard_writable(&path)?;
        guard_present(&entry)?;
        let text = self.head_text(&entry)?;
        if let Err(refusal) =
            self.guard_kind(caller, Some(&entry), &Parsed::of(&path, &text, self.layout))
        {
            return refused(refusal);
        }
        let answer = UpdateAnswer {
            ok: true,
            page_id: path.clone(),
            version: entry.version,
            diff: unified(&path, &text, b""),
            ..UpdateAnswer::default()
        };
        if dry_run {
            return Ok(answer);
        }
        self.deletions.bury(entry.clone(), self.now());
        let mut drafts = deletions::drafts(
            Kind::PageDeleted,
            std::slice::from_ref(&entry),
            &caller.subject,
        );
        // The file is still there: a restart has to know that it is ours to remove.
        for draft in &mut drafts {
            draft.note.insert("origin".to_owned(), "write".into());
        }
        let ticket = self.append(drafts)?;
        let removed = self.store.remove(&path, &text);
        self.reach("core.after_remove")?;
        self.publish_deletions(ticket, &[entry])?;
        match removed {
            Ok(Removed::Done | Removed::Absent) => Ok(answer),
            Ok(Removed::Changed { .. }) => {
                // Their save brings the page back as its next version.
                self.request_rescan();
                let why =
                    format!("{path} was saved by somebody else in this moment; their text stands.");
                refused(Refusal::new(Code::Conflict, why).at("page_id"))
            }
            Err(error) => {
                self.request_rescan();
                Err(Refusal::from(error).at("page_id"))
            }
        }
    }
}
