//! Percentiles of a run of durations.

use std::time::Duration;

use serde::Serialize;

#[derive(Clone, Copy, Default, Serialize)]
pub struct Latency {
    pub p50_ms: f64,
    pub p95_ms: f64,
    pub n: usize,
}

pub fn latency(mut took: Vec<Duration>) -> Latency {
    took.sort_unstable();
    let at = |share: f64| {
        let index = ((took.len() as f64 * share) as usize).min(took.len().saturating_sub(1));
        took.get(index).map_or(0.0, |d| d.as_secs_f64() * 1e3)
    };
    Latency {
        p50_ms: at(0.50),
        p95_ms: at(0.95),
        n: took.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_the_sorted_run() {
        let run = (1..=100).rev().map(Duration::from_millis).collect();
        let found = latency(run);
        assert_eq!((found.p50_ms, found.p95_ms, found.n), (51.0, 96.0, 100));
        assert_eq!(latency(vec![]).n, 0);
    }
}
