//! Vectors of units: which units of which versions mean most nearly the same.
//!
//! Owns quantisation, the cache that spares embedding a text twice, and the
//! scan. Knows pages as numbers and versions as sequences, as the text index
//! does, and asks the same [`Candidates`](crate::Candidates) before ranking.
//! Invariant: a snapshot holds at most one version of a page.

mod cache;
mod index;
mod quantise;
mod scan;

pub use cache::{Cache, CacheError, TextKey};
pub use index::{Snapshot, VectorIndex, Version};
pub use quantise::Code;
pub use scan::Near;
