//! The nearest units: exact where few compete, else by signs first.
//!
//! A vector's signs are a 32nd of it, so that half a million are looked at in
//! milliseconds; the best by signs are then compared exactly. What a caller may
//! not see takes no place in either step.

use hashbrown::HashSet;
use multiversion::multiversion;
use rayon::prelude::*;

use super::index::{CHUNK, Chunk, Snapshot};
use super::quantise::{Code, signs};
use crate::api::Candidates;

/// A unit and how near it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Near {
    pub page: u32,
    pub seq: u64,
    pub unit: u32,
    /// Cosine, -1 to 1.
    pub similarity: f32,
}

/// Up to so many are compared exactly.
const EXACT: usize = 8 * 1024;
/// Of more, so many by signs for each that is wanted, but at least one of so many,
/// within bounds: ADR 7 has the recall.
const BY_SIGNS: usize = 20;
const BY_SIGNS_ONE_OF: usize = 125;
const BY_SIGNS_LEAST: usize = 1_000;
const BY_SIGNS_MOST: usize = 4_000;
/// So many times more units are looked at while pages are lacking.
const MORE: usize = 8;
/// Chunks that one thread takes at a time.
const STRIDE: usize = 32;

impl Snapshot {
    /// The `k` nearest admitted units, nearest first; ties by page and unit.
    pub fn near(&self, query: &[f32], k: usize, candidates: &dyn Candidates) -> Vec<Near> {
        self.near_within(query, k, candidates, EXACT)
    }

    /// The nearest unit of each of the `k` nearest admitted pages.
    pub fn near_pages(&self, query: &[f32], k: usize, candidates: &dyn Candidates) -> Vec<Near> {
        self.near_pages_within(query, k, candidates, EXACT)
    }

    /// Units of few pages may take all the first places, so ever more are looked at.
    fn near_pages_within(
        &self,
        query: &[f32],
        k: usize,
        candidates: &dyn Candidates,
        exact: usize,
    ) -> Vec<Near> {
        let mut wanted = k;
        loop {
            let mut near = self.near_within(query, wanted, candidates, exact);
            let found = near.len();
            let mut seen = HashSet::new();
            near.retain(|near| seen.insert(near.page));
            if near.len() >= k || found < wanted {
                near.truncate(k);
                return near;
            }
            wanted *= MORE;
        }
    }

    fn near_within(
        &self,
        query: &[f32],
        k: usize,
        candidates: &dyn Candidates,
        exact: usize,
    ) -> Vec<Near> {
        if query.len() != self.dimensions || k == 0 {
            return Vec::new();
        }
        let query = Code::of(query);
        let admitted = self.admitted(candidates);
        let total: usize = admitted.iter().map(|(_, places)| places.len()).sum();
        let compared = if total <= exact {
            admitted
        } else {
            self.best_by_signs(&query, &admitted, by_signs(k, total))
        };
        let mut near: Vec<Near> = compared
            .into_par_iter()
            .with_min_len(STRIDE)
            .flat_map_iter(|(chunk, places)| self.exact(&query, chunk, places))
            .collect();
        // Only the best need an order among themselves.
        if near.len() > k {
            near.select_nth_unstable_by(k, order);
            near.truncate(k);
        }
        near.sort_unstable_by(order);
        near
    }

    /// How near one unit is, if it is in.
    pub fn similarity(&self, query: &Code, page: u32, seq: u64, unit: u32) -> Option<f32> {
        let at = self.place(page, seq, unit)?;
        Some(self.cosine(query, self.chunk(at), at % CHUNK))
    }

    /// Per chunk, the places that may be found.
    fn admitted(&self, candidates: &dyn Candidates) -> Vec<(usize, Vec<u16>)> {
        (0..self.chunks.len())
            .into_par_iter()
            .with_min_len(STRIDE)
            .map(|number| (number, self.admitted_in(number, candidates)))
            .filter(|(_, places)| !places.is_empty())
            .collect()
    }

    fn admitted_in(&self, number: usize, candidates: &dyn Candidates) -> Vec<u16> {
        let chunk = &self.chunks[number];
        let mut places = Vec::with_capacity(chunk.len());
        // Units of a page stand together, so its rights are asked for once.
        let mut last = (None, false);
        for at in 0..chunk.len() {
            let version = (chunk.pages[at], chunk.seqs[at]);
            if last.0 != Some(version) {
                let admits =
                    self.is_alive(number * CHUNK + at) && candidates.admits(version.0, version.1);
                last = (Some(version), admits);
            }
            if last.1 {
                places.push(at as u16);
            }
        }
        places
    }

