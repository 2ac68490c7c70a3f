//! The figures, as a table for people and as JSON for comparison over time.

use std::fs;
use std::path::Path;

use serde::Serialize;

use crate::busy::{self, Busy};
use crate::corpus::Corpus;
use crate::stats::Latency;
use crate::writes::Write;

#[derive(Serialize)]
pub struct Figure {
    pub name: String,
    pub latency: Latency,
    pub bare: Latency,
    pub times_bare_p50: f64,
    pub times_bare_p95: f64,
    /// CPU time of the server for one call by one client.
    pub cpu_ms: f64,
    pub ops_per_s_1: f64,
    pub ops_per_s_8: f64,
    pub body_bytes: usize,
}

#[derive(Default, Serialize)]
pub struct Start {
    pub first_s: f64,
    pub pages_per_s: f64,
    pub intact_s: f64,
    /// From there until every page could be found by meaning.
    pub vectors_s: Option<f64>,
}

#[derive(Default, Serialize)]
pub struct Report {
    pub corpus: String,
    pub pages: usize,
    pub markdown_bytes: u64,
    pub cores: usize,
    /// Load of the machine over the last minute, at the end.
    pub load: f64,
    pub start: Start,
    /// Vectors were made up from those of some pages.
    pub primed: bool,
    pub ops: Vec<Figure>,
    pub busy: Vec<Busy>,
    pub writes: Vec<Write>,
    pub edit_to_search: Latency,
    pub rss_start: u64,
    pub rss_after_mixed: u64,
    /// Of `rss_after_mixed`, mapped files.
    pub rss_mapped: u64,
    pub rss_peak: u64,
    /// Bytes below `.escurel/`, by its folders.
    pub disk: Vec<(String, u64)>,
    pub failures: Vec<String>,
}

impl Report {
    pub fn finish(&mut self, start: Start, corpus: &Corpus, folder: &Path) {
        self.start = start;
        self.corpus.clone_from(&corpus.kind);
        (self.pages, self.markdown_bytes) = (corpus.pages, corpus.bytes);
        self.cores = std::thread::available_parallelism().map_or(0, usize::from);
        let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
        self.load = load
            .split(' ')
            .next()
            .and_then(|n| n.parse().ok())
            .unwrap_or(0.0);
        self.disk = usage(&folder.join(".escurel"));
    }

    /// Keeps what could not be measured, and goes on with the rest.
    pub fn failed(&mut self, what: &str, error: &anyhow::Error) {
        let text = format!("{what}: {error:#}");
        println!("FAILED {text}");
        self.failures.push(text);
    }

    pub fn print(&self) {
        if !self.busy.is_empty() {
            println!("\nwhile busy                 p50 ms   p95 ms    ops/s");
        }
        for figure in &self.busy {
            println!("{}", busy::line(figure));
        }
        println!(
            "\nedit on disk to search: p50 {:.1} ms, p95 {:.1} ms ({} edits)",
            self.edit_to_search.p50_ms, self.edit_to_search.p95_ms, self.edit_to_search.n
        );
        println!(
            "resident: {:.0} MB, after mixed calls {:.0} MB (of these {:.0} MB mapped files), peak {:.0} MB",
            mb(self.rss_start),
            mb(self.rss_after_mixed),
            mb(self.rss_mapped),
            mb(self.rss_peak)
        );
        let all: u64 = self.disk.iter().map(|(_, bytes)| bytes).sum();
        println!(
            "on disk: {:.1} MB beside {:.1} MB of markdown",
            mb(all),
            mb(self.markdown_bytes)
        );
        for (name, bytes) in &self.disk {
            println!("  {name:<12} {:>9.1} MB", mb(*bytes));
        }
        println!("{} cores, load {:.1}", self.cores, self.load);
    }
}

pub fn start_line(start: &Start, primed: bool) -> String {
    let vectors = match start.vectors_s {
        Some(_) if primed => ", vectors made up from those of some pages".to_owned(),
        Some(seconds) => format!(", vectors {seconds:.1} s later"),
        None => String::new(),
    };
    format!(
        "first serve {:.2} s ({:.0} pages/s), start with an intact index {:.3} s{vectors}",
        start.first_s, start.pages_per_s, start.intact_s
    )
}

pub const HEAD: &str = "operation                  p50 ms   p95 ms   CPU ms  ops/s 1  ops/s 8     \
                    body  bare p50  x bare p50  x bare p95";

/// One operation as a row below `HEAD`.
pub fn line(f: &Figure) -> String {
    format!(
        "{:<25}{:>8.3} {:>8.3} {:>8.3} {:>8.0} {:>8.0} {:>8} {:>9.3} {:>11.1} {:>11.1}",
        f.name,
        f.latency.p50_ms,
        f.latency.p95_ms,
        f.cpu_ms,
        f.ops_per_s_1,
        f.ops_per_s_8,
        f.body_bytes,
        f.bare.p50_ms,
        f.times_bare_p50,
        f.times_bare_p95
    )
}

fn usage(folder: &Path) -> Vec<(String, u64)> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut found: Vec<(String, u64)> = entries
        .filter_map(Result::ok)
        .map(|entry| {
            (
                entry.file_name().to_string_lossy().into_owned(),
                size(&entry.path()),
            )
        })
        .collect();
    found.sort();
    found
}

fn size(path: &Path) -> u64 {
    match fs::symlink_metadata(path) {
        Ok(meta) if meta.is_dir() => fs::read_dir(path)
            .map(|entries| {
                entries
                    .filter_map(Result::ok)
                    .map(|e| size(&e.path()))
                    .sum()
            })
            .unwrap_or(0),
        Ok(meta) => meta.len(),
        Err(_) => 0,
    }
}

fn mb(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}
