//! Pages as a plain list of texts, for MCP resources.

use escurel_access::Caller;
use escurel_index::{Entry, PageNo};

use super::page_ref;
use crate::Result;
use crate::api::PageRef;
use crate::kb::Core;

impl Core {
    /// Pages by path; `after` is the path of the last page seen. Touches memory only.
    pub fn list_pages(
        &self,
        caller: &Caller,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<PageRef>> {
        self.readable()?;
        let reading = self.reading(caller, None);
        let dir = &reading.view.dir;
        let order = reading.view.by_path();
        let path = |no: &PageNo| dir.get(*no).map(|e| &*e.path);
        let start = after.map_or(0, |after| {
            order.partition_point(|no| path(no).is_some_and(|p| p <= after))
        });
        let pages = order[start..].iter().filter_map(|no| dir.get(*no));
        let pages = reading.scoped(|scope| {
            let found =
                |e: &Entry| reading.view.live.is_live(e.no.0, e.seq) && dir.effective(e, scope);
            let seen = pages.filter(|e| reading.sight.sees(e) && found(e));
            seen.take(limit).map(|e| page_ref(e)).collect()
        });
        Ok(pages)
    }

    /// The whole text of a page's file, frontmatter included; what is not UTF-8 shows as replacement marks.
    pub fn page_text(&self, caller: &Caller, page_id: &str) -> Result<Option<(PageRef, String)>> {
        self.readable()?;
        let reading = self.reading(caller, None);
        let Some(entry) = reading.find(page_id)? else {
            return Ok(None);
        };
        let bytes = self.head_text(&entry)?;
        Ok(Some((
            page_ref(&entry),
            escurel_md::parse(&entry.path, &bytes, self.layout).text,
        )))
    }
}
