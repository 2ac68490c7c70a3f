//! Page numbers and sets of them.

use serde::{Deserialize, Serialize};

/// Dense number of a page, given in order of first appearance and never given
/// to another page.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize,
)]
pub struct PageNo(pub u32);

impl PageNo {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// A plain bitset over [`PageNo`]. Invariant: bits past the last member may or
/// may not have words; sets compare by members.
#[derive(Clone, Debug, Default)]
pub struct Bitmap {
    words: Vec<u64>,
}

impl Bitmap {
    pub fn new() -> Bitmap {
        Bitmap::default()
    }

    /// Empty, with room for page numbers below `capacity`.
    pub fn with_capacity(capacity: u32) -> Bitmap {
        Bitmap {
            words: vec![0; (capacity as usize).div_ceil(64)],
        }
    }

    pub(crate) fn from_words(words: Vec<u64>) -> Bitmap {
        Bitmap { words }
    }

    pub fn insert(&mut self, no: PageNo) {
        let word = no.index() / 64;
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << (no.0 % 64);
    }

    pub fn remove(&mut self, no: PageNo) {
        if let Some(word) = self.words.get_mut(no.index() / 64) {
            *word &= !(1 << (no.0 % 64));
        }
    }

    pub fn contains(&self, no: PageNo) -> bool {
        self.words
            .get(no.index() / 64)
            .is_some_and(|w| w >> (no.0 % 64) & 1 == 1)
    }

    pub fn len(&self) -> usize {
        self.words.iter().map(|w| w.count_ones() as usize).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|w| *w == 0)
    }

    /// Keeps what is in both.
    pub fn and(&mut self, other: &Bitmap) {
        for (i, word) in self.words.iter_mut().enumerate() {
            *word &= other.words.get(i).copied().unwrap_or(0);
        }
    }

    /// Adds what is in the other.
    pub fn or(&mut self, other: &Bitmap) {
        if self.words.len() < other.words.len() {
            self.words.resize(other.words.len(), 0);
        }
        for (word, more) in self.words.iter_mut().zip(&other.words) {
            *word |= more;
        }
    }

    /// Takes out what is in the other.
    pub fn and_not(&mut self, other: &Bitmap) {
        for (word, less) in self.words.iter_mut().zip(&other.words) {
            *word &= !less;
        }
    }

    /// The complement among page numbers below `capacity`.
    pub fn not(&self, capacity: u32) -> Bitmap {
        let mut out = Bitmap::with_capacity(capacity);
        for (i, word) in out.words.iter_mut().enumerate() {
            *word = !self.words.get(i).copied().unwrap_or(0);
        }
        if let (Some(last), rest @ 1..) = (out.words.last_mut(), capacity % 64) {
            *last &= (1 << rest) - 1;
        }
        out
    }

    /// Members, ascending.
    pub fn iter(&self) -> impl Iterator<Item = PageNo> + '_ {
        self.words.iter().enumerate().flat_map(|(i, &word)| {
            let mut rest = word;
            std::iter::from_fn(move || {
                if rest == 0 {
                    return None;
                }
                let bit = rest.trailing_zeros();
                rest &= rest - 1;
                Some(PageNo(i as u32 * 64 + bit))
            })
        })
    }
}

impl PartialEq for Bitmap {
    fn eq(&self, other: &Bitmap) -> bool {
        let longest = self.words.len().max(other.words.len());
        let word = |b: &Bitmap, i: usize| b.words.get(i).copied().unwrap_or(0);
        (0..longest).all(|i| word(self, i) == word(other, i))
    }
}

impl Eq for Bitmap {}

impl FromIterator<PageNo> for Bitmap {
    fn from_iter<I: IntoIterator<Item = PageNo>>(pages: I) -> Bitmap {
        let mut out = Bitmap::new();
        pages.into_iter().for_each(|no| out.insert(no));
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn set_algebra() {
        let a: Bitmap = [0, 63, 64, 200].map(PageNo).into_iter().collect();
        let b: Bitmap = [63, 200, 1000].map(PageNo).into_iter().collect();
        let list = |m: &Bitmap| m.iter().map(|n| n.0).collect::<Vec<_>>();
        let mut both = a.clone();
        both.and(&b);
        assert_eq!(list(&both), [63, 200]);
        let mut any = a.clone();
        any.or(&b);
        assert_eq!(list(&any), [0, 63, 64, 200, 1000]);
        any.and_not(&a);
        assert_eq!(list(&any), [1000]);
        assert_eq!(list(&a.not(66)), (1..63).chain([65]).collect::<Vec<_>>());
        assert_eq!(a.not(0).len(), 0);
        assert!(a.contains(PageNo(64)) && !a.contains(PageNo(65)) && !a.contains(PageNo(99_999)));
        assert_eq!(Bitmap::with_capacity(500), Bitmap::new());
    }
}
