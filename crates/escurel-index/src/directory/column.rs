//! One frontmatter key over all pages: distinct values, and which page has
//! which.
//!
//! A predicate is asked once per distinct value. Value 0 is "absent".
//! Invariant: every other value with `uses > 0` is held by that many pages.

use super::cell::Cell;
use super::cow::CowVec;
use super::sharded::{Posting, Sharded};
use crate::{Bitmap, PageNo};

/// Up to this many pages or values a plain list is smaller and quicker.
const FEW: usize = 64;

#[derive(Clone, Default)]
struct Slot {
    cell: Cell,
    uses: u32,
}

#[derive(Clone)]
enum Ids {
    Sparse(Vec<(PageNo, u32)>),
    Dense(CowVec<u32>),
}

#[derive(Clone)]
pub(crate) struct Column {
    slots: CowVec<Slot>,
    free: Vec<u32>,
    /// From fingerprint to slots, once there are more than a few.
    lookup: Option<Sharded<Posting>>,
    ids: Ids,
    pages: u32,
}

impl Default for Column {
    fn default() -> Self {
        let mut slots = CowVec::<Slot>::default();
        slots.slot(0);
        Column {
            slots,
            free: Vec::new(),
            lookup: None,
            ids: Ids::Sparse(Vec::new()),
            pages: 0,
        }
    }
}

impl Column {
    pub fn is_empty(&self) -> bool {
        self.pages == 0
    }

    fn id(&self, no: PageNo) -> u32 {
        match &self.ids {
            Ids::Sparse(list) => list
                .binary_search_by_key(&no, |(p, _)| *p)
                .map_or(0, |i| list[i].1),
            Ids::Dense(ids) => ids.get(no.index()).copied().unwrap_or(0),
        }
    }

    pub fn cell(&self, no: PageNo) -> Option<&Cell> {
        match self.id(no) {
            0 => None,
            id => self.slots.get(id as usize).map(|s| &s.cell),
        }
    }

    /// Pages that have a value, ascending.
    pub fn pages(&self) -> impl Iterator<Item = PageNo> + '_ {
        let (sparse, dense) = match &self.ids {
            Ids::Sparse(list) => (Some(list), None),
            Ids::Dense(ids) => (None, Some(ids)),
        };
        let sparse = sparse.into_iter().flatten().map(|(no, _)| *no);
        let dense = dense
            .into_iter()
            .flat_map(CowVec::iter)
            .enumerate()
            .filter(|(_, id)| **id != 0);
        sparse.chain(dense.map(|(no, _)| PageNo(no as u32)))
    }

    pub fn set(&mut self, no: PageNo, cell: Cell) {
        let old = self.id(no);
        let new = self.slot_of(cell);
        self.slots.slot(new as usize).uses += 1;
        self.put(no, new);
        match old {
            0 => self.pages += 1,
            old => self.release(old),
        }
    }

    pub fn clear(&mut self, no: PageNo) {
        let old = self.id(no);
        if old != 0 {
            self.put(no, 0);
            self.pages -= 1;
            self.release(old);
        }
    }

    fn put(&mut self, no: PageNo, id: u32) {
        match &mut self.ids {
            Ids::Dense(ids) => *ids.slot(no.index()) = id,
            Ids::Sparse(list) => match (list.binary_search_by_key(&no, |(p, _)| *p), id) {
                (Ok(at), 0) => {
                    list.remove(at);
                }
                (Ok(at), id) => list[at].1 = id,
                (Err(_), 0) => {}
                (Err(at), id) => {
                    list.insert(at, (no, id));
                    if list.len() > FEW {
                        self.spread();
                    }
                }
            },
        }
    }

    fn spread(&mut self) {
        if let Ids::Sparse(list) = &self.ids {
            let mut ids = CowVec::default();
            list.iter().for_each(|(no, id)| *ids.slot(no.index()) = *id);
            self.ids = Ids::Dense(ids);
        }
    }

    /// The slot that holds `cell`, made if there is none.
    fn slot_of(&mut self, cell: Cell) -> u32 {
        let print = cell.fingerprint();
        let same = |id: &u32| {
            self.slots
                .get(*id as usize)
                .is_some_and(|s| s.uses > 0 && s.cell == cell)
        };
        let known = match &self.lookup {
            Some(map) => map.pages(print).iter().map(|p| p.0).find(same),
            None => (1..self.slots.len() as u32).find(same),
        };
        if let Some(id) = known {
            return id;
        }
        let id = self.free.pop().unwrap_or(self.slots.len() as u32);
        *self.slots.slot(id as usize) = Slot { cell, uses: 0 };
        match &mut self.lookup {
            Some(map) => map.add(print, PageNo(id)),
            None if self.slots.len() > FEW => self.lookup = Some(self.fingerprints(id, print)),
            None => {}
        }
        id
    }

    /// The lookup of all slots in use and of the one that is about to be.
    fn fingerprints(&self, fresh: u32, print: u64) -> Sharded<Posting> {
        let mut map = Sharded::default();
        map.add(print, PageNo(fresh));
        for (id, slot) in self
            .slots
            .iter()
            .enumerate()
            .skip(1)
            .filter(|(_, s)| s.uses > 0)
        {
            map.add(slot.cell.fingerprint(), PageNo(id as u32));
        }
        map
    }

    fn release(&mut self, id: u32) {
        let slot = self.slots.slot(id as usize);
        slot.uses -= 1;
        if slot.uses == 0 {
            let cell = std::mem::take(&mut slot.cell);
            self.free.push(id);
            if let Some(map) = &mut self.lookup {
                map.take(cell.fingerprint(), PageNo(id));
            }
        }
    }

    /// Pages below `capacity` whose value, or `absent` where they have none,
    /// passes. Numbers of pages that are not live may be in it.
    pub fn select(&self, capacity: u32, absent: bool, test: impl Fn(&Cell) -> bool) -> Bitmap {
        let mut verdict: Vec<bool> = self
            .slots
            .iter()
            .map(|s| s.uses > 0 && test(&s.cell))
            .collect();
        verdict[0] = absent;
        let mut words = vec![if absent { u64::MAX } else { 0 }; (capacity as usize).div_ceil(64)];
        match &self.ids {
            Ids::Sparse(list) => {
                for (no, id) in list {
                    if let Some(word) = words.get_mut(no.index() / 64) {
                        let bit = 1 << (no.0 % 64);
                        *word = if verdict[*id as usize] {
                            *word | bit
                        } else {
                            *word & !bit
                        };
                    }
                }
            }
            Ids::Dense(ids) => {
                let all = ids.chunks().flat_map(|chunk| chunk.chunks(64));
                for (word, part) in words.iter_mut().zip(all) {
                    // A short part leaves the rest of the word as "absent".
                    let mut bits = if part.len() == 64 {
                        0
                    } else {
                        *word >> part.len() << part.len()
                    };
                    for (i, id) in part.iter().enumerate() {
                        bits |= u64::from(verdict[*id as usize]) << i;
                    }
                    *word = bits;
                }
            }
        }
        Bitmap::from_words(words)
    }
}
