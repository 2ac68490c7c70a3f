//! The figures: pure, from a ranking and what was judged.

use std::time::Duration;

use hashbrown::HashMap;

/// Judged documents of one question, by number. Above zero is relevant.
pub type Grades = HashMap<u32, f64>;

/// nDCG and MRR look at so many of the best documents.
pub const CUT: usize = 10;

/// Of one question, or the mean of several; 0 to 1.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Scores {
    /// Normalised discounted cumulative gain at [`CUT`]: gain = grade, discount
    /// = log2(rank + 1), as trec_eval's `ndcg_cut.10`.
    pub ndcg: f64,
    /// Share of the relevant documents that are among the first `k`.
    pub recall: f64,
    /// 1 / rank of the first relevant document, if within [`CUT`].
    pub reciprocal_rank: f64,
}

/// Scores one ranking, best first.
pub fn scores(ranking: &[u32], grades: &Grades, k: usize) -> Scores {
    let gain = |document: &u32| grades.get(document).copied().unwrap_or(0.0).max(0.0);
    let found: Vec<f64> = ranking.iter().take(k).map(gain).collect();
    let mut ideal: Vec<f64> = grades
        .values()
        .copied()
        .filter(|grade| *grade > 0.0)
        .collect();
    ideal.sort_unstable_by(|a, b| b.total_cmp(a));
    let first = found.iter().take(CUT).position(|gain| *gain > 0.0);
    let hits = found.iter().filter(|gain| **gain > 0.0).count();
    Scores {
        ndcg: share(discounted(&found), discounted(&ideal)),
        recall: share(hits as f64, ideal.len() as f64),
        reciprocal_rank: first.map_or(0.0, |at| 1.0 / (at + 1) as f64),
    }
}

fn discounted(gains: &[f64]) -> f64 {
    let discount = |at: usize| (at as f64 + 2.0).log2();
    let gains = gains.iter().take(CUT).enumerate();
    gains.map(|(at, gain)| gain / discount(at)).sum()
}

fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

impl Scores {
    pub fn mean(all: &[Scores]) -> Scores {
        let mean =
            |figure: fn(&Scores) -> f64| share(all.iter().map(figure).sum(), all.len() as f64);
        Scores {
            ndcg: mean(|scores| scores.ndcg),
            recall: mean(|scores| scores.recall),
            reciprocal_rank: mean(|scores| scores.reciprocal_rank),
        }
    }
}

/// Percentiles by nearest rank, in milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Latency {
    pub p50_ms: f64,
    pub p95_ms: f64,
    pub p99_ms: f64,
}

impl Latency {
    pub fn of(mut took: Vec<Duration>) -> Latency {
        took.sort_unstable();
        let at = |percent: usize| {
            let rank = (took.len() * percent).div_ceil(100);
            let found = took.get(rank.saturating_sub(1));
            found.map_or(0.0, |took| took.as_secs_f64() * 1e3)
        };
        Latency {
            p50_ms: at(50),
            p95_ms: at(95),
            p99_ms: at(99),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(ranking: &[u32], grades: &[(u32, f64)], expect: [f64; 3]) {
        let found = scores(ranking, &grades.iter().copied().collect(), 100);
        let found = [found.ndcg, found.recall, found.reciprocal_rank];
        let near = found.iter().zip(expect).all(|(a, b)| (a - b).abs() < 1e-4);
        assert!(near, "{ranking:?} {grades:?}: {found:?}, not {expect:?}");
    }

    #[test]
    fn values_computed_by_hand() {
        check(&[1, 2, 3], &[(1, 1.0)], [1.0, 1.0, 1.0]);
        // 1 / log2(3)
        check(&[2, 1, 3], &[(1, 1.0)], [0.6309, 1.0, 0.5]);
        // (1 + 1 / log2(4)) / (1 + 1 / log2(3))
        check(&[1, 9, 2], &[(1, 1.0), (2, 1.0)], [0.9197, 1.0, 1.0]);
        // Graded: (1 + 3 / log2(3)) / (3 + 1 / log2(3))
        check(&[1, 2], &[(1, 1.0), (2, 3.0)], [0.7967, 1.0, 1.0]);
        // Three are relevant and one is found: (1 / log2(3)) / (1 + 1 / log2(3) + 1 / log2(4))
        let three = [(1, 1.0), (2, 1.0), (3, 1.0)];
        check(&[7, 1], &three, [0.2961, 1.0 / 3.0, 0.5]);
        check(&[], &[(1, 1.0)], [0.0; 3]);
        check(&[1, 2], &[], [0.0; 3]);
    }

    #[test]
    fn what_is_not_relevant_takes_its_place_in_the_ranking() {
        let grades = [(1, 1.0), (2, -1.0), (3, 0.0)];
        check(&[2, 3, 1], &grades, [0.5, 1.0, 1.0 / 3.0]);
        check(&[1], &grades, [1.0; 3]);
    }

    #[test]
    fn only_the_first_ten_count_but_for_recall() {
        let ranking: Vec<u32> = (1..=20).collect();
        check(&ranking, &[(11, 1.0)], [0.0, 1.0, 0.0]);
        // 1 / log2(11)
        check(&ranking, &[(10, 1.0)], [0.2891, 1.0, 0.1]);
        let grades = Grades::from([(11, 1.0), (1, 1.0)]);
        assert_eq!(scores(&ranking, &grades, 10).recall, 0.5);
        // Twelve are relevant, and nobody can put more than ten of them first.
        let many: Vec<(u32, f64)> = (1..=12).map(|n| (n, 1.0)).collect();
        check(&ranking, &many, [1.0; 3]);
    }

    #[test]
    fn means_and_percentiles() {
        let of = |ndcg| Scores {
            ndcg,
            ..Scores::default()
        };
        assert_eq!(Scores::mean(&[of(1.0), of(0.5)]).ndcg, 0.75);
        assert_eq!(Scores::mean(&[]), Scores::default());
        let took = (1..=200).rev().map(Duration::from_millis).collect();
        let found = Latency::of(took);
        assert_eq!(
            (found.p50_ms, found.p95_ms, found.p99_ms),
            (100.0, 190.0, 198.0)
        );
        assert_eq!(Latency::of(vec![]), Latency::default());
        assert_eq!(Latency::of(vec![Duration::from_millis(3)]).p99_ms, 3.0);
    }
}
