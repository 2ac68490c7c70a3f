//! From the lists of the lanes to one ranking.
//!
//! Of one text, lexical score, covered words and nearness are each divided by
//! the best of the answer and added up; the weights were chosen on the training
//! split of scifact. Several texts are joined by reciprocal rank. Pure: what it
//! gets decides what comes out.

use hashbrown::{HashMap, HashSet};
use tantivy::DocAddress;

use super::{Found, better_first};
use crate::embed::QueryVector;
use crate::schema::Key;
use crate::vectors::{Code, Near, Snapshot};

/// Of a sum of three: what words, presence of words, and meaning count.
const LEXICAL: f32 = 0.35;
const COVERAGE: f32 = 0.30;
const MEANING: f32 = 0.60;
/// What words count that are only like those of the query, beside a meaning.
const APPROXIMATE: f32 = 0.5;
/// What the better neighbour of a unit lends to it.
const NEIGHBOUR: f32 = 0.15;
/// The constant of reciprocal rank fusion.
const RRF: f32 = 60.0;

/// A unit in a ranking, with why it stands there.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Ranked {
    pub score: f32,
    pub key: Key,
    pub unit: u32,
    /// Layer of the view and place in it, where a lane knows it.
    pub at: Option<(usize, DocAddress)>,
    pub why: Why,
}

/// What each lane had to say about a unit.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Why {
    /// 1 = first in its lane.
    pub lexical_rank: Option<u32>,
    pub lexical_score: Option<f32>,
    /// Share of the query's words, by rarity, that the unit has.
    pub coverage: Option<f32>,
    /// It has none of the words as written, only others that are like them.
    pub approximate: bool,
    pub vector_rank: Option<u32>,
    /// Cosine with the query.
    pub similarity: Option<f32>,
}

impl Ranked {
    pub fn order(&self, other: &Self) -> std::cmp::Ordering {
        let rank = |ranked: &Self| (ranked.score, ranked.key, ranked.unit);
        better_first(rank(self), rank(other))
    }
}

/// The lexical list alone. `rarity` is the sum of the query's.
pub(super) fn lexical(found: Vec<Found>, rarity: f32) -> Vec<Ranked> {
    let ranked = |(n, found): (usize, Found)| Ranked {
        score: found.score,
        key: found.key,
        unit: found.unit,
        at: Some((found.layer, found.address)),
        why: Why {
            lexical_rank: Some(n as u32 + 1),
            lexical_score: Some(found.words()),
            approximate: !found.exact,
            coverage: Some(if rarity > 0.0 {
                found.coverage / rarity
            } else {
                0.0
            }),
            ..Why::default()
        },
    };
    found.into_iter().enumerate().map(ranked).collect()
}

/// Both lanes of one text, best first. Of pages, each counts by its best unit:
/// what neighbours lend would favour long ones.
pub(super) fn blend(
    lexical: Vec<Ranked>,
    near: &[Near],
    vector: &QueryVector,
    snapshot: &Snapshot,
    by_page: bool,
) -> Vec<Ranked> {
    let mut all: HashMap<(Key, u32), Ranked> = HashMap::with_capacity(lexical.len() + near.len());
    for ranked in lexical {
        all.insert((ranked.key, ranked.unit), ranked);
    }
    for (n, near) in near.iter().enumerate() {
        let key = (near.page, near.seq);
        let ranked = all.entry((key, near.unit)).or_insert_with(|| Ranked {
            score: 0.0,
            key,
            unit: near.unit,
            at: None,
            why: Why::default(),
        });
        ranked.why.vector_rank = Some(n as u32 + 1);
        ranked.why.similarity = Some(near.similarity);
    }
    let code = Code::of(&vector.vector);
    let mut ranked: Vec<Ranked> = all.into_values().collect();
    for ranked in &mut ranked {
        let why = &mut ranked.why;
        why.similarity = why
            .similarity
            .or_else(|| snapshot.similarity(&code, ranked.key.0, ranked.key.1, ranked.unit));
    }
    weigh(&mut ranked, vector.trust.clamp(0.0, 1.0));
    if !by_page {
        lend(&mut ranked);
    }
    ranked.sort_unstable_by(Ranked::order);
    ranked
}

fn weigh(ranked: &mut [Ranked], trust: f32) {
    let best = |part: fn(&Why) -> Option<f32>| {
        let parts = ranked.iter().filter_map(|ranked| part(&ranked.why));
        parts.fold(f32::MIN_POSITIVE, f32::max)
    };
    let (words, meaning) = (best(|why| why.lexical_score), best(|why| why.similarity));
    for ranked in ranked {
        let why = &ranked.why;
        let part = |value: Option<f32>| value.unwrap_or(0.0).max(0.0);
        let by_words = LEXICAL * part(why.lexical_score) / words + COVERAGE * part(why.coverage);
        let likeness = if why.approximate { APPROXIMATE } else { 1.0 };
        // What has no vector yet is taken to mean as much of the query as it says of it, so
        // that a page just written does not stand below pages that are merely near.
        let near = match why.similarity {
            Some(similarity) => similarity.max(0.0) / meaning,
            None => likeness * part(why.coverage),
        };
        ranked.score = likeness * by_words + MEANING * trust * near;
    }
}

/// What stands beside something good is good, too.
fn lend(ranked: &mut [Ranked]) {
    let scores: HashMap<(Key, u32), f32> = ranked
        .iter()
        .map(|ranked| ((ranked.key, ranked.unit), ranked.score))
        .collect();
    for ranked in ranked {
        let at = |unit: Option<u32>| scores.get(&(ranked.key, unit?)).copied();
        let before = at(ranked.unit.checked_sub(1));
        let better = before.into_iter().chain(at(ranked.unit.checked_add(1)));
        ranked.score += NEIGHBOUR * better.fold(0.0, f32::max);
    }
}

