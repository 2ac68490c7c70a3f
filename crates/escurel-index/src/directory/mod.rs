//! The page directory: every live page, its names, links and values.
//!
//! A clone is an immutable state that shares all that later writes leave
//! alone; readers hold clones and never wait. Refuses nothing: duplicate
//! names, dangling links and odd paths are states like any other.
//!
//! Invariant: the state depends only on which entries are live and on their
//! numbers, not on the order in which they came.

mod bulk;
mod cell;
mod column;
mod cow;
mod filter;
mod graph;
mod lists;
mod names;
mod persist;
mod resolve;
mod sharded;
mod sorted;
#[cfg(test)]
pub(crate) mod tests;
mod types;
mod walk;

use std::sync::{Arc, OnceLock};

use escurel_store::{Stat, Uid};

pub use filter::{Filter, FilterError};
pub use names::{folder, join, stem, strip_md};
pub(crate) use resolve::{Name, Place};
#[cfg(test)]
pub(crate) use tests::history;
pub use types::{Cursor, Edge, LinkCounts, Order, Resolution, Scope, Upserted};

use crate::{Bitmap, Entry, EntryDraft, PageNo};
use cell::Cell;
use column::Column;
use cow::CowVec;
use lists::SkillList;
use names::{Keys, mention_keys, page_keys};
use sharded::{ByName, Posting, Sharded};
use sorted::Sorted;

#[derive(Clone, Default)]
pub struct Directory {
    entries: CowVec<Option<Arc<Entry>>>,
    /// Who got which number, deleted pages included.
    numbered: CowVec<u128>,
    live: Arc<Vec<u64>>,
    len: usize,
    paths: Sharded<Posting>,
    uids: Sharded<Posting>,
    names: Sharded<Posting>,
    /// From a name to the pages with a link that mentions it.
    mentions: Sharded<Posting>,
    lists: ByName<Arc<SkillList>>,
    skill_list: Arc<Sorted>,
    /// Built when first needed; a clone made before that shares the result.
    columns: Arc<OnceLock<Columns>>,
    revision: u64,
}

type Columns = ByName<Arc<Column>>;

fn uid_hash(uid: Uid) -> u64 {
    rapidhash::v3::rapidhash_v3(&uid.0.to_le_bytes())
}

impl Directory {
    pub fn new() -> Directory {
        Directory::default()
    }

    pub fn len(&self) -> usize {
        self.len
    }

