//! Filling an empty directory at once, on all cores.
//!
//! Gives the same state as one upsert after another; a property test holds
//! the two equal.

use std::sync::Arc;

use escurel_md::PageType;
use hashbrown::HashMap;
use rayon::prelude::*;

use super::cell::{self, Cell};
use super::column::Column;
use super::lists::SkillList;
use super::names::{Keys, mention_keys, page_keys};
use super::sharded::hash;
use super::sorted::Sorted;
use super::{CowVec, Directory};
use crate::{Entry, PageNo};

/// An entry with everything that indexes need of it.
pub(super) struct Prepared {
    entry: Arc<Entry>,
    names: Keys,
    mentions: Keys,
    cells: Vec<(String, Cell)>,
}

impl Prepared {
    pub fn of(entry: Entry) -> Prepared {
        Prepared {
            names: page_keys(&entry.facts, &entry.path),
            mentions: mention_keys(&entry.facts),
            cells: cell::cells_of(&entry.facts),
            entry: Arc::new(entry),
        }
    }
}

impl Directory {
    /// The numbers are given already; no page is live yet.
    pub(super) fn fill(&mut self, mut prepared: Vec<Prepared>) {
        let mut cells: HashMap<String, Vec<(PageNo, Cell)>> = HashMap::new();
        for p in &mut prepared {
            let no = p.entry.no;
            *self.entries.slot(no.index()) = Some(Arc::clone(&p.entry));
            self.set_live(no, true);
            for (key, cell) in std::mem::take(&mut p.cells) {
                cells.entry(key).or_default().push((no, cell));
            }
        }
        let Directory {
            entries,
            paths,
            names,
            mentions,
            lists,
            skill_list,
            columns,
            ..
        } = self;
        let maps = || {
            for p in &prepared {
                let no = p.entry.no;
                paths.add(hash(&p.entry.path), no);
                p.names.iter().for_each(|key| names.add(*key, no));
                p.mentions.iter().for_each(|key| mentions.add(*key, no));
            }
        };
        let others = || {
            let cells: Vec<(String, Vec<(PageNo, Cell)>)> = cells.into_iter().collect();
            let filled: Vec<(String, Column)> = cells
                .into_par_iter()
                .map(|(key, cells)| (key, column_of(cells)))
                .collect();
            filled
                .into_iter()
                .for_each(|(key, column)| *columns.slot(&key) = Arc::new(column));
            let mut by_skill: HashMap<(PageType, Arc<str>), Vec<PageNo>> = HashMap::new();
            for e in prepared.iter().map(|p| &p.entry) {
                let skill = if e.facts.page_type == PageType::Skill {
                    "".into()
                } else {
                    Arc::clone(&e.facts.skill)
                };
                by_skill
                    .entry((e.facts.page_type, skill))
                    .or_default()
                    .push(e.no);
            }
            for ((page_type, skill), pages) in by_skill {
                match page_type {
                    PageType::Skill => *skill_list = Arc::new(skills_by_id(entries, pages)),
                    PageType::Instance => {
                        *lists.slot(&skill) = Arc::new(SkillList::of(entries, pages))
                    }
                }
            }
        };
        rayon::join(maps, others);
    }
}

fn column_of(cells: Vec<(PageNo, Cell)>) -> Column {
    let mut column = Column::default();
    cells
        .into_iter()
        .for_each(|(no, cell)| column.set(no, cell));
    column
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
