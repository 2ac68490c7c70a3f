//! Ranking quality on a labelled collection: `eval DIR [split]`, where DIR holds
//! `corpus.jsonl.gz`, `queries.jsonl.gz` and `qrels/<split>.tsv.gz`.

use std::collections::HashMap;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use escurel_search::{AdmitAll, Doc, DocUnit, Query, TextIndex};

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
    let (mut ndcg, mut recall, mut count) = (0.0, 0.0, 0);
    let snapshot = index.snapshot();
    for line in lines(&dir.join("queries.jsonl.gz")) {
        let Some(relevant) = wanted.get(&field(&line, "_id")) else {
            continue;
        };
        let texts = [field(&line, "text")];
        let query = Query {
            texts: &texts,
            k: 100,
            by_page: false,
            candidates: &AdmitAll,
            only_page: None,
            vectors: None,
        };
        let hits = snapshot.search(&query).expect("search").hits;
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
        "{} {split}: {count} queries, nDCG@10 {:.4}, recall@100 {:.4}",
        dir.display(),
        ndcg / count,
        recall / count
    );
    let _ = writeln!(std::io::stdout(), "{line}");
}