    /// Moves with every change since the directory was made or loaded.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Live pages by number.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Entry>> {
        self.entries.iter().filter_map(Option::as_ref)
    }

    /// One past the highest number ever given.
    pub fn capacity(&self) -> u32 {
        self.numbered.len() as u32
    }

    pub fn get(&self, no: PageNo) -> Option<&Arc<Entry>> {
        self.entries.get(no.index())?.as_ref()
    }

    /// The live page at exactly this path. Should two pages claim it, which
    /// happens only between the records of a swap, the newer record has it.
    pub fn by_path(&self, path: &str) -> Option<&Arc<Entry>> {
        let pages = self.paths.pages(sharded::hash(path)).iter();
        let here = pages
            .filter_map(|no| self.get(*no))
            .filter(|e| &*e.path == path);
        here.max_by_key(|e| (e.seq, e.no))
    }

    pub fn by_uid(&self, uid: Uid) -> Option<&Arc<Entry>> {
        self.get(self.number_of(uid)?)
    }

    /// Also for pages that were deleted.
    pub fn number_of(&self, uid: Uid) -> Option<PageNo> {
        let pages = self.uids.pages(uid_hash(uid)).iter().copied();
        pages
            .into_iter()
            .find(|no| self.numbered.get(no.index()) == Some(&uid.0))
    }

    /// Whose number it is, also after deletion.
    pub fn uid_of(&self, no: PageNo) -> Option<Uid> {
        self.numbered.get(no.index()).map(|n| Uid(*n))
    }

    /// Numbers of all live pages.
    pub fn live_pages(&self) -> Bitmap {
        Bitmap::from_words(self.live.to_vec())
    }

    fn number(&mut self, uid: Uid) -> PageNo {
        self.number_of(uid).unwrap_or_else(|| {
            let no = PageNo(self.capacity());
            *self.numbered.slot(no.index()) = uid.0;
            self.uids.add(uid_hash(uid), no);
            no
        })
    }

    fn set_live(&mut self, no: PageNo, is_live: bool) {
        let words = Arc::make_mut(&mut self.live);
        let word = no.index() / 64;
        if word >= words.len() {
            words.resize(word + 1, 0);
        }
        let bit = 1 << (no.0 % 64);
        let was_live = words[word] & bit != 0;
        words[word] = if is_live {
            words[word] | bit
        } else {
            words[word] & !bit
        };
        self.len = self.len + usize::from(is_live) - usize::from(was_live);
    }

    pub fn upsert(&mut self, draft: EntryDraft) -> Upserted {
        let no = self.number(draft.uid);
        let entry = Arc::new(draft.numbered(no));
        let before = self.get(no).cloned();
        self.replace(before.as_deref(), Some(&entry), no);
        let relink = before
            .as_deref()
            .is_none_or(|old| is_called_otherwise(old, &entry));
        Upserted { no, relink, before }
    }

    /// Takes a page out; its number stays its own.
    pub fn remove(&mut self, uid: Uid) -> Option<Arc<Entry>> {
        let before = self.by_uid(uid).cloned()?;
        self.replace(Some(&before), None, before.no);
        Some(before)
    }

    pub fn set_stat(&mut self, uid: Uid, stat: Stat) {
        self.amend(uid, |e| e.stat = Some(stat));
    }

    pub fn set_missing(&mut self, uid: Uid, missing: bool) {
        self.amend(uid, |e| e.missing = missing);
    }

    /// For fields that no index is built on.
    fn amend(&mut self, uid: Uid, change: impl FnOnce(&mut Entry)) {
        let Some(no) = self.number_of(uid) else {
            return;
        };
        if let Some(Some(entry)) = self
            .get(no)
            .is_some()
            .then(|| self.entries.slot(no.index()))
        {
            change(Arc::make_mut(entry));
            self.revision += 1;
        }
    }

    /// Builds what a loaded directory leaves to its first filter.
    pub fn warm(&self) {
        self.columns();
    }

    fn columns(&self) -> &Columns {
        self.columns.get_or_init(|| bulk::columns_of(&self.entries))
    }

    fn replace(&mut self, old: Option<&Entry>, new: Option<&Arc<Entry>>, no: PageNo) {
        self.revision += 1;
        // Of the pages as they are before the change, if they must be built.
        self.columns();
        let keep_place = matches!((old, new), (Some(a), Some(b)) if lists::same_place(a, b));
        if let (false, Some(old)) = (keep_place, old) {
            self.unlist(old);
        }
        *self.entries.slot(no.index()) = new.cloned();
        self.set_live(no, new.is_some());
        if let (false, Some(new)) = (keep_place, new) {
            self.list(new);
        }
        let path = |e: &Entry| Keys::from_slice(&[sharded::hash(&e.path)]);
        exchange(&mut self.paths, no, old.map(path), new.map(|e| path(e)));
        let names = |e: &Entry| page_keys(&e.facts, &e.path);
        exchange(&mut self.names, no, old.map(names), new.map(|e| names(e)));
        let mentions = |e: &Entry| mention_keys(&e.facts);
        exchange(
            &mut self.mentions,
            no,
            old.map(mentions),
            new.map(|e| mentions(e)),
        );
        self.set_cells(old, new.map(|e| &**e), no);
    }

    fn set_cells(&mut self, old: Option<&Entry>, new: Option<&Entry>, no: PageNo) {
        let fields = |e: &Entry| {
            (
                e.facts.frontmatter.clone(),
                e.facts.skill.clone(),
                e.facts.tags.clone(),
                e.facts.page_type,
            )
        };
        if old.map(fields) == new.map(fields) {
            return;
        }
        let Some(columns) = Arc::make_mut(&mut self.columns).get_mut() else {
            return;
        };
        let cells = |e: Option<&Entry>| e.map_or(Vec::new(), |e| cell::cells_of(&e.facts));
        let (before, after): (Vec<(String, Cell)>, Vec<_>) = (cells(old), cells(new));
        for (key, _) in before
            .iter()
            .filter(|(key, _)| !after.iter().any(|(k, _)| k == key))
        {
            let column = Arc::make_mut(columns.slot(key));
            column.clear(no);
            if column.is_empty() {
                columns.remove(key);
            }
        }
        for (key, cell) in after {
            if !before.iter().any(|(k, c)| *k == key && *c == cell) {
                Arc::make_mut(columns.slot(&key)).set(no, cell);
            }
        }
    }
}

/// Moves a page from its old keys to its new ones; keys that stay cost nothing.
fn exchange(map: &mut Sharded<Posting>, no: PageNo, old: Option<Keys>, new: Option<Keys>) {
    let (old, new) = (old.unwrap_or_default(), new.unwrap_or_default());
    // Keys come sorted.
    old.iter()
        .filter(|k| new.binary_search(k).is_err())
        .for_each(|k| map.take(*k, no));
    new.iter()
        .filter(|k| old.binary_search(k).is_err())
        .for_each(|k| map.add(*k, no));
}

fn is_called_otherwise(a: &Entry, b: &Entry) -> bool {
    let (f, g) = (&*a.facts, &*b.facts);
    a.path != b.path
        || (f.page_type, &f.skill, &f.id, &f.title, &f.aliases)
            != (g.page_type, &g.skill, &g.id, &g.title, &g.aliases)
        || (&f.layer, &f.scenario, f.hidden) != (&g.layer, &g.scenario, g.hidden)
}
