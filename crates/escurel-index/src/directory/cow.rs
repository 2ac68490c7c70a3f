//! A growing vector whose clones share what neither side has changed.

use std::sync::Arc;

const CHUNK: usize = 256;

/// Chunks behind `Arc`: a clone costs one reference count, a write copies one
/// chunk if it is shared and changes it in place if it is not.
#[derive(Clone, Debug)]
pub(crate) struct CowVec<T> {
    chunks: Arc<Vec<Arc<Vec<T>>>>,
}

impl<T> Default for CowVec<T> {
    fn default() -> Self {
        CowVec {
            chunks: Arc::default(),
        }
    }
}

impl<T: Clone + Default> CowVec<T> {
    pub fn len(&self) -> usize {
        match self.chunks.last() {
            Some(last) => (self.chunks.len() - 1) * CHUNK + last.len(),
            None => 0,
        }
    }

    pub fn get(&self, i: usize) -> Option<&T> {
        self.chunks.get(i / CHUNK)?.get(i % CHUNK)
    }

    /// The element, after growing to hold it.
    pub fn slot(&mut self, i: usize) -> &mut T {
        let chunks = Arc::make_mut(&mut self.chunks);
        while chunks.len() <= i / CHUNK {
            if let Some(last) = chunks.last_mut() {
                Arc::make_mut(last).resize_with(CHUNK, T::default);
            }
            chunks.push(Arc::default());
        }
        let chunk = Arc::make_mut(&mut chunks[i / CHUNK]);
        if chunk.len() <= i % CHUNK {
            chunk.resize_with(i % CHUNK + 1, T::default);
        }
        &mut chunk[i % CHUNK]
    }

    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.chunks.iter().flat_map(|c| c.iter())
    }

    /// Chunks of 256 elements, the last one possibly shorter.
    pub fn chunks(&self) -> impl Iterator<Item = &[T]> {
        self.chunks.iter().map(|c| c.as_slice())
    }
}

#[cfg(test)]
mod tests {
    use super::CowVec;

    #[test]
    fn clones_do_not_see_later_writes() {
        let mut a = CowVec::<u32>::default();
        *a.slot(1000) = 7;
        assert_eq!(
            (a.len(), a.get(1000), a.get(999), a.get(1001)),
            (1001, Some(&7), Some(&0), None)
        );
        let b = a.clone();
        *a.slot(1000) = 8;
        *a.slot(3) = 9;
        assert_eq!((b.get(1000), b.get(3)), (Some(&7), Some(&0)));
        assert_eq!((a.get(1000), a.iter().sum::<u32>()), (Some(&8), 17));
        assert_eq!(a.iter().count(), 1001);
    }
}
