//! Page numbers in an order that is kept elsewhere.
//!
//! The list holds numbers only; whoever changes or seeks passes how a page
//! compares with the place that is meant. Invariant: no chunk is empty.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::PageNo;

const MOST: usize = 512;

#[derive(Clone, Debug, Default)]
pub(crate) struct Sorted {
    chunks: Vec<Arc<Vec<PageNo>>>,
    len: usize,
}

impl Sorted {
    /// Of pages that are in order already.
    pub fn of(pages: &[PageNo]) -> Sorted {
        Sorted {
            chunks: pages.chunks(MOST).map(|c| Arc::new(c.to_vec())).collect(),
            len: pages.len(),
        }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    /// Chunk and index of the first page for which `less` is false.
    fn seek(&self, less: impl Fn(PageNo) -> bool) -> (usize, usize) {
        let chunk = self
            .chunks
            .partition_point(|c| c.last().is_some_and(|last| less(*last)));
        let index = self
            .chunks
            .get(chunk)
            .map_or(0, |c| c.partition_point(|p| less(*p)));
        (chunk, index)
    }

    pub fn insert(&mut self, no: PageNo, cmp: impl Fn(PageNo) -> Ordering) {
        let (mut chunk, mut index) = self.seek(|p| cmp(p).is_lt());
        if chunk == self.chunks.len() {
            // Behind all others; a full last chunk is left full, so that loading in order packs well.
            match self.chunks.last() {
                Some(last) if last.len() < MOST => {
                    chunk -= 1;
                    index = last.len();
                }
                _ => self.chunks.push(Arc::default()),
            }
        } else if self.chunks[chunk].len() >= MOST {
            let upper = Arc::make_mut(&mut self.chunks[chunk]).split_off(MOST / 2);
            self.chunks.insert(chunk + 1, Arc::new(upper));
            if index > MOST / 2 {
                (chunk, index) = (chunk + 1, index - MOST / 2);
            }
        }
        Arc::make_mut(&mut self.chunks[chunk]).insert(index, no);
        self.len += 1;
    }

    pub fn remove(&mut self, no: PageNo, cmp: impl Fn(PageNo) -> Ordering) {
        let (chunk, index) = self.seek(|p| cmp(p).is_lt());
        if self.chunks.get(chunk).and_then(|c| c.get(index)) != Some(&no) {
            return;
        }
        let list = Arc::make_mut(&mut self.chunks[chunk]);
        list.remove(index);
        if list.is_empty() {
            self.chunks.remove(chunk);
        }
        self.len -= 1;
    }

    /// From the first page for which `less` is false.
    pub fn from(&self, less: impl Fn(PageNo) -> bool) -> impl Iterator<Item = PageNo> + '_ {
        let (chunk, index) = self.seek(less);
        self.chunks
            .iter()
            .skip(chunk)
            .enumerate()
            .flat_map(move |(i, c)| {
                let start = if i == 0 { index } else { 0 };
                c.get(start..).unwrap_or(&[]).iter().copied()
            })
    }

    /// Backwards from the last page for which `less` is true.
    pub fn back_from(&self, less: impl Fn(PageNo) -> bool) -> impl Iterator<Item = PageNo> + '_ {
        let (chunk, index) = self.seek(less);
        let upto = if chunk < self.chunks.len() {
            chunk + 1
        } else {
            chunk
        };
        self.chunks
            .get(..upto)
            .unwrap_or(&[])
            .iter()
            .enumerate()
            .rev()
            .flat_map(move |(i, c)| {
                let end = if i == chunk { index } else { c.len() };
                c.get(..end).unwrap_or(&[]).iter().rev().copied()
            })
    }

    pub fn iter(&self) -> impl Iterator<Item = PageNo> + '_ {
        self.from(|_| false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_survives_any_sequence() {
        let mut list = Sorted::default();
        let mut state = 1u64;
        let mut oracle = std::collections::BTreeSet::new();
        for _ in 0..6000 {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            let no = (state >> 40) as u32 % 3000;
            if oracle.contains(&no) {
                oracle.remove(&no);
                list.remove(PageNo(no), |p| p.0.cmp(&no));
            } else {
                oracle.insert(no);
                list.insert(PageNo(no), |p| p.0.cmp(&no));
            }
        }
        let plain = |pages: Vec<PageNo>| pages.into_iter().map(|p| p.0).collect::<Vec<_>>();
        assert_eq!(list.len(), oracle.len());
        assert_eq!(
            plain(list.iter().collect()),
            oracle.iter().copied().collect::<Vec<_>>()
        );
        for cut in [0, 1, 700, 1500, 2999, 3000] {
            assert_eq!(
                plain(list.from(|p| p.0 < cut).collect()),
                oracle.range(cut..).copied().collect::<Vec<_>>()
            );
            let back = plain(list.back_from(|p| p.0 < cut).collect());
            assert_eq!(back, oracle.range(..cut).rev().copied().collect::<Vec<_>>());
        }
    }
}
