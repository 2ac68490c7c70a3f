//! A sorted map whose clones share what neither side has changed.
//!
//! Invariant: no chunk is empty, and keys ascend through all of them.

use std::cmp::Ordering;
use std::sync::Arc;

const MOST: usize = 256;

#[derive(Clone, Debug)]
pub(crate) struct SortedMap<K, V> {
    chunks: Vec<Arc<Vec<(K, V)>>>,
}

impl<K, V> Default for SortedMap<K, V> {
    fn default() -> Self {
        SortedMap { chunks: Vec::new() }
    }
}

impl<K: Ord + Clone, V: Clone> SortedMap<K, V> {
    /// Chunk and index of the first key for which `before` is false.
    fn seek(&self, before: impl Fn(&K) -> bool) -> (usize, usize) {
        let chunk = self
            .chunks
            .partition_point(|c| c.last().is_some_and(|(key, _)| before(key)));
        let index = self
            .chunks
            .get(chunk)
            .map_or(0, |c| c.partition_point(|(key, _)| before(key)));
        (chunk, index)
    }

    /// The value whose key compares as equal.
    pub fn get(&self, cmp: impl Fn(&K) -> Ordering) -> Option<&V> {
        let (chunk, index) = self.seek(|key| cmp(key).is_lt());
        let (key, value) = self.chunks.get(chunk)?.get(index)?;
        cmp(key).is_eq().then_some(value)
    }

    /// Puts a value in the place of the one before, if there was one.
    pub fn insert(&mut self, key: K, value: V) {
        let (mut chunk, mut index) = self.seek(|known| *known < key);
        if chunk == self.chunks.len() {
            // Behind all others; a full last chunk is left full, as most keys come in order.
            match self.chunks.last() {
                Some(last) if last.len() < MOST => {
                    chunk -= 1;
                    index = last.len();
                }
                _ => self.chunks.push(Arc::default()),
            }
        }
        let list = Arc::make_mut(&mut self.chunks[chunk]);
        match list.get_mut(index) {
            Some(slot) if slot.0 == key => slot.1 = value,
            _ => list.insert(index, (key, value)),
        }
        if list.len() > MOST {
            let upper = list.split_off(MOST / 2);
            self.chunks.insert(chunk + 1, Arc::new(upper));
        }
    }

    pub fn remove(&mut self, key: &K) {
        let (chunk, index) = self.seek(|known| known < key);
        let found = self.chunks.get(chunk).and_then(|c| c.get(index));
        if found.is_none_or(|(known, _)| known != key) {
            return;
        }
        let list = Arc::make_mut(&mut self.chunks[chunk]);
        list.remove(index);
        if list.is_empty() {
            self.chunks.remove(chunk);
        }
    }

    /// Ascending, from the first key for which `before` is false.
    pub fn from(&self, before: impl Fn(&K) -> bool) -> impl Iterator<Item = (&K, &V)> {
        let (chunk, index) = self.seek(before);
        let chunks = self.chunks.iter().skip(chunk).enumerate();
        let rows = chunks.flat_map(move |(n, c)| c.iter().skip(if n == 0 { index } else { 0 }));
        rows.map(|(key, value)| (key, value))
    }

    /// Descending, from the last key for which `before` is true.
    pub fn back_from(&self, before: impl Fn(&K) -> bool) -> impl Iterator<Item = (&K, &V)> {
        let (chunk, index) = self.seek(before);
        let whole = self.chunks.iter().take(chunk).rev();
        let part = self.chunks.get(chunk).and_then(|c| c.get(..index));
        let part = part.unwrap_or_default().iter().rev();
        let rows = part.chain(whole.flat_map(|c| c.iter().rev()));
        rows.map(|(key, value)| (key, value))
    }

    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.chunks.iter().flat_map(|c| c.iter().map(|(_, v)| v))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_a_sorted_map_and_clones_stay_as_they_were() {
        let mut map = SortedMap::default();
        let mut oracle = std::collections::BTreeMap::new();
        let mut state = 1u64;
        let mut kept = Vec::new();
        for n in 0..6000u32 {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            let key = (state >> 40) as u32 % 2000;
            if state & (1 << 20) == 0 {
                map.remove(&key);
                oracle.remove(&key);
            } else {
                map.insert(key, n);
                oracle.insert(key, n);
            }
            if n % 1500 == 7 {
                kept.push((map.clone(), oracle.clone()));
            }
        }
        kept.push((map, oracle));
        for (map, oracle) in kept {
            for cut in [0, 1, 700, 1500, 1999, 2000] {
                assert!(map.from(|k| *k < cut).eq(oracle.range(cut..)));
                assert!(map.back_from(|k| *k < cut).eq(oracle.range(..cut).rev()));
                assert_eq!(map.get(|k| k.cmp(&cut)), oracle.get(&cut));
            }
            assert!(map.values().eq(oracle.values()));
        }
    }
}
