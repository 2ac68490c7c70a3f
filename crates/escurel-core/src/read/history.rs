//! Which versions a page has had, what changed between them and who wrote what.

use std::sync::Arc;

use escurel_access::{Caller, Verb};
use escurel_index::{Duck, Entry, VersionRow};
use escurel_md::When;
use escurel_store::Uid;

use super::{Reading, not_found};
use crate::api::{BlamedLine, PageHistory, PageName, VersionInfo};
use crate::facts::Parsed;
use crate::kb::Core;
use crate::sight::may;
use crate::write::unified;
use crate::{Code, Refusal, Result};

impl Core {
    /// RFC 3339 times at which the page's versions began to hold, oldest first;
    /// empty for an unknown or hidden page.
    ///
    /// # Errors
    /// `page_id_invalid`, `ambiguous`, `index_behind`.
    pub fn list_snapshots(
        &self,
        caller: &Caller,
        page_id: impl Into<PageName>,
    ) -> Result<Vec<String>> {
        let name = page_id.into();
        let scenario = self.scenario_of(&name);
        let reading = self.reading(caller, scenario.as_deref());
        let Some(entry) = reading.find(&name.id)? else {
            return Ok(Vec::new());
        };
        let mut versions = self.sql.at(reading.view.seq)?.versions(entry.uid)?;
        // A rename is a row of its own with the version that it found.
        versions.retain(|row| !row.deleted);
        versions.dedup_by_key(|row| row.version);
        Ok(versions
            .into_iter()
            .map(|row| When::to_rfc3339(row.from))
            .collect())
    }

    /// What happened to a page, newest first; of a deleted one, too.
    ///
    /// # Errors
    /// `page_not_found`, `page_id_invalid`, `ambiguous`, `index_behind`.
    pub fn page_history(
        &self,
        caller: &Caller,
        page_id: impl Into<PageName>,
        limit: usize,
    ) -> Result<PageHistory> {
        let past = self.past(caller, &page_id.into())?;
        let rows = &past.rows;
        let first = rows.len().saturating_sub(limit);
        let mut before = match first {
            0 => Some(Vec::new()),
            _ => self.text_of(&rows[first - 1]),
        };
        let mut versions = Vec::with_capacity(rows.len() - first);
        for row in &rows[first..] {
            let text = self.text_of(row);
            let (lines_added, lines_removed) = changed_lines(before.as_deref(), text.as_deref());
            versions.push(VersionInfo {
                version: row.version,
                at: When::to_rfc3339(row.at),
                by: row.actor.clone(),
                origin: row.origin.clone(),
                path: row.path.clone(),
                deleted: row.deleted,
                lines_added,
                lines_removed,
                erased: text.is_none(),
            });
            before = text;
        }
        versions.reverse();
        Ok(PageHistory {
            uid: past.uid.to_string(),
            page_id: rows.last().map(|row| row.path.clone()).unwrap_or_default(),
            versions,
            more: first > 0,
        })
    }

    /// A unified diff from one version to another; `to` absent: to the newest.
    ///
    /// # Errors
    /// `page_not_found`, `invalid_argument` for a version that there is not, `content_erased`,
    /// `page_id_invalid`, `ambiguous`, `index_behind`.
    pub fn diff_pages(
        &self,
        caller: &Caller,
        page_id: impl Into<PageName>,
        from: u64,
        to: Option<u64>,
    ) -> Result<(u64, u64, String)> {
        let name = page_id.into();
        let past = self.past(caller, &name)?;
        let to = to.unwrap_or_else(|| {
            past.rows
                .iter()
                .map(|row| row.version)
                .max()
                .unwrap_or(from)
        });
        let text = |version: u64, argument: &str| {
            let row = row_of(&past.rows, version).ok_or_else(|| {
                Refusal::new(
                    Code::InvalidArgument,
                    format!("{} has no v{version}.", name.id),
                )
                .at(argument)
            })?;
            Ok::<_, Refusal>((row.path.clone(), self.row_text(row)?))
        };
        let (_, before) = text(from, "from")?;
        let (path, after) = text(to, "to")?;
        Ok((from, to, unified(&path, &before, &after)))
    }

    /// Where each line of the page's text comes from.
    ///
    /// # Errors
    /// `page_not_found`, `page_id_invalid`, `ambiguous`, `index_behind`.
    pub fn blame_page(
        &self,
        caller: &Caller,
        page_id: impl Into<PageName>,
    ) -> Result<Vec<BlamedLine>> {
        let past = self.past(caller, &page_id.into())?;
        let mut lines: Vec<(Arc<str>, usize)> = Vec::new();
        let texts = past.rows.iter().enumerate().filter(|(_, row)| !row.deleted);
        for (number, row) in texts {
            // What was erased hands its lines on to the next version.
            if let Some(text) = self.text_of(row) {
                lines = handed_on(&lines, &String::from_utf8_lossy(&text), number);
            }
        }
        let blamed = lines.into_iter().map(|(text, number)| {
            let row = &past.rows[number];
            BlamedLine {
                version: row.version,
                at: When::to_rfc3339(row.at),
                by: row.actor.clone(),
                text: text.to_string(),
            }
        });
        Ok(blamed.collect())
    }

