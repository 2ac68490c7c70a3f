//! The vectors of live versions, in memory, in chunks that snapshots share
//! until one of them is written.

use std::sync::Arc;

use arc_swap::ArcSwap;
use parking_lot::Mutex;

use super::quantise::{Code, signs};

/// Units in a chunk; only the last one is shorter.
pub(super) const CHUNK: usize = 1024;
const NOWHERE: u32 = u32::MAX;
/// Dead units are swept out when there are more than these and more than a quarter.
const FEW_DEAD: usize = 4 * CHUNK;

/// Some vectors of pages, by unit.
#[derive(Clone, Debug, Default)]
pub(super) struct Chunk {
    pub pages: Vec<u32>,
    pub seqs: Vec<u64>,
    pub units: Vec<u32>,
    /// Where the cache has them.
    pub rows: Vec<u32>,
    pub scales: Vec<f32>,
    pub bytes: Vec<i8>,
    pub signs: Vec<u64>,
}

impl Chunk {
    pub fn len(&self) -> usize {
        self.pages.len()
    }

    fn push(&mut self, unit: &Placed<'_>) {
        self.pages.push(unit.page);
        self.seqs.push(unit.seq);
        self.units.push(unit.unit);
        self.rows.push(unit.row);
        self.scales.push(unit.scale);
        self.bytes.extend_from_slice(unit.bytes);
        self.signs.extend(signs(unit.bytes));
    }

    fn unit(&self, at: usize, dimensions: usize) -> Placed<'_> {
        Placed {
            page: self.pages[at],
            seq: self.seqs[at],
            unit: self.units[at],
            row: self.rows[at],
            scale: self.scales[at],
            bytes: self.code(at, dimensions),
        }
    }

    pub fn code(&self, at: usize, dimensions: usize) -> &[i8] {
        &self.bytes[at * dimensions..(at + 1) * dimensions]
    }
}

/// One unit as a chunk holds it.
struct Placed<'a> {
    page: u32,
    seq: u64,
    unit: u32,
    row: u32,
    scale: f32,
    bytes: &'a [i8],
}

/// The vectors of one version of a page: cache row and code of each unit.
#[derive(Clone, Debug)]
pub struct Version {
    pub page: u32,
    pub seq: u64,
    pub units: Vec<(u32, Code)>,
}

/// One version per page, and where it stands.
#[derive(Clone)]
pub struct Snapshot {
    pub(super) dimensions: usize,
    pub(super) chunks: Vec<Arc<Chunk>>,
    /// Page → place of its first unit.
    places: Vec<Arc<[u32; CHUNK]>>,
    len: usize,
    dead: usize,
}

pub struct VectorIndex {
    published: ArcSwap<Snapshot>,
    writing: Mutex<()>,
}

impl VectorIndex {
    pub fn new(dimensions: usize) -> VectorIndex {
        VectorIndex {
            published: ArcSwap::from_pointee(Snapshot::new(dimensions)),
            writing: Mutex::new(()),
        }
    }

    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.published.load_full()
    }

    /// Puts versions in; each takes the place of what its page had.
    pub fn put(&self, versions: &[Version]) {
        self.change(|snapshot| {
            *snapshot = snapshot.with(versions);
        });
    }

    /// Lets go of pages that are no more.
    pub fn remove(&self, pages: impl Iterator<Item = u32>) {
        self.change(|snapshot| pages.for_each(|page| snapshot.remove(page)));
    }

    fn change(&self, work: impl FnOnce(&mut Snapshot)) {
        let _one = self.writing.lock();
        let mut next = Snapshot::clone(&self.published.load());
        work(&mut next);
        if next.dead > FEW_DEAD.max(next.len / 4) {
            next = next.swept();
        }
        self.published.store(Arc::new(next));
    }
}

impl Snapshot {
    pub(super) fn new(dimensions: usize) -> Snapshot {
        Snapshot {
            dimensions,
            chunks: Vec::new(),
            places: Vec::new(),
            len: 0,
            dead: 0,
        }
    }

    /// These vectors, with others in the place of what their pages had.
    pub fn with(&self, versions: &[Version]) -> Snapshot {
        let mut with = self.clone();
        for version in versions {
            with.remove(version.page);
            with.push(version);
        }
        with
    }

