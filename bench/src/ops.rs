//! The operations, and how each is driven.

use std::cell::Cell;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use serde_json::{Value, json};

use crate::client::{Client, accepted, request};
use crate::connect;
use crate::corpus::{Corpus, Sample};
use crate::report::Figure;
use crate::rng::Rng;
use crate::server::Server;
use crate::stats::{Latency, latency};

/// Different requests of one operation, so that no single answer is measured.
const VARIANTS: usize = 200;
const WARM: usize = 50;
pub const CLIENTS: usize = 8;
const EDITS: usize = 20;

pub struct Op {
    pub name: &'static str,
    pub requests: Vec<Bytes>,
    /// Each is asked once before, so that the server knows the vector of its
    /// query and what is measured is the search alone.
    pub known: bool,
}

/// Everything that can be asked about this corpus.
pub fn all(corpus: &Corpus, seed: u64) -> Vec<Op> {
    let mut rng = Rng::new(seed ^ 0x5eed);
    let mut make =
        |name: &'static str, tool: &str, arguments: &dyn Fn(&mut Rng, &Sample) -> Value| {
            let requests = (0..VARIANTS).filter_map(|_| {
                let sample = rng.pick(&corpus.samples)?;
                Some(request(tool, &arguments(&mut rng, sample)))
            });
            Op {
                name,
                requests: requests.collect(),
                known: false,
            }
        };
    let mut ops = vec![
        make(
            "search 2 words",
            "search",
            &|rng, page| json!({"q": two(rng, page), "k": 10}),
        ),
        make(
            "search sentence",
            "search",
            &|rng, page| json!({"q": sentence(rng, page), "k": 10}),
        ),
        make(
            "resolve",
            "resolve",
            &|_, page| json!({"wikilink": page.wikilink}),
        ),
        make(
            "expand",
            "expand",
            &|_, page| json!({"page_id": page.page_id}),
        ),
        make(
            "neighbours",
            "neighbours",
            &|_, page| json!({"page_id": page.page_id, "direction": "both"}),
        ),
        make("list_skills", "list_skills", &|_, _| json!({})),
        make(
            "list_instances 50",
            "list_instances",
            &|rng, _| json!({"skill_id": rng.pick(&corpus.skills), "limit": 50}),
        ),
        make(
            "provenance_ancestry",
            "provenance_ancestry",
            &|_, page| json!({"page_id": page.page_id, "direction": "up", "max_hops": 3}),
        ),
    ];
    if !corpus.filters.is_empty() {
        let filtered = make("search, 2 keys filtered", "search", &|rng, page| {
            let keys = rng.pick(&corpus.filters).cloned().unwrap_or_default();
            let filter: serde_json::Map<String, Value> = keys
                .into_iter()
                .map(|(key, value)| (key, Value::String(value)))
                .collect();
            json!({"q": two(rng, page), "k": 10, "filter": filter})
        });
        ops.insert(2, filtered);
    }
    ops
}

/// The searches once more, with queries that the server has embedded before.
pub fn embedded(ops: &[Op]) -> Vec<Op> {
    let searches = ops.iter().filter_map(|op| {
        let name = match op.name {
            "search 2 words" => "2 words, embedded",
            "search sentence" => "sentence, embedded",
            "search, 2 keys filtered" => "2 keys, embedded",
            _ => return None,
        };
        Some(Op {
            name,
            requests: op.requests.clone(),
            known: true,
        })
    });
    searches.collect()
}

/// Two words of the same page.
fn two(rng: &mut Rng, page: &Sample) -> String {
    let word = |rng: &mut Rng| rng.pick(&page.words).cloned().unwrap_or_default();
    format!("{} {}", word(rng), word(rng))
}

/// Nine words of a page, in their order.
fn sentence(rng: &mut Rng, page: &Sample) -> String {
    let begin = rng.below(page.words.len().saturating_sub(9));
    page.words[begin..page.words.len().min(begin + 9)].join(" ")
}

