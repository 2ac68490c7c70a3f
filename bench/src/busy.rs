//! Searches while the server has other work: the first indexing of the folder,
//! and, with a model that embeds, the vectors after it.

use std::cell::Cell;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use futures_util::future::try_join_all;
use serde::Serialize;

use crate::client::{Client, accepted};
use crate::connect;
use crate::ops::Op;
use crate::server::Server;
use crate::stats::{Latency, latency};

#[derive(Serialize)]
pub struct Busy {
    pub name: String,
    /// What the server did meanwhile.
    pub during: &'static str,
    pub clients: usize,
    pub latency: Latency,
    pub ops_per_s: f64,
    pub seconds: f64,
}

const PATIENCE: Duration = Duration::from_secs(30);
const LONGEST: Duration = Duration::from_secs(900);
const PAUSE: Duration = Duration::from_millis(20);

/// Asks a server that has just been started until it is ready, and for `span`
/// more if vectors are made after that.
pub async fn measure(
    server: &Server,
    op: &Op,
    clients: usize,
    embeds: bool,
    span: Duration,
) -> Result<Vec<Busy>> {
    server.listening(PATIENCE).await?;
    let ready = Cell::new(false);
    let watch = async {
        let watched = tokio::time::timeout(LONGEST, until_ready(server)).await;
        ready.set(true);
        watched.context("it was not ready in time")?
    };
    let go_on = || !ready.get();
    let (watched, indexing) = tokio::join!(watch, crowd(server, op, clients, "indexing", &go_on));
    watched?;
    let mut all = vec![indexing?];
    if embeds {
        let begun = Instant::now();
        let go_on = || begun.elapsed() < span;
        all.push(crowd(server, op, clients, "embedding", &go_on).await?);
    }
    Ok(all)
}

/// On one connection, so that it takes little from those who search.
async fn until_ready(server: &Server) -> Result<()> {
    let mut client = connect(server).await?;
    while client.get("/readyz").await? != 200 {
        tokio::time::sleep(PAUSE).await;
    }
    Ok(())
}

/// All on this thread, so that the server keeps a core.
async fn crowd(
    server: &Server,
    op: &Op,
    clients: usize,
    during: &'static str,
    go_on: &dyn Fn() -> bool,
) -> Result<Busy> {
    let begun = Instant::now();
    let share = op.requests.len() / clients;
    let one = |n: usize| async move {
        let client = connect(server).await?;
        ask(client, op, n * share, go_on).await
    };
    let took = try_join_all((0..clients).map(one)).await?;
    let took: Vec<Duration> = took.into_iter().flatten().collect();
    let seconds = begun.elapsed().as_secs_f64();
    Ok(Busy {
        name: op.name.to_owned(),
        during,
        clients,
        ops_per_s: took.len() as f64 / seconds,
        latency: latency(took),
        seconds,
    })
}

async fn ask(
    mut client: Client,
    op: &Op,
    skip: usize,
    go_on: &dyn Fn() -> bool,
) -> Result<Vec<Duration>> {
    let mut took = Vec::new();
    for body in op.requests.iter().cycle().skip(skip) {
        if !go_on() {
            break;
        }
        let begun = Instant::now();
        let answer = client.post("/mcp", body.clone()).await?;
        took.push(begun.elapsed());
        accepted(&answer)?;
    }
    Ok(took)
}

/// Lets the next start begin anew; vectors that were put there stay.
pub fn forget(folder: &Path, keep_vectors: bool) -> Result<()> {
    let state = folder.join(".escurel");
    for entry in std::fs::read_dir(&state).context("the folder was never served")? {
        let path = entry?.path();
        if keep_vectors && path.ends_with("cache") {
            continue;
        }
        match path.is_dir() {
            true => std::fs::remove_dir_all(path)?,
            false => std::fs::remove_file(path)?,
        }
    }
    Ok(())
}

pub fn line(busy: &Busy) -> String {
    format!(
        "{:<25}{:>8.3} {:>8.3} {:>8.0}  while {}, {} at once, for {:.1} s",
        busy.name,
        busy.latency.p50_ms,
        busy.latency.p95_ms,
        busy.ops_per_s,
        busy.during,
        busy.clients,
        busy.seconds
    )
}