/// The best entry of each page, from entries in order.
pub(super) fn best_of_pages(mut ranked: Vec<Ranked>) -> Vec<Ranked> {
    let mut seen = HashSet::new();
    ranked.retain(|ranked| seen.insert(ranked.key.0));
    ranked
}

/// One list as it is; several by reciprocal rank.
pub(super) fn join(mut lists: Vec<Vec<Ranked>>, by_page: bool) -> Vec<Ranked> {
    if lists.len() == 1 {
        return lists.pop().unwrap_or_default();
    }
    // Of one page or unit in several lists, the place where it ranked best.
    let mut merged: HashMap<(Key, u32), (usize, Ranked)> = HashMap::new();
    for list in lists {
        for (rank, mut ranked) in list.into_iter().enumerate() {
            ranked.score = 1.0 / (RRF + 1.0 + rank as f32);
            let unit = if by_page { 0 } else { ranked.unit };
            match merged.get_mut(&(ranked.key, unit)) {
                None => {
                    merged.insert((ranked.key, unit), (rank, ranked));
                }
                Some((best, kept)) => {
                    let score = kept.score + ranked.score;
                    if rank < *best {
                        (*best, *kept) = (rank, ranked);
                    }
                    kept.score = score;
                }
            }
        }
    }
    let mut joined: Vec<Ranked> = merged.into_values().map(|(_, ranked)| ranked).collect();
    joined.sort_unstable_by(Ranked::order);
    joined
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::vectors::{VectorIndex, Version};

    #[test]
    fn what_waits_for_its_vector_stands_where_its_words_put_it() {
        let ranked = |page: u32, why: Why| Ranked {
            score: 0.0,
            key: (page, 1),
            unit: 0,
            at: None,
            why,
        };
        let words = Why {
            lexical_score: Some(3.0),
            coverage: Some(1.0),
            ..Why::default()
        };
        let near = |similarity| Why {
            similarity: Some(similarity),
            ..Why::default()
        };
        let part = Why {
            lexical_score: Some(2.0),
            coverage: Some(0.3),
            ..near(0.4)
        };
        let mut all = [ranked(1, near(0.4)), ranked(2, part), ranked(3, words)];
        weigh(&mut all, 1.0);
        all.sort_unstable_by(Ranked::order);
        let order: Vec<u32> = all.iter().map(|ranked| ranked.key.0).collect();
        assert_eq!(order, [3, 2, 1]);
    }

    fn found(page: u32, unit: u32, score: f32, coverage: f32) -> Found {
        Found {
            score,
            coverage,
            exact: true,
            key: (page, 1),
            unit,
            layer: 0,
            address: DocAddress::new(0, page),
        }
    }

    fn near(page: u32, unit: u32, similarity: f32) -> Near {
        Near {
            page,
            seq: 1,
            unit,
            similarity,
        }
    }

    fn trusted(trust: f32) -> QueryVector {
        QueryVector {
            vector: Arc::from([1.0, 0.0]),
            trust,
        }
    }

    #[test]
    fn each_lane_counts_by_its_best_and_by_trust() {
        let index = VectorIndex::new(2);
        index.put(&[Version {
            page: 1,
            seq: 1,
            units: vec![(0, Code::of(&[0.6, 0.8]))],
        }]);
        let words = lexical(vec![found(1, 0, 4.0, 1.0), found(2, 0, 2.0, 0.5)], 2.0);
        let ranked = blend(
            words.clone(),
            &[near(3, 0, 0.9)],
            &trusted(1.0),
            &index.snapshot(),
            false,
        );
        let pages: Vec<u32> = ranked.iter().map(|ranked| ranked.key.0).collect();
        // Page 1 has the words and, looked up, a similarity; page 3 the meaning only.
        assert_eq!(pages, [1, 3, 2]);
        assert!((ranked[0].why.similarity.unwrap() - 0.6).abs() < 0.02);
        assert_eq!((ranked[1].why.vector_rank, ranked[1].at), (Some(1), None));
        let alone = blend(
            words,
            &[near(3, 0, 0.9)],
            &trusted(0.0),
            &index.snapshot(),
            false,
        );
        assert_eq!(alone[2].key.0, 3);
        assert_eq!(alone[2].score, 0.0);
    }

    #[test]
    fn neighbours_lend_and_pages_are_named_once() {
        let index = VectorIndex::new(2).snapshot();
        let words = lexical(
            vec![
                found(5, 3, 4.0, 0.0),
                found(9, 0, 2.0, 0.0),
                found(5, 4, 1.9, 0.0),
            ],
            1.0,
        );
        let pages = blend(words.clone(), &[], &trusted(1.0), &index, true);
        let order: Vec<(u32, u32)> = pages.iter().map(|r| (r.key.0, r.unit)).collect();
        assert_eq!(order, [(5, 3), (9, 0), (5, 4)]);
        let ranked = blend(words, &[], &trusted(1.0), &index, false);
        let order: Vec<(u32, u32)> = ranked.iter().map(|r| (r.key.0, r.unit)).collect();
        assert_eq!(order, [(5, 3), (5, 4), (9, 0)]);
        let pages = best_of_pages(ranked);
        assert_eq!(pages.iter().map(|r| r.key.0).collect::<Vec<_>>(), [5, 9]);
    }
}