    fn best_by_signs(
        &self,
        query: &Code,
        admitted: &[(usize, Vec<u16>)],
        wanted: usize,
    ) -> Vec<(usize, Vec<u16>)> {
        let query: Vec<u64> = signs(&query.bytes).collect();
        let apart: Vec<Vec<u16>> = admitted
            .par_iter()
            .with_min_len(STRIDE)
            .map(|(number, places)| {
                let mut all = Vec::with_capacity(CHUNK);
                distances(&self.chunks[*number].signs, &query, &mut all);
                places.iter().map(|at| all[usize::from(*at)]).collect()
            })
            .collect();
        let mut counts = vec![0usize; self.dimensions + 65];
        for distance in apart.iter().flatten() {
            counts[usize::from(*distance)] += 1;
        }
        let mut sum = 0;
        let limit = counts.iter().position(|count| {
            sum += count;
            sum >= wanted
        });
        let limit = limit.unwrap_or(counts.len()) as u16;
        let near = admitted
            .iter()
            .zip(&apart)
            .map(|((number, places), apart)| {
                let near = places
                    .iter()
                    .zip(apart)
                    .filter(|(_, distance)| **distance <= limit);
                (*number, near.map(|(at, _)| *at).collect::<Vec<u16>>())
            });
        near.filter(|(_, places)| !places.is_empty()).collect()
    }

    fn exact(&self, query: &Code, number: usize, places: Vec<u16>) -> Vec<Near> {
        let chunk = &self.chunks[number];
        let near = |at: u16| {
            let at = usize::from(at);
            Near {
                page: chunk.pages[at],
                seq: chunk.seqs[at],
                unit: chunk.units[at],
                similarity: self.cosine(query, chunk, at),
            }
        };
        places.into_iter().map(near).collect()
    }

    fn cosine(&self, query: &Code, chunk: &Chunk, at: usize) -> f32 {
        dot(&query.bytes, chunk.code(at, self.dimensions)) as f32 * query.scale * chunk.scales[at]
    }
}

/// So many of `total` are compared exactly when signs decide which.
fn by_signs(k: usize, total: usize) -> usize {
    let share = (total / BY_SIGNS_ONE_OF).clamp(BY_SIGNS_LEAST, BY_SIGNS_MOST);
    share.max(k * BY_SIGNS)
}

fn order(a: &Near, b: &Near) -> std::cmp::Ordering {
    let place = |near: &Near| (near.page, near.unit);
    b.similarity
        .total_cmp(&a.similarity)
        .then_with(|| place(a).cmp(&place(b)))
}

/// Signs that differ, per row of `query.len()` words.
#[multiversion(targets(
    "x86_64+avx512f+avx512bw+avx512vl+avx512vpopcntdq+popcnt",
    "x86_64+avx2+popcnt",
    "aarch64+neon"
))]
fn distances(rows: &[u64], query: &[u64], out: &mut Vec<u16>) {
    // Rows of a known length need no inner loop: 384 dimensions, the usual ones.
    if let Ok(query) = <&[u64; 6]>::try_from(query) {
        let apart = |row: &[u64; 6]| -> u16 {
            let mut sum = 0;
            for n in 0..6 {
                sum += (row[n] ^ query[n]).count_ones();
            }
            sum as u16
        };
        out.extend(rows.as_chunks::<6>().0.iter().map(apart));
        return;
    }
    let apart = |row: &[u64]| {
        let bits = row.iter().zip(query).map(|(a, b)| (a ^ b).count_ones());
        bits.sum::<u32>() as u16
    };
    out.extend(rows.chunks_exact(query.len()).map(apart));
}

#[multiversion(targets("x86_64+avx512f+avx512bw+avx512vl", "x86_64+avx2", "aarch64+neon"))]
fn dot(a: &[i8], b: &[i8]) -> i32 {
    a.iter()
        .zip(b)
        .map(|(a, b)| i32::from(*a) * i32::from(*b))
        .sum()
}

#[cfg(test)]
mod tests {
    use super::super::index::{VectorIndex, Version};
    use super::*;
    use crate::api::AdmitAll;

    struct Even;

    impl Candidates for Even {
        fn admits(&self, page: u32, _: u64) -> bool {
            page.is_multiple_of(2)
        }
    }

