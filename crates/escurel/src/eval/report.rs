//! The figures for people and for programs.

use std::path::PathBuf;
use std::time::Duration;

use escurel_search::eval::{CUT, Collection, Embedding, Row, SetAside};
use escurel_tools::Table;
use serde_json::{Value, json};

/// What the command line asks for.
pub struct Asked {
    pub dir: PathBuf,
    pub split: String,
    pub k: usize,
    pub through_server: bool,
}

/// What came out.
#[derive(Default)]
pub struct Measured {
    pub rows: Vec<Row>,
    /// Until words found every document.
    pub indexed: Duration,
    pub embedding: Option<Embedding>,
    pub notes: Vec<String>,
}

pub struct Report {
    asked: Asked,
    documents: usize,
    queries: usize,
    judgements: usize,
    aside: SetAside,
    measured: Measured,
}

impl Report {
    pub fn new(asked: Asked, collection: &Collection, measured: Measured) -> Report {
        Report {
            asked,
            documents: collection.documents.len(),
            queries: collection.questions.len(),
            judgements: collection.judgements,
            aside: collection.aside,
            measured,
        }
    }

    fn name(&self) -> String {
        let dir = self.asked.dir.canonicalize();
        let dir = dir.as_ref().unwrap_or(&self.asked.dir);
        let name = dir.file_name().unwrap_or(dir.as_os_str());
        name.to_string_lossy().into_owned()
    }

    pub fn json(&self) -> Value {
        let recall = format!("recall_{}", self.asked.k);
        let rows = self.measured.rows.iter().map(|row| {
            json!({
                "lane": row.lane,
                (format!("ndcg_{CUT}")): rounded(row.scores.ndcg),
                (recall.as_str()): rounded(row.scores.recall),
                (format!("mrr_{CUT}")): rounded(row.scores.reciprocal_rank),
                "p50_ms": rounded(row.latency.p50_ms),
                "p95_ms": rounded(row.latency.p95_ms),
                "p99_ms": rounded(row.latency.p99_ms),
            })
        });
        let embedding = self.measured.embedding.as_ref().map(|embedding| {
            json!({
                "model": embedding.model,
                "texts_embedded": embedding.embedded,
                "seconds": rounded(embedding.took.as_secs_f64()),
                "texts_per_second": embedding.rate().map(rounded),
            })
        });
        json!({
            "collection": self.name(),
            "split": self.asked.split,
            "through_server": self.asked.through_server,
            "k": self.asked.k,
            "documents": self.documents,
            "queries": self.queries,
            "judgements": self.judgements,
            "set_aside": {
                "judgements_of_unknown_queries": self.aside.unknown_queries,
                "judgements_of_unknown_documents": self.aside.unknown_documents,
                "queries_without_relevant_documents": self.aside.nothing_relevant,
            },
            "index_seconds": rounded(self.measured.indexed.as_secs_f64()),
            "embedding": embedding,
            "lanes": rows.collect::<Vec<Value>>(),
            "notes": self.measured.notes,
        })
    }

    pub fn table(&self) -> Table {
        let headers = [
            "Lane", "nDCG@10", "recall", "MRR@10", "p50 ms", "p95 ms", "p99 ms",
        ];
        let mut headers = headers.map(str::to_owned);
        headers[2] = format!("recall@{}", self.asked.k);
        let row = |row: &Row| {
            let quality = [
                row.scores.ndcg,
                row.scores.recall,
                row.scores.reciprocal_rank,
            ];
            let latency = [row.latency.p50_ms, row.latency.p95_ms, row.latency.p99_ms];
            let quality = quality.iter().map(|figure| format!("{figure:.4}"));
            let latency = latency.iter().map(|figure| format!("{figure:.2}"));
            let lane = std::iter::once(row.lane.to_owned());
            lane.chain(quality).chain(latency).collect()
        };
        let table = Table {
            headers: headers.to_vec(),
            rows: self.measured.rows.iter().map(row).collect(),
            footer: None,
        };
        self.remarks()
            .iter()
            .fold(table, |table, line| table.note(line))
    }

    fn remarks(&self) -> Vec<String> {
        let through = match self.asked.through_server {
            true => ", through a server",
            false => "",
        };
        let mut lines = vec![
            format!(
                "{}, {}: {} queries, {} documents, {} judgements{through}.",
                self.name(),
                self.asked.split,
                self.queries,
                self.documents,
                self.judgements
            ),
            format!("Indexed in {:.1} s.", self.measured.indexed.as_secs_f64()),
        ];
        lines.extend(self.measured.embedding.as_ref().map(embedded));
        lines.extend(set_aside(&self.aside));
        let notes = self.measured.notes.iter();
        lines.extend(notes.map(|note| format!("Note: {note}.")));
        lines
    }
}

fn embedded(embedding: &Embedding) -> String {
    let with = format!("with {}", embedding.model);
    match embedding.rate() {
        None => format!("All vectors were kept from before, {with}."),
        Some(rate) => format!(
            "Embedded {} texts in {:.1} s, {rate:.1} a second, {with}.",
            embedding.embedded,
            embedding.took.as_secs_f64()
        ),
    }
}

fn set_aside(aside: &SetAside) -> Vec<String> {
    let counted = [
        (
            aside.unknown_queries,
            "judgements name queries that queries.jsonl does not have",
        ),
        (
            aside.unknown_documents,
            "judgements name documents that corpus.jsonl does not have",
        ),
        (
            aside.nothing_relevant,
            "judged queries have no relevant document",
        ),
    ];
    let counted = counted.into_iter().filter(|(count, _)| *count > 0);
    counted
        .map(|(count, what)| format!("Left out: {count} {what}."))
        .collect()
}

/// To a hundredth of a percent of the smallest figure that is told.
fn rounded(figure: f64) -> f64 {
    (figure * 1e4).round() / 1e4
}
