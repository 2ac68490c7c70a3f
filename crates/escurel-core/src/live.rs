//! Which version of each page is live: page number → journal sequence.
//!
//! Asked for every candidate of every search, so it is a flat array, in chunks
//! that clones share until one of them is written.

use std::sync::Arc;

use escurel_index::PageNo;

const CHUNK: usize = 1024;
/// No version is live.
const NONE: u64 = u64::MAX;

#[derive(Clone, Default)]
pub(crate) struct LiveSeqs {
    chunks: Vec<Arc<[u64; CHUNK]>>,
}

impl LiveSeqs {
    #[inline]
    pub fn is_live(&self, page: u32, seq: u64) -> bool {
        let page = page as usize;
        seq != NONE
            && self
                .chunks
                .get(page / CHUNK)
                .is_some_and(|chunk| chunk[page % CHUNK] == seq)
    }

    pub fn set(&mut self, page: PageNo, seq: u64) {
        let page = page.0 as usize;
        while self.chunks.len() <= page / CHUNK {
            self.chunks.push(Arc::new([NONE; CHUNK]));
        }
        Arc::make_mut(&mut self.chunks[page / CHUNK])[page % CHUNK] = seq;
    }

    pub fn clear(&mut self, page: PageNo) {
        if (page.0 as usize) < self.chunks.len() * CHUNK {
            self.set(page, NONE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_live_version_is_live_and_clones_keep_their_state() {
        let mut live = LiveSeqs::default();
        live.set(PageNo(3000), 7);
        let before = live.clone();
        live.set(PageNo(3000), 9);
        live.clear(PageNo(9_999_999));
        assert!(live.is_live(3000, 9) && !live.is_live(3000, 7));
        assert!(before.is_live(3000, 7) && !before.is_live(3000, 9));
        assert!(!live.is_live(5, NONE) && !live.is_live(u32::MAX, 0));
    }
}
