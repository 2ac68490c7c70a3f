//! Hash maps whose clones share what neither side has changed.

use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use hashbrown::HashMap;
use hashbrown::hash_map::Entry as Slot;
use rayon::prelude::*;
use smallvec::SmallVec;

use crate::PageNo;

const SHARDS: usize = 256;

pub(crate) fn hash(text: &str) -> u64 {
    rapidhash::v3::rapidhash_v3(text.as_bytes())
}

/// Keys are hashes already.
#[derive(Default, Clone, Copy)]
pub(crate) struct Identity(u64);

impl Hasher for Identity {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = rapidhash::v3::rapidhash_v3(bytes);
    }

    fn write_u64(&mut self, key: u64) {
        self.0 = key;
    }
}

type Shard<V> = HashMap<u64, V, BuildHasherDefault<Identity>>;

/// From a 64-bit hash to a value. Two names may share a hash, so what is found
/// is verified by the reader.
#[derive(Clone)]
pub(crate) struct Sharded<V> {
    shards: Arc<Vec<Arc<Shard<V>>>>,
}

impl<V> Default for Sharded<V> {
    fn default() -> Self {
        // One empty shard, shared by all places.
        Sharded {
            shards: Arc::new(vec![Arc::default(); SHARDS]),
        }
    }
}

/// The map inside a shard uses the highest and lowest bits.
fn place(key: u64) -> usize {
    (key >> 32) as usize % SHARDS
}

impl<V: Clone> Sharded<V> {
    pub fn get(&self, key: u64) -> Option<&V> {
        self.shards[place(key)].get(&key)
    }

    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.shards.iter().flat_map(|s| s.values())
    }

    fn shard(&mut self, key: u64) -> &mut Shard<V> {
        Arc::make_mut(&mut Arc::make_mut(&mut self.shards)[place(key)])
    }
}

/// Page numbers under one key, ascending.
#[derive(Clone, Debug)]
pub(crate) enum Posting {
    One(PageNo),
    #[allow(
        clippy::box_collection,
        reason = "one word instead of three: there are millions of postings"
    )]
    Many(Box<Vec<PageNo>>),
}

impl Posting {
    pub fn as_slice(&self) -> &[PageNo] {
        match self {
            Posting::One(no) => std::slice::from_ref(no),
            Posting::Many(list) => list,
        }
    }
}

impl Sharded<Posting> {
    /// Of pairs that come in the order of their page numbers.
    pub fn of(pairs: impl Iterator<Item = (u64, PageNo)>) -> Self {
        let mut parts: Vec<Vec<(u64, PageNo)>> = vec![Vec::new(); SHARDS];
        pairs.for_each(|pair| parts[place(pair.0)].push(pair));
        Sharded {
            shards: Arc::new(parts.into_par_iter().map(shard_of).collect()),
        }
    }

    pub fn pages(&self, key: u64) -> &[PageNo] {
        self.get(key).map_or(&[], Posting::as_slice)
    }

    pub fn add(&mut self, key: u64, no: PageNo) {
        let shard = self.shard(key);
        match shard.get_mut(&key) {
            None => {
                shard.insert(key, Posting::One(no));
            }
            Some(Posting::One(known)) if *known == no => {}
            Some(one @ Posting::One(_)) => {
                let mut both = one.as_slice().to_vec();
                both.push(no);
                both.sort_unstable();
                *one = Posting::Many(Box::new(both));
            }
            Some(Posting::Many(list)) => {
                if let Err(at) = list.binary_search(&no) {
                    list.insert(at, no);
                }
            }
        }
    }

    pub fn take(&mut self, key: u64, no: PageNo) {
        let shard = self.shard(key);
        match shard.get_mut(&key) {
            Some(Posting::One(known)) if *known == no => {
                shard.remove(&key);
            }
            Some(Posting::Many(list)) => {
                if let Ok(at) = list.binary_search(&no) {
                    list.remove(at);
                }
                if let [only] = list[..] {
                    shard.insert(key, Posting::One(only));
                }
            }
            _ => {}
        }
    }
}

/// Names of one hash and their values.
type Named<V> = SmallVec<[(Arc<str>, V); 1]>;

fn shard_of(pairs: Vec<(u64, PageNo)>) -> Arc<Shard<Posting>> {
    let mut shard = Shard::default();
    shard.reserve(pairs.len() / 2);
    for (key, no) in pairs {
        match shard.entry(key) {
            Slot::Vacant(free) => {
                free.insert(Posting::One(no));
            }
            Slot::Occupied(mut known) => match known.get_mut() {
                Posting::One(first) if *first == no => {}
                one @ Posting::One(_) => {
                    let mut both = one.as_slice().to_vec();
                    both.push(no);
                    *one = Posting::Many(Box::new(both));
                }
                Posting::Many(list) => {
                    if list.last() != Some(&no) {
                        list.push(no);
                    }
                }
            },
        }
    }
    Arc::new(shard)
}

/// From a name to a value, for the few hundred names of skills and keys.
#[derive(Clone)]
pub(crate) struct ByName<V> {
    map: Sharded<Named<V>>,
}

impl<V> Default for ByName<V> {
    fn default() -> Self {
        ByName {
            map: Sharded::default(),
        }
    }
}

impl<V: Clone + Default> ByName<V> {
    pub fn get(&self, name: &str) -> Option<&V> {
        let bucket = self.map.get(hash(name))?;
        bucket.iter().find(|(n, _)| &**n == name).map(|(_, v)| v)
    }

    pub fn slot(&mut self, name: &str) -> &mut V {
        let key = hash(name);
        let bucket = self.map.shard(key).entry(key).or_default();
        let at = bucket
            .iter()
            .position(|(n, _)| &**n == name)
            .unwrap_or_else(|| {
                bucket.push((crate::intern::intern(name), V::default()));
                bucket.len() - 1
            });
        &mut bucket[at].1
    }

    pub fn remove(&mut self, name: &str) {
        let key = hash(name);
        let shard = self.map.shard(key);
        if let Some(bucket) = shard.get_mut(&key) {
            bucket.retain(|(n, _)| &**n != name);
            if bucket.is_empty() {
                shard.remove(&key);
            }
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = (&Arc<str>, &V)> {
        self.map
            .values()
            .flat_map(|bucket| bucket.iter().map(|(n, v)| (n, v)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn postings_stay_sorted_and_shrink() {
        let mut map = Sharded::<Posting>::default();
        for no in [5, 1, 9, 5] {
            map.add(77, PageNo(no));
        }
        let before = map.clone();
        assert_eq!(map.pages(77), [1, 5, 9].map(PageNo));
        map.take(77, PageNo(1));
        map.take(77, PageNo(2));
        map.take(77, PageNo(9));
        assert_eq!(map.pages(77), [PageNo(5)]);
        map.take(77, PageNo(5));
        assert!(map.get(77).is_none());
        assert_eq!(before.pages(77).len(), 3);
    }
}
