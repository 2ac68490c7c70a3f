//! The page directory: every live page, its names and links, in memory.
mod filter;
mod types;

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use escurel_md::{LinkKind, SkillSchema, Wikilink};
use escurel_store::{Stat, Uid};
use serde_json::{Map, Value};

pub use filter::{Filter, FilterError};
pub use types::{Cursor, Edge, LinkCounts, Order, Resolution, Scope, Upserted};

use crate::{Bitmap, Entry, EntryDraft, Facts, IndexError, PageNo};

#[derive(Clone, Default)]
pub struct Directory { entries: Vec<Arc<Entry>> }

#[allow(unused_variables)]
impl Directory {
    pub fn new() -> Self { Self::default() }
    pub fn upsert(&mut self, draft: EntryDraft) -> Upserted { Upserted { no: PageNo(0), relink: true, before: None } }
    pub fn remove(&mut self, uid: Uid) -> Option<Arc<Entry>> { None }
    pub fn set_stat(&mut self, uid: Uid, stat: Stat) {}
    pub fn set_missing(&mut self, uid: Uid, missing: bool) {}
    pub fn len(&self) -> usize { 0 }
    pub fn is_empty(&self) -> bool { true }
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Entry>> { self.entries.iter() }
    pub fn capacity(&self) -> u32 { 0 }
    pub fn get(&self, no: PageNo) -> Option<&Arc<Entry>> { None }
    pub fn by_path(&self, path: &str) -> Option<&Arc<Entry>> { None }
    pub fn by_uid(&self, uid: Uid) -> Option<&Arc<Entry>> { None }
    pub fn number_of(&self, uid: Uid) -> Option<PageNo> { None }
    pub fn resolve(&self, link: &Wikilink, kind: LinkKind, from: Option<&Entry>, scope: &Scope<'_>) -> Resolution { Resolution::Missing }
    pub fn find(&self, page_id: &str, scope: &Scope<'_>) -> Resolution { Resolution::Missing }
    /// Whether a read in `scope` sees this page under its (skill, id).
    pub fn effective(&self, e: &Entry, scope: &Scope<'_>) -> bool { true }
    pub fn outgoing<'a>(&'a self, e: &'a Entry, scope: &Scope<'_>) -> Vec<Edge<'a>> { Vec::new() }
    pub fn incoming(&self, e: &Entry, scope: &Scope<'_>) -> Vec<Edge<'_>> { Vec::new() }
    pub fn referrers(&self, names_of: &Facts, path: &str) -> Vec<PageNo> { Vec::new() }
    pub fn link_counts(&self) -> LinkCounts { LinkCounts::default() }
    pub fn skills(&self) -> Vec<&Arc<Entry>> { Vec::new() }
    pub fn schema(&self, skill: &str, scope: &Scope<'_>) -> Option<Arc<SkillSchema>> { None }
    pub fn instances(&self, skill: &str, order: Order, after: Option<&Cursor>, take: &mut dyn FnMut(&Arc<Entry>) -> ControlFlow<()>) {}
    pub fn count(&self, skill: &str) -> usize { 0 }
    pub fn compile_filter(&self, filter: &Map<String, Value>) -> Result<Filter, FilterError> { Ok(Filter::default()) }
    /// As `compile_filter`; keys and types that only pages outside `visible` have are unknown.
    pub fn compile_filter_for(&self, filter: &Map<String, Value>, visible: &dyn Fn(&Entry) -> bool) -> Result<Filter, FilterError> { Ok(Filter::default()) }
    pub fn filter_pages(&self, f: &Filter) -> Bitmap { Bitmap::new() }
    pub fn save(&self, path: &Path, seq: u64, generation: u128) -> Result<(), IndexError> { Ok(()) }
    pub fn load(path: &Path) -> Result<Option<(Directory, u64, u128)>, IndexError> { Ok(None) }
}
