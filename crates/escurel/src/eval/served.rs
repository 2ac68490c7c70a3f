//! The same questions through a server: the collection as a folder of pages,
//! the tool `search` over HTTP.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use escurel_core::{Kb, Vectors};
use escurel_search::Embedder;
use escurel_search::eval::{Embedding, EvalError, Lane, Row, measure};
use escurel_search::vectors::Cache;
use escurel_server::boot::{self, Server, Stop};
use escurel_server::client::Connection;
use escurel_server::config::{Config, Provider};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::kept::Kept;
use super::report::Measured;
use super::{Work, pages, words_only};
use crate::failure::Failure;

/// Asked to learn how far the vectors are.
const PROBE: &str = "what is this about";
const PAUSE: Duration = Duration::from_millis(100);

/// First without vectors, then with them.
pub fn measured(work: &Work<'_>, runtime: &Runtime) -> Result<Measured, Failure> {
    let mut measured = Measured::default();
    let vectors = boot::vectors(work.config)?;
    let home = tempfile::Builder::new().prefix("escurel-eval-").tempdir()?;
    let folder = home.path().join("pages");
    pages::write(work, &folder)?;

    let plain = Config {
        embedding_provider: Provider::None,
        ..settings(work.config)
    };
    let mut instance = Instance::start(work, runtime, &plain, &folder)?;
    measured.indexed = instance.indexed;
    measured.rows.push(instance.row(work, Lane::Lexical)?);
    drop(instance);

    match vectors {
        Vectors::Off(why) => measured.notes.push(words_only(&why)),
        Vectors::By(model) => {
            let kept = Kept::open(work.config, &mut measured.notes);
            let cache = share(kept.as_ref(), &folder)?;
            let before = vectors_in(&cache, &*model);
            let mut instance = Instance::start(work, runtime, &settings(work.config), &folder)?;
            let took = instance.wait_for_vectors(work)?;
            measured.rows.push(instance.row(work, Lane::Hybrid)?);
            drop(instance);
            measured.embedding = Some(Embedding {
                model: model.id().to_owned(),
                embedded: vectors_in(&cache, &*model).saturating_sub(before),
                took,
            });
        }
    }
    Ok(measured)
}

/// What concerns other folders and other callers does not count here.
fn settings(config: &Config) -> Config {
    Config {
        tenant: None,
        seed_dir: None,
        read_only: false,
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        test_fixtures: false,
        ..config.clone()
    }
}

/// Where the folder's vectors are kept: what was kept before is there, too.
fn share(kept: Option<&Kept>, folder: &Path) -> Result<PathBuf, Failure> {
    let cache = folder.join(".escurel").join("cache");
    if let Some(kept) = kept {
        if cache.exists() {
            std::fs::remove_dir_all(&cache)?;
        }
        std::os::unix::fs::symlink(kept.dir(), &cache)?;
    }
    Ok(cache)
}

fn vectors_in(cache: &Path, model: &dyn Embedder) -> usize {
    Cache::open(cache, model.id(), model.dimensions()).map_or(0, |cache| cache.len())
}

/// A folder that is served; ends when it is dropped.
struct Instance<'a> {
    kb: Arc<Kb>,
    runtime: &'a Runtime,
    stop: Stop,
    connection: Connection,
    indexed: Duration,
}

impl<'a> Instance<'a> {
    fn start(
        work: &Work<'_>,
        runtime: &'a Runtime,
        config: &Config,
        folder: &Path,
    ) -> Result<Instance<'a>, Failure> {
        let began = Instant::now();
        let kb = boot::open(config, folder)?;
        if let Err(failure) = wait_ready(work, &kb) {
            kb.close();
            return Err(failure);
        }
        let indexed = began.elapsed();
        let stop = Stop::default();
        let connection = runtime.block_on(listen(&kb, config, &stop))?;
        Ok(Instance {
            kb,
            runtime,
            stop,
            connection,
            indexed,
        })
    }

    fn row(&mut self, work: &Work<'_>, lane: Lane) -> Result<Row, Failure> {
        measure(lane.name(), work.collection, work.k, work.watch, |text| {
            let answer = self.search(text, work.k)?;
            let hits = answer["hits"].as_array().into_iter().flatten();
            let pages = hits.filter_map(|hit| pages::number(hit["page_id"].as_str()?));
            Ok(pages.collect())
        })
    }

    fn search(&mut self, text: &str, k: usize) -> Result<Value, Failure> {
        let arguments = json!({"q": text, "k": k, "granularity": "page"});
        let body = Bytes::from(arguments.to_string());
        let posted = self.connection.post("/api/tools/search", body);
        let (status, bytes) = self.runtime.block_on(posted)?;
        let answer: Value = serde_json::from_slice(&bytes)
            .map_err(|error| Failure::coded("internal", &error.to_string()))?;
        if status == 200 {
            return Ok(answer);
        }
        let text = |key: &str| answer["error"][key].as_str().unwrap_or_default();
        Err(Failure::coded(text("code"), text("message")))
    }

    /// Waits until every page can be found by meaning.
    fn wait_for_vectors(&mut self, work: &Work<'_>) -> Result<Duration, Failure> {
        let began = Instant::now();
        let all = work.collection.documents.len();
        loop {
            let answer = self.search(PROBE, 1)?;
            let lanes = answer["lanes"].as_array();
            let lane = lanes.and_then(|lanes| lanes.iter().find(|lane| lane["lane"] == "vector"));
            let text = |key: &str| lane.and_then(|lane| lane[key].as_str()).unwrap_or_default();
            match text("state") {
                "fresh" => return Ok(began.elapsed()),
                "lagging" => {}
                _ => return Err(Failure::coded("eval_embedding", text("detail"))),
            }
            // It begins with the number of pages that wait, once that is known.
            let behind = text("detail")
                .split(' ')
                .next()
                .and_then(|n| n.parse().ok());
            let done = all.saturating_sub(behind.unwrap_or(all));
            if !(work.watch)("embedding", done, all) {
                return Err(EvalError::Stopped.into());
            }
            std::thread::sleep(PAUSE);
        }
    }
}

impl Drop for Instance<'_> {
    fn drop(&mut self) {
        self.stop.now();
        self.kb.close();
    }
}

fn wait_ready(work: &Work<'_>, kb: &Kb) -> Result<(), Failure> {
    let mut stopped = false;
    let ready = kb.wait_ready(&mut |status| {
        if !(work.watch)("indexing", status.done as usize, status.total as usize) {
            stopped = true;
            kb.close();
        }
    });
    match (ready, stopped) {
        (_, true) => Err(EvalError::Stopped.into()),
        (true, false) => Ok(()),
        (false, false) => Err(Failure::unavailable(format!(
            "index_damaged: The pages could not be indexed. {}",
            kb.phase().warnings.join(" ")
        ))),
    }
}

async fn listen(kb: &Arc<Kb>, config: &Config, stop: &Stop) -> Result<Connection, Failure> {
    let listener = boot::bind(config.listen).await?;
    let address = listener.local_addr()?;
    let server = Server::new(Arc::clone(kb), config, stop);
    let routes = server.public(config, address);
    tokio::spawn(boot::serve_tcp(listener, routes, stop.clone()));
    Ok(Connection::open(address).await?)
}
