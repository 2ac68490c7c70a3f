//! Making a directory of many pages at once, on all cores.
//!
//! Gives the same state as one upsert after another; a property test holds
//! the two equal.

use std::sync::Arc;
use std::thread;

use escurel_md::PageType;
use hashbrown::HashMap;

use super::cell::{self, Cell};
use super::column::Column;
use super::lists::SkillList;
use super::names::{Keys, mention_keys, page_keys};
use super::sharded::{ByName, Sharded, hash};
use super::sorted::Sorted;
use super::{Columns, CowVec, Directory, uid_hash};
use crate::{Entry, PageNo};

/// An entry with the keys of its names and links.
pub(super) struct Prepared {
    entry: Arc<Entry>,
    names: Keys,
    mentions: Keys,
}

impl Prepared {
    pub fn of(entry: Entry) -> Prepared {
        Prepared {
            names: page_keys(&entry.facts, &entry.path),
            mentions: mention_keys(&entry.facts),
            entry: Arc::new(entry),
        }
    }
}

impl Directory {
    /// From whose number is which and the live pages, which may stand in any
    /// order. Columns are left to [`Directory::warm`] or the first who filters.
    pub(super) fn filled(numbered: &[u128], mut prepared: Vec<Prepared>) -> Directory {
        prepared.sort_by_key(|p| p.entry.no);
        let mut directory = Directory::default();
        for (i, uid) in numbered.iter().enumerate() {
            *directory.numbered.slot(i) = *uid;
        }
        for p in &prepared {
            let no = p.entry.no;
            *directory.entries.slot(no.index()) = Some(Arc::clone(&p.entry));
            directory.set_live(no, true);
        }
        let Directory {
            entries,
            paths,
            uids,
            names,
            mentions,
            lists,
            skill_list,
            ..
        } = &mut directory;
        let page = |i: usize| PageNo(i as u32);
        let own = numbered
            .iter()
            .enumerate()
            .map(|(i, uid)| (uid_hash(escurel_store::Uid(*uid)), page(i)));
        *uids = Sharded::of(own);
        *paths = Sharded::of(prepared.iter().map(|p| (hash(&p.entry.path), p.entry.no)));
        *names = Sharded::of(pairs(&prepared, |p| &p.names));
        *mentions = Sharded::of(pairs(&prepared, |p| &p.mentions));
        for ((page_type, skill), pages) in by_skill(&prepared) {
            match page_type {
                PageType::Skill => *skill_list = Arc::new(skills_by_id(entries, pages)),
                PageType::Instance => *lists.slot(&skill) = Arc::new(SkillList::of(entries, pages)),
            }
        }
        directory
    }
}

fn pairs(
    prepared: &[Prepared],
    keys: impl Fn(&Prepared) -> &Keys,
) -> impl Iterator<Item = (u64, PageNo)> {
    prepared
        .iter()
        .flat_map(move |p| keys(p).iter().map(|key| (*key, p.entry.no)))
}

fn by_skill(prepared: &[Prepared]) -> HashMap<(PageType, Arc<str>), Vec<PageNo>> {
    let none: Arc<str> = "".into();
    let mut by_skill: HashMap<(PageType, Arc<str>), Vec<PageNo>> = HashMap::new();
    for e in prepared.iter().map(|p| &p.entry) {
        let skill = match e.facts.page_type {
            PageType::Skill => &none,
            PageType::Instance => &e.facts.skill,
        };
        by_skill
            .entry((e.facts.page_type, Arc::clone(skill)))
            .or_default()
            .push(e.no);
    }
    by_skill
}

type Cells = HashMap<String, Vec<(PageNo, Cell)>>;
/// A key with what several threads found under it.
type Gathered = (String, Vec<Vec<(PageNo, Cell)>>);

/// All columns of the live pages. Plain threads: a pool's worker that waits
/// here could pick up a job that waits for these very columns.
pub(super) fn columns_of(entries: &CowVec<Option<Arc<Entry>>>) -> Columns {
    let pages: Vec<&Arc<Entry>> = entries.iter().filter_map(Option::as_ref).collect();
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let part = pages.len().div_ceil(cores).max(2048);
    let parts: Vec<Cells> = in_threads(pages.chunks(part), cells_by_key);
    let mut keys: HashMap<String, Vec<Vec<(PageNo, Cell)>>> = HashMap::new();
    for (key, cells) in parts.into_iter().flatten() {
        keys.entry(key).or_default().push(cells);
    }
    let mut shares: Vec<Vec<Gathered>> = Vec::new();
    shares.resize_with(cores, Vec::new);
    for (i, key) in keys.into_iter().enumerate() {
        shares[i % cores].push(key);
    }
    let mut columns = ByName::default();
    let fill = |share: Vec<Gathered>| share.into_iter().map(column_of).collect::<Vec<_>>();
    for (key, column) in in_threads(shares.into_iter(), fill).into_iter().flatten() {
        *columns.slot(&key) = Arc::new(column);
    }
    columns
}

/// One thread per item; a single item is worked on here.
fn in_threads<T: Send, R: Send>(
    items: impl ExactSizeIterator<Item = T>,
    work: impl Fn(T) -> R + Sync,
) -> Vec<R> {
    if items.len() < 2 {
        return items.map(work).collect();
    }
    let work = &work;
    thread::scope(|scope| {
        let running: Vec<_> = items.map(|item| scope.spawn(move || work(item))).collect();
        let join = |t: thread::ScopedJoinHandle<'_, R>| match t.join() {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        running.into_iter().map(join).collect()
    })
}

fn cells_by_key(pages: &[&Arc<Entry>]) -> Cells {
    let mut cells = Cells::new();
    for e in pages {
        for (key, cell) in cell::cells_of(&e.facts) {
            match cells.get_mut(&key) {
                Some(list) => list.push((e.no, cell)),
                None => {
                    cells.insert(key, vec![(e.no, cell)]);
                }
            }
        }
    }
    cells
}

fn column_of((key, parts): Gathered) -> (String, Column) {
    let mut column = Column::default();
    for (no, cell) in parts.into_iter().flatten() {
        column.set(no, cell);
    }
    (key, column)
}

fn skills_by_id(entries: &CowVec<Option<Arc<Entry>>>, mut pages: Vec<PageNo>) -> Sorted {
    let key = |no: &PageNo| {
        entries
            .get(no.index())
            .and_then(Option::as_ref)
            .map(|e| (e.facts.id.clone(), e.path.clone(), e.no))
    };
    pages.sort_by_cached_key(key);
    Sorted::of(&pages)
}
