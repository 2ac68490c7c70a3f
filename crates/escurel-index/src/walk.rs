//! Walks over the links that frontmatter keys make: what is asked, and what
//! comes back from the directory (now) and from DuckDB (then) alike.

use hashbrown::HashMap;

use crate::PageNo;

/// More hops than this are not walked.
pub const MOST_HOPS: u32 = 12;

/// Where a walk begins and which way it goes.
#[derive(Clone, Copy, Debug)]
pub struct Walk<'a> {
    pub start: PageNo,
    /// Along the links; otherwise against them.
    pub up: bool,
    /// Frontmatter keys that count; none: all of them.
    pub relations: &'a [String],
    /// At most [`MOST_HOPS`].
    pub max_hops: u32,
}

impl Walk<'_> {
    pub(crate) fn hops(&self) -> u32 {
        self.max_hops.min(MOST_HOPS)
    }
}

/// A page on a walk, at its least depth. Of several ways there the first by
/// relation, then by the path of the page before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hop {
    pub page: PageNo,
    /// The frontmatter key by which the page was reached.
    pub relation: String,
    pub depth: u32,
    pub before: PageNo,
}

/// The shortest path in a walk, both ends included.
pub fn path_to(hops: &[Hop], start: PageNo, to: PageNo) -> Option<Vec<PageNo>> {
    let before: HashMap<PageNo, PageNo> = hops.iter().map(|h| (h.page, h.before)).collect();
    let mut path = vec![to];
    while path.last() != Some(&start) {
        let page = path.last().and_then(|page| before.get(page))?;
        path.push(*page);
    }
    path.reverse();
    Some(path)
}
