//! Ranking quality on a labelled collection: `eval DIR [split [MODEL]]`, by words, and
//! with the sentence encoder in MODEL by meaning, too. DIR holds
//! `corpus.jsonl.gz`, `queries.jsonl.gz` and `qrels/<split>.tsv.gz`.

use std::collections::HashMap;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use std::sync::Arc;

use escurel_search::vectors::{Code, VectorIndex, Version};
use escurel_search::{
    AdmitAll, Doc, DocUnit, Embedder, Local, Purpose, Query, QueryVector, QueryVectors, TextIndex,
};

fn lines(path: &Path) -> Vec<String> {
    let out = Command::new("gzip")
        .arg("-dc")
        .arg(path)
        .stdin(Stdio::null())
        .output();
    let bytes = out.expect("gzip").stdout;
    String::from_utf8_lossy(&bytes)
        .lines()
        .map(str::to_string)
        .collect()
}

fn field(line: &str, name: &str) -> String {
    let value: serde_json::Value = serde_json::from_str(line).expect("JSON line");
    value
        .get(name)
        .and_then(|v| v.as_str())
        .unwrap_or("")
        .to_string()
}

fn gain(rank: usize, relevance: f64) -> f64 {
    relevance / (rank as f64 + 2.0).log2()
}

fn main() {
    let mut args = std::env::args().skip(1);
    let dir = args.next().expect("a folder");
    let split = args.next().unwrap_or_else(|| "test".to_string());
    let dir = Path::new(&dir);
    let model = args
        .next()
        .map(|dir| Local::open(Path::new(&dir)).expect("a model"));
    let corpus = lines(&dir.join("corpus.jsonl.gz"));
    let ids: Vec<String> = corpus.iter().map(|line| field(line, "_id")).collect();
    let index = TextIndex::in_memory();
    let docs = corpus.iter().enumerate().map(|(number, line)| Doc {
        page: number as u32,
        seq: 1,
        title: field(line, "title"),
        units: vec![DocUnit {
            text: field(line, "text"),
            ..DocUnit::default()
        }],
        ..Doc::default()
    });
    index.add_bulk(docs.collect()).expect("add");
    index.commit(1).expect("commit");

    let mut wanted: HashMap<String, HashMap<String, f64>> = HashMap::new();
    for line in lines(&dir.join(format!("qrels/{split}.tsv.gz")))
        .iter()
        .skip(1)
    {
        let parts: Vec<&str> = line.split('\t').collect();
        if let [query, doc, score] = parts[..] {
            let score = score.trim().parse().unwrap_or(0.0);
            wanted
                .entry(query.into())
                .or_default()
                .insert(doc.into(), score);
        }
    }
    let vectors = model.as_ref().map(|model| embed(model, &corpus));
    let (mut ndcg, mut recall, mut count) = (0.0, 0.0, 0);
    let snapshot = index.snapshot();
    let mut took = Vec::new();
    for line in lines(&dir.join("queries.jsonl.gz")) {
        let Some(relevant) = wanted.get(&field(&line, "_id")) else {
            continue;
        };
        let texts = [field(&line, "text")];
        let began = std::time::Instant::now();
        let query_vectors =
            vectors
                .as_ref()
                .zip(model.as_ref())
                .map(|(index, model)| QueryVectors {
                    snapshot: index.snapshot(),
                    vectors: texts.iter().map(|text| query_vector(model, text)).collect(),
                });
        let query = Query {
            texts: &texts,
            k: 100,
            by_page: false,
            candidates: &AdmitAll,
            audience: None,
            only_page: None,
            vectors: query_vectors,
            reranker: None,
        };
        let hits = snapshot.search(&query).expect("search").hits;
        took.push(began.elapsed());
        let found = |page: u32| relevant.get(&ids[page as usize]).copied().unwrap_or(0.0);
        let dcg: f64 = hits
            .iter()
            .take(10)
            .enumerate()
            .map(|(r, h)| gain(r, found(h.page)))
            .sum();
        let mut ideal: Vec<f64> = relevant.values().copied().collect();
        ideal.sort_by(|a, b| b.total_cmp(a));
        let best: f64 = ideal
            .iter()
            .take(10)
            .enumerate()
            .map(|(r, g)| gain(r, *g))
            .sum();
        ndcg += if best > 0.0 { dcg / best } else { 0.0 };
        let positive = ideal.iter().filter(|g| **g > 0.0).count().max(1) as f64;
        recall += hits.iter().filter(|h| found(h.page) > 0.0).count() as f64 / positive;
        count += 1;
    }
    let count = f64::from(count);
    let line = format!(
        "{} {split}: {count} queries, nDCG@10 {:.4}, recall@100 {:.4}, p50 {:?}",
        dir.display(),
        ndcg / count,
        recall / count,
        {
            took.sort();
            took[took.len() / 2]
        }
    );
    let _ = writeln!(std::io::stdout(), "{line}");
}

fn embed(model: &Local, corpus: &[String]) -> VectorIndex {
    let index = VectorIndex::new(model.dimensions());
    let began = std::time::Instant::now();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let next = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let from = next.fetch_add(32, std::sync::atomic::Ordering::Relaxed);
                    if from >= corpus.len() {
                        return;
                    }
                    let lines = &corpus[from..corpus.len().min(from + 32)];
                    let texts: Vec<String> = lines
                        .iter()
                        .map(|line| format!("{}\n{}", field(line, "title"), field(line, "text")))
                        .collect();
                    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
                    let vectors = model.embed(&texts, Purpose::Document).expect("vectors");
                    let versions: Vec<Version> = vectors
                        .iter()
                        .enumerate()
                        .map(|(n, vector)| Version {
                            page: (from + n) as u32,
                            seq: 1,
                            units: vec![(0, Code::of(vector))],
                        })
                        .collect();
                    index.put(&versions);
                }
            });
        }
    });
    let seconds = began.elapsed().as_secs_f64();
    let _ = writeln!(
        std::io::stdout(),
        "embedded {} texts in {seconds:.1} s",
        corpus.len()
    );
    index
}

fn query_vector(model: &Local, text: &str) -> Option<QueryVector> {
    let trust = model.trust(text);
    let vector = model.embed(&[text], Purpose::Query).ok()?.pop()?;
    (trust > 0.0).then(|| QueryVector {
        vector: Arc::from(vector),
        trust,
    })
}
