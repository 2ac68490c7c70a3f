//! Pages read lately, parsed: agents come back to the pages they work on.
//!
//! Invariant: a page stands under the record whose path and text it has, so
//! that nothing in here is ever out of date.

use std::sync::Arc;

use escurel_index::Entry;
use escurel_md::Page;
use escurel_store::Uid;
use quick_cache::Weighter;
use quick_cache::sync::Cache;

use crate::Result;

/// Bytes that all pages together may take, about.
const ROOM: u64 = 8 << 20;
/// What a page takes beside its text, and how its text weighs with the parts
/// that are cut from it.
const PER_PAGE: u64 = 4 << 10;
const PER_BYTE: u64 = 3;

pub(crate) struct Lately(Cache<(Uid, u64), Arc<Page>, Size>);

#[derive(Clone)]
struct Size;

impl Weighter<(Uid, u64), Arc<Page>> for Size {
    fn weight(&self, _: &(Uid, u64), page: &Arc<Page>) -> u64 {
        PER_PAGE + PER_BYTE * page.text.len() as u64
    }
}

impl Default for Lately {
    fn default() -> Lately {
        let pages = usize::try_from(ROOM / PER_PAGE).unwrap_or(1);
        Lately(Cache::with_weighter(pages, ROOM, Size))
    }
}

impl Lately {
    pub fn page(&self, entry: &Entry, read: impl FnOnce() -> Result<Page>) -> Result<Arc<Page>> {
        let key = (entry.uid, entry.seq);
        if let Some(page) = self.0.get(&key) {
            return Ok(page);
        }
        let page = Arc::new(read()?);
        self.0.insert(key, page.clone());
        Ok(page)
    }
}