    /// The rows of a page that the caller may see: as it stands or, of a deleted one, as it stood.
    fn past(&self, caller: &Caller, name: &PageName) -> Result<Past> {
        let (scenario, page_id) = (self.scenario_of(name), name.id.as_str());
        let reading = self.reading(caller, scenario.as_deref());
        let duck = self.sql.at(reading.view.seq)?;
        let live = reading
            .find(page_id)
            .map_err(|refusal| refusal.at("page_id"))?;
        let missing = || not_found(page_id).at("page_id");
        let uid = uid_of(live.as_deref(), page_id, &duck)?.ok_or_else(missing)?;
        let rows = duck.versions(uid)?;
        let shown = live.is_some() || self.stood_for(caller, &reading, uid, &rows);
        if rows.is_empty() || !shown {
            return Err(missing());
        }
        Ok(Past { uid, rows })
    }

    /// Where a page that is gone was last, if the caller may see that.
    pub(crate) fn last_path(
        &self,
        caller: &Caller,
        reading: &Reading<'_>,
        uid: Uid,
    ) -> Result<Option<String>> {
        let rows = self.sql.at(reading.view.seq)?.versions(uid)?;
        let shown = self.stood_for(caller, reading, uid, &rows);
        let last = rows.into_iter().rfind(|row| !row.deleted);
        Ok(last.filter(|_| shown).map(|row| row.path))
    }

    /// May the caller see a page that is gone? Not one that is only hidden from him.
    fn stood_for(
        &self,
        caller: &Caller,
        reading: &Reading<'_>,
        uid: Uid,
        rows: &[VersionRow],
    ) -> bool {
        let hidden: Option<&Arc<Entry>> = reading.view.dir.by_uid(uid);
        let last = rows.iter().rfind(|row| !row.deleted);
        hidden.is_none()
            && last.is_some_and(|row| {
                let text = self.text_of(row).unwrap_or_default();
                let parsed = Parsed::of(&row.path, &text, self.layout);
                may(&*self.policy, caller, Verb::Read, &row.path, &parsed.facts)
            })
    }

    /// Nothing for a deletion. Absent: erased.
    fn text_of(&self, row: &VersionRow) -> Option<Vec<u8>> {
        match row.deleted {
            true => Some(Vec::new()),
            false => self.row_text(row).ok(),
        }
    }

    /// The text of a version.
    pub(crate) fn row_text(&self, row: &VersionRow) -> Result<Vec<u8>> {
        Ok(self.store.object(&row.object.parse()?)?)
    }
}

/// The text that a version has: a rename is a row of its own with the version that it found.
pub(crate) fn row_of(rows: &[VersionRow], version: u64) -> Option<&VersionRow> {
    rows.iter()
        .rfind(|row| row.version == version && !row.deleted)
}

/// The page that is live under a name or, if there is none, that had this uid or path.
pub(crate) fn uid_of(live: Option<&Entry>, page_id: &str, duck: &Duck) -> Result<Option<Uid>> {
    match (live, page_id.parse::<Uid>()) {
        (Some(entry), _) => Ok(Some(entry.uid)),
        (None, Ok(uid)) => Ok(Some(uid)),
        (None, Err(_)) => Ok(duck.uid_at_path(page_id)?),
    }
}

struct Past {
    uid: Uid,
    /// Oldest first; renames and deletions are rows, too.
    rows: Vec<VersionRow>,
}

/// Lines that are new and lines that are gone; none where a text was erased.
fn changed_lines(before: Option<&[u8]>, after: Option<&[u8]>) -> (usize, usize) {
    let (Some(before), Some(after)) = (before, after) else {
        return (0, 0);
    };
    let patch = unified("", before, after);
    // Two lines of file names come first.
    patch
        .lines()
        .skip(2)
        .fold((0, 0), |(added, removed), line| {
            match line.as_bytes().first() {
                Some(b'+') => (added + 1, removed),
                Some(b'-') => (added, removed + 1),
                _ => (added, removed),
            }
        })
}

/// The lines of `text`, each with the number of the version that brought it.
fn handed_on(before: &[(Arc<str>, usize)], text: &str, number: usize) -> Vec<(Arc<str>, usize)> {
    let old: Vec<&str> = before.iter().map(|(line, _)| &**line).collect();
    let new: Vec<&str> = text.lines().collect();
    let mut lines = Vec::with_capacity(new.len());
    for op in similar::capture_diff_slices(similar::Algorithm::Myers, &old, &new) {
        let (tag, old, new_range) = op.as_tag_tuple();
        match tag {
            similar::DiffTag::Equal => lines.extend(before[old].iter().cloned()),
            similar::DiffTag::Delete => {}
            similar::DiffTag::Insert | similar::DiffTag::Replace => {
                lines.extend(new[new_range].iter().map(|line| (Arc::from(*line), number)));
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_keep_the_version_that_brought_them() {
        let first = handed_on(&[], "a\nb\nc\n", 0);
        let second = handed_on(&first, "a\nx\nc\nd\n", 1);
        let numbers: Vec<_> = second
            .iter()
            .map(|(line, number)| (&**line, *number))
            .collect();
        assert_eq!(numbers, [("a", 0), ("x", 1), ("c", 0), ("d", 1)]);
    }

    #[test]
    fn changed_lines_are_counted() {
        assert_eq!(changed_lines(Some(b"a\nb\n"), Some(b"a\nc\nd\n")), (2, 1));
        assert_eq!(changed_lines(Some(b"a\n"), None), (0, 0));
        assert_eq!(changed_lines(Some(b""), Some(b"--- x\n+++ y\n")), (2, 0));
    }
}