    /// Units that can be found.
    pub fn len(&self) -> usize {
        self.len - self.dead
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Is this version of the page in?
    pub fn has(&self, page: u32, seq: u64) -> bool {
        self.first(page)
            .is_some_and(|at| self.chunk(at).seqs[at % CHUNK] == seq)
    }

    /// The versions with the cache rows of their units, in order of their places.
    pub fn rows(&self) -> Vec<(u32, u64, Vec<u32>)> {
        let mut versions: Vec<(u32, u64, Vec<u32>)> = Vec::new();
        for unit in self.alive() {
            match versions.last_mut() {
                Some((last, _, rows)) if *last == unit.page => rows.push(unit.row),
                _ => versions.push((unit.page, unit.seq, vec![unit.row])),
            }
        }
        versions
    }

    /// Where unit `unit` of a version stands.
    pub(super) fn place(&self, page: u32, seq: u64, unit: u32) -> Option<usize> {
        let at = self.first(page)? + unit as usize;
        let chunk = self.chunks.get(at / CHUNK)?;
        let n = at % CHUNK;
        let same =
            chunk.pages.get(n) == Some(&page) && chunk.seqs[n] == seq && chunk.units[n] == unit;
        same.then_some(at)
    }

    pub(super) fn is_alive(&self, at: usize) -> bool {
        let chunk = self.chunk(at);
        let n = at % CHUNK;
        self.first(chunk.pages[n]) == at.checked_sub(chunk.units[n] as usize)
    }

    pub(super) fn chunk(&self, at: usize) -> &Chunk {
        &self.chunks[at / CHUNK]
    }

    fn first(&self, page: u32) -> Option<usize> {
        let page = page as usize;
        let place = self.places.get(page / CHUNK)?[page % CHUNK];
        (place != NOWHERE).then_some(place as usize)
    }

    fn set_first(&mut self, page: u32, place: u32) {
        let page = page as usize;
        while self.places.len() <= page / CHUNK {
            self.places.push(Arc::new([NOWHERE; CHUNK]));
        }
        Arc::make_mut(&mut self.places[page / CHUNK])[page % CHUNK] = place;
    }

    fn push(&mut self, version: &Version) {
        for (number, (row, code)) in version.units.iter().enumerate() {
            self.add(&Placed {
                page: version.page,
                seq: version.seq,
                unit: number as u32,
                row: *row,
                scale: code.scale,
                bytes: &code.bytes,
            });
        }
    }

    /// The units of a version come one after the other, the first one first.
    fn add(&mut self, unit: &Placed<'_>) {
        if unit.unit == 0 {
            self.set_first(unit.page, self.len as u32);
        }
        if self.chunks.last().is_none_or(|chunk| chunk.len() == CHUNK) {
            self.chunks.push(Arc::default());
        }
        if let Some(chunk) = self.chunks.last_mut() {
            Arc::make_mut(chunk).push(unit);
        }
        self.len += 1;
    }

    /// Units that can be found, in order of their places.
    fn alive(&self) -> impl Iterator<Item = Placed<'_>> {
        let alive = (0..self.len).filter(|at| self.is_alive(*at));
        alive.map(|at| self.chunk(at).unit(at % CHUNK, self.dimensions))
    }

    fn remove(&mut self, page: u32) {
        let Some(first) = self.first(page) else {
            return;
        };
        let mut units = 0;
        while self
            .chunks
            .get((first + units) / CHUNK)
            .is_some_and(|chunk| {
                let n = (first + units) % CHUNK;
                chunk.pages.get(n) == Some(&page) && chunk.units[n] as usize == units
            })
        {
            units += 1;
        }
        self.dead += units;
        self.set_first(page, NOWHERE);
    }

    /// The same without what is dead.
    fn swept(&self) -> Snapshot {
        let mut next = Snapshot::new(self.dimensions);
        self.alive().for_each(|unit| next.add(&unit));
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(page: u32, seq: u64, units: usize) -> Version {
        let unit = |n: usize| {
            let bytes = (0..8).map(|i| (i + n + page as usize) as i8).collect();
            (n as u32, Code { bytes, scale: 0.01 })
        };
        Version {
            page,
            seq,
            units: (0..units).map(unit).collect(),
        }
    }

    #[test]
    fn a_page_has_one_version_and_old_snapshots_keep_theirs() {
        let index = VectorIndex::new(8);
        index.put(&[version(1, 5, 3), version(70_000, 6, 1)]);
        let before = index.snapshot();
        index.put(&[version(1, 9, 2)]);
        index.remove([70_000, 3].into_iter());
        let now = index.snapshot();
        assert!(before.has(1, 5) && before.has(70_000, 6) && before.len() == 4);
        assert!(now.has(1, 9) && !now.has(1, 5) && !now.has(70_000, 6));
        assert_eq!(now.rows(), [(1, 9, vec![0, 1])]);
        assert_eq!(
            (
                now.place(1, 9, 1).is_some(),
                now.place(1, 9, 2),
                now.place(1, 5, 0)
            ),
            (true, None, None)
        );
    }

    #[test]
    fn what_is_dead_is_swept_out() {
        let index = VectorIndex::new(8);
        for round in 0..40u64 {
            let versions: Vec<Version> = (0..100)
                .map(|page| version(page, round, 1 + (page as usize % 4)))
                .collect();
            index.put(&versions);
            let snapshot = index.snapshot();
            assert_eq!(snapshot.len(), 250);
            assert!(snapshot.len <= 250 + FEW_DEAD + 250, "{}", snapshot.len);
            assert_eq!(snapshot.rows().len(), 100);
            assert!((0..100).all(|page| snapshot.has(page, round)));
        }
    }
}