/// One client for latency and CPU time, eight for the rate; then the bare
/// handler with bodies of the same mean size, right after.
pub async fn measure(op: &Op, server: &Server, bare: &Server, span: Duration) -> Result<Figure> {
    let mut client = connect(server).await?;
    let mut bytes = 0;
    let warm = if op.known { op.requests.len() } else { WARM };
    for body in op.requests.iter().cycle().take(warm) {
        let answer = client.post("/mcp", body.clone()).await?;
        accepted(&answer)?;
        bytes += answer.len();
    }
    let body_bytes = bytes / warm;
    let cpu = server.cpu();
    let begun = Instant::now();
    let took = sequential(&mut client, "/mcp", &op.requests, span).await?;
    let (elapsed, cpu) = (begun.elapsed().as_secs_f64(), server.cpu() - cpu);
    let calls = took.len() as f64;
    let ops_per_s_8 = crowd(server, "/mcp", &op.requests, span).await?;

    let path = format!("/size/{body_bytes}");
    let mut plain = connect(bare).await?;
    sequential(&mut plain, &path, &op.requests, span / 10).await?;
    let bare = latency(sequential(&mut plain, &path, &op.requests, span / 2).await?);
    let latency = latency(took);
    Ok(Figure {
        name: op.name.to_owned(),
        times_bare_p50: latency.p50_ms / bare.p50_ms,
        times_bare_p95: latency.p95_ms / bare.p95_ms,
        latency,
        bare,
        cpu_ms: cpu * 1e3 / calls,
        ops_per_s_1: calls / elapsed,
        ops_per_s_8,
        body_bytes,
    })
}

async fn sequential(
    client: &mut Client,
    path: &str,
    requests: &[Bytes],
    span: Duration,
) -> Result<Vec<Duration>> {
    let mut took = Vec::new();
    let end = Instant::now() + span;
    for body in requests.iter().cycle() {
        let begun = Instant::now();
        if begun >= end {
            break;
        }
        client.post(path, body.clone()).await?;
        took.push(begun.elapsed());
    }
    Ok(took)
}

/// Calls per second of eight clients at once.
async fn crowd(server: &Server, path: &str, requests: &[Bytes], span: Duration) -> Result<f64> {
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        clients.push(connect(server).await?);
    }
    let done = Cell::new(0u64);
    let begun = Instant::now();
    let share = requests.len() / CLIENTS;
    let one = |n: usize, mut client: Client| {
        let done = &done;
        async move {
            for body in requests.iter().cycle().skip(n * share) {
                if begun.elapsed() >= span {
                    break;
                }
                client.post(path, body.clone()).await?;
                done.set(done.get() + 1);
            }
            anyhow::Ok(())
        }
    };
    // All on this thread, so that the server keeps a core.
    let mut running: FuturesUnordered<_> = clients
        .into_iter()
        .enumerate()
        .map(|(n, client)| one(n, client))
        .collect();
    while let Some(result) = running.next().await {
        result?;
    }
    drop(running);
    Ok(done.get() as f64 / begun.elapsed().as_secs_f64())
}

/// Calls of all kinds in turn, as agents make them.
pub async fn mixed(ops: &[Op], server: &Server, calls: usize) -> Result<()> {
    let mut client = connect(server).await?;
    for n in 0..if ops.is_empty() { 0 } else { calls } {
        let op = &ops[n % ops.len()];
        let body = op
            .requests
            .get(n / ops.len() % VARIANTS)
            .context("no request")?;
        client.post("/mcp", body.clone()).await?;
    }
    Ok(())
}

/// From a file written by another program to the search that finds it.
pub async fn edits(server: &Server, folder: &Path) -> Result<Latency> {
    let mut client = connect(server).await?;
    let mut took = Vec::new();
    for n in 0..EDITS {
        let word = format!("zq{n}xv{}", std::process::id());
        let file = folder.join(format!("bench-edit-{}.md", n % 5));
        let text = format!("# Edit {n}\n\nA person wrote {word} into this page.\n");
        let asked = request("search", &json!({"q": word, "k": 1}));
        let begun = Instant::now();
        std::fs::write(&file, text)?;
        loop {
            let found = client.call(asked.clone()).await?;
            if found["hits"].to_string().contains(&word) {
                break;
            }
            ensure!(
                begun.elapsed() < Duration::from_secs(10),
                "an edit was not found in 10 s"
            );
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        took.push(begun.elapsed());
        // Apart enough that one edit is not taken together with the next.
        tokio::time::sleep(Duration::from_millis(150)).await;
    }
    Ok(latency(took))
}
