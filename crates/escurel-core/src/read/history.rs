//! Which versions a page has had.

use escurel_access::Caller;
use escurel_md::When;

use crate::Result;
use crate::kb::Core;

impl Core {
    /// RFC 3339 times at which the page's versions began to hold, oldest first;
    /// empty for an unknown or hidden page.
    ///
    /// # Errors
    /// `page_id_invalid`, `ambiguous`, `index_behind`.
    pub fn list_snapshots(&self, caller: &Caller, page_id: &str) -> Result<Vec<String>> {
        let reading = self.reading(caller, None);
        let Some(entry) = reading.find(page_id)? else {
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
}