    /// Numbers that look random and are the same each time.
    fn vector(seed: u64, dimensions: usize) -> Vec<f32> {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 40) as f32 / (1u64 << 24) as f32 - 0.5
        };
        let raw: Vec<f32> = (0..dimensions).map(|_| next() + next() + next()).collect();
        let norm = raw.iter().map(|x| x * x).sum::<f32>().sqrt();
        raw.iter().map(|x| x / norm).collect()
    }

    fn filled(pages: u32, dimensions: usize) -> VectorIndex {
        let index = VectorIndex::new(dimensions);
        let version = |page: u32| Version {
            page,
            seq: 1,
            units: (0..2)
                .map(|unit| (0, Code::of(&vector(u64::from(page * 2 + unit), dimensions))))
                .collect(),
        };
        let versions: Vec<Version> = (0..pages).map(version).collect();
        index.put(&versions);
        index
    }

    #[test]
    fn the_nearest_is_the_vector_itself() {
        for dimensions in [384, 100, 512] {
            let snapshot = filled(1500, dimensions).snapshot();
            for seed in [0, 1, 7, 2_999] {
                let near = snapshot.near(&vector(seed, dimensions), 3, &AdmitAll);
                assert_eq!(
                    (u64::from(near[0].page), u64::from(near[0].unit)),
                    (seed / 2, seed % 2)
                );
                assert!((near[0].similarity - 1.0).abs() < 0.02, "{near:?}");
                assert!(near[1].similarity < 0.6);
            }
        }
    }

    #[test]
    fn who_is_not_admitted_takes_no_place() {
        let snapshot = filled(1500, 64).snapshot();
        for exact in [EXACT, 0] {
            let near = snapshot.near_within(&vector(3, 64), 200, &Even, exact);
            assert_eq!(near.len(), 200);
            assert!(near.iter().all(|near| near.page % 2 == 0));
        }
    }

    #[test]
    fn a_long_page_takes_one_place_among_pages() {
        let index = VectorIndex::new(64);
        let units = |seeds: std::ops::Range<u64>, toward: f32| -> Vec<(u32, Code)> {
            let unit = |seed| {
                let (a, b) = (vector(1, 64), vector(seed, 64));
                let near: Vec<f32> = a.iter().zip(&b).map(|(a, b)| toward * a + b).collect();
                (0, Code::of(&near))
            };
            seeds.map(unit).collect()
        };
        let mut versions = vec![Version {
            page: 0,
            seq: 1,
            units: units(100..3_000, 3.0),
        }];
        versions.extend((1..60).map(|page| Version {
            page,
            seq: 1,
            units: units(10_000 + u64::from(page)..10_001 + u64::from(page), 0.1),
        }));
        index.put(&versions);
        let snapshot = index.snapshot();
        for exact in [EXACT, 0] {
            let near = snapshot.near_pages_within(&vector(1, 64), 50, &AdmitAll, exact);
            let pages: HashSet<u32> = near.iter().map(|near| near.page).collect();
            assert_eq!((near.len(), pages.len(), near[0].page), (50, 50, 0));
            let all = snapshot.near_pages_within(&vector(1, 64), 100, &AdmitAll, exact);
            assert_eq!(all.len(), 60, "as many as there are");
        }
    }

    #[test]
    fn by_signs_hardly_anything_is_missed() {
        // Texts about one thing are near each other, as in a folder of notes.
        let near_to = |centre: u64, seed: u64, noise: f32| -> Vec<f32> {
            let (a, b) = (vector(centre, 384), vector(seed + 1_000_000, 384));
            a.iter().zip(&b).map(|(a, b)| a + noise * b).collect()
        };
        let index = VectorIndex::new(384);
        let version = |page: u32| Version {
            page,
            seq: 1,
            units: vec![(
                0,
                Code::of(&near_to(u64::from(page) % 500, u64::from(page), 1.2)),
            )],
        };
        index.put(&(0..20_000).map(version).collect::<Vec<_>>());
        let snapshot = index.snapshot();
        let mut same = 0;
        for seed in 0..20u64 {
            let query = near_to(seed, 5_000_000 + seed, 1.0);
            let exact = snapshot.near_within(&query, 10, &AdmitAll, usize::MAX);
            let quick = snapshot.near_within(&query, 10, &AdmitAll, 0);
            same += exact.iter().filter(|near| quick.contains(near)).count();
        }
        assert!(same >= 196, "{same} of 200");
    }

    #[test]
    fn single_units_are_compared_as_in_a_search() {
        let snapshot = filled(10, 64).snapshot();
        let query = vector(5, 64);
        let near = snapshot.near(&query, 20, &AdmitAll);
        for near in near {
            let alone = snapshot.similarity(&Code::of(&query), near.page, near.seq, near.unit);
            assert_eq!(alone, Some(near.similarity));
        }
        assert_eq!(snapshot.similarity(&Code::of(&query), 3, 2, 0), None);
        assert!(snapshot.near(&[1.0; 3], 5, &AdmitAll).is_empty());
    }
}
