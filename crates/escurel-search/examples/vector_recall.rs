//! How many of the ten nearest vectors the scan by signs finds:
//! `vector_recall MODEL COLLECTION CACHE [UNITS]`.
//!
//! The texts of a collection (BEIR layout) have real vectors, those that
//! `escurel eval` left in the folder CACHE; up to UNITS vectors are these with
//! seeded noise, which stay about as near to their text as another passage of
//! the same page. Its queries ask, with nothing added.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use escurel_search::eval::Collection;
use escurel_search::vectors::{Cache, Code, Near, Snapshot, TextKey, VectorIndex, Version};
use escurel_search::{AdmitAll, Embedder, Local, Purpose};
use rayon::prelude::*;

type Failure = Box<dyn std::error::Error>;

const UNITS: usize = 500_000;
const QUERIES: usize = 300;
const K: usize = 10;
/// How long the noise is, beside vectors of length 1.
const NOISE: f32 = 0.5;

fn main() -> Result<(), Failure> {
    let mut args = std::env::args_os().skip(1).map(PathBuf::from);
    let (Some(model), Some(dir), Some(cache)) = (args.next(), args.next(), args.next()) else {
        return Err("usage: vector_recall MODEL COLLECTION CACHE [UNITS]".into());
    };
    let units = match args.next() {
        Some(units) => units.to_string_lossy().parse()?,
        None => UNITS,
    };
    let model = Local::open(&model)?;
    let collection = Collection::read(&dir, "test")?;
    let cache = Cache::open(&cache, model.id(), model.dimensions())?;
    let texts = collection.documents.iter();
    let real: Vec<Vec<f32>> = texts
        .map(|document| format!("{}\n{}", document.title, document.text.trim()))
        .filter_map(|text| cache.code(cache.row(TextKey::of(&text))?))
        .map(|code| {
            code.bytes
                .iter()
                .map(|x| f32::from(*x) * code.scale)
                .collect()
        })
        .collect();
    if real.is_empty() {
        return Err("no vector of this collection is in CACHE: run `escurel eval` first".into());
    }
    let queries = collection.questions.iter().take(QUERIES);
    let queries: Vec<String> = queries.map(|question| question.text.clone()).collect();
    let queries = embed(&model, &queries)?;
    let index = VectorIndex::new(model.dimensions());
    for begin in (0..units).step_by(10_000) {
        let pages = begin..units.min(begin + 10_000);
        index.put(&pages.map(|n| version(n, &real)).collect::<Vec<_>>());
    }
    report(&index.snapshot(), &queries, units);
    Ok(())
}

fn embed(model: &Local, queries: &[String]) -> Result<Vec<Vec<f32>>, Failure> {
    let batches: Result<Vec<Vec<Vec<f32>>>, _> = queries
        .par_iter()
        .map(|query| model.embed(&[query], Purpose::Query))
        .collect();
    Ok(batches?.into_iter().flatten().collect())
}

/// The first ones are real, the others one of these with noise.
fn version(n: usize, real: &[Vec<f32>]) -> Version {
    let base = &real[n % real.len()];
    let code = if n < real.len() {
        Code::of(base)
    } else {
        Code::of(&noisy(base, n as u64))
    };
    Version {
        page: n as u32,
        seq: 1,
        units: vec![(0, code)],
    }
}

fn noisy(base: &[f32], seed: u64) -> Vec<f32> {
    // Uniform from -a to a in each of n dimensions has the length a √(n / 3).
    let most = NOISE / (base.len() as f32 / 3.0).sqrt();
    let mut state = seed;
    let mut draw = || next(&mut state) as f32 / u64::MAX as f32 * 2.0 - 1.0;
    let noisy: Vec<f32> = base.iter().map(|x| x + most * draw()).collect();
    let length = noisy.iter().map(|x| x * x).sum::<f32>().sqrt();
    noisy.iter().map(|x| x / length).collect()
}

/// SplitMix64.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn report(snapshot: &Snapshot, queries: &[Vec<f32>], units: usize) {
    let (mut found, mut worst, mut took) = (0, K, Vec::new());
    for query in queries {
        let begun = Instant::now();
        let near = snapshot.near(query, K, &AdmitAll);
        took.push(begun.elapsed());
        let exact = exact(snapshot, query, units);
        let same = near
            .iter()
            .filter(|near| exact.contains(&near.page))
            .count();
        (found, worst) = (found + same, worst.min(same));
    }
    took.sort_unstable();
    let at = |share: f64| took[((took.len() - 1) as f64 * share) as usize];
    let ms = |took: Duration| took.as_secs_f64() * 1e3;
    println!(
        "{units} vectors, {} queries: recall@{K} {:.4}, worst {worst} of {K}; p50 {:.2} ms, p95 {:.2} ms",
        queries.len(),
        found as f64 / (queries.len() * K) as f64,
        ms(at(0.5)),
        ms(at(0.95)),
    );
}

/// Every vector is compared.
fn exact(snapshot: &Snapshot, query: &[f32], units: usize) -> Vec<u32> {
    let query = Code::of(query);
    let mut all: Vec<Near> = (0..units as u32)
        .into_par_iter()
        .filter_map(|page| {
            let similarity = snapshot.similarity(&query, page, 1, 0)?;
            Some(Near {
                page,
                seq: 1,
                unit: 0,
                similarity,
            })
        })
        .collect();
    all.sort_unstable_by(|a, b| {
        let by_similarity = b.similarity.total_cmp(&a.similarity);
        by_similarity.then(a.page.cmp(&b.page))
    });
    all.iter().take(K).map(|near| near.page).collect()
}
