//! Where messages are answered: here, or by the owner of the folder.
//!
//! Watches the owner and takes its place when it dies.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use escurel_access::Caller;
use escurel_core::{Code, Kb, Refusal};
use escurel_tools::{Catalog, Effect, refusal_json};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::sync::{Mutex, RwLock, watch};

use crate::Service;
use crate::boot::{self, LocalSocket, Server, Stop};
use crate::client::{self, Unreachable};
use crate::config::Config;
use crate::mcp::{self, Context};

/// How long it may take until somebody owns the folder again.
const SETTLE: Duration = Duration::from_secs(10);
const RETRY: Duration = Duration::from_millis(40);

/// Answers wait this long for a folder that has just been opened.
const FRESH: Duration = Duration::from_secs(15);

#[derive(Clone)]
enum Backend {
    Here(Arc<Service>, Gate),
    Owner(PathBuf),
}

/// Opens when every page can be found, or when waiting has lasted long enough.
#[derive(Clone)]
struct Gate {
    ready: watch::Receiver<bool>,
    until: tokio::time::Instant,
}

impl Gate {
    fn of(kb: &Arc<Kb>) -> Gate {
        let (sender, ready) = watch::channel(false);
        let kb = Arc::clone(kb);
        tokio::task::spawn_blocking(move || {
            kb.wait_ready(&mut |_| {});
            let _ = sender.send(true);
        });
        Gate {
            ready,
            until: tokio::time::Instant::now() + FRESH,
        }
    }

    async fn pass(mut self) {
        let _ = tokio::time::timeout_at(self.until, self.ready.wait_for(|ready| *ready)).await;
    }
}

pub struct Link {
    config: Config,
    folder: PathBuf,
    stop: Stop,
    /// With a number that grows with each change.
    backend: RwLock<(u64, Backend)>,
    /// Held while a new backend is sought.
    repair: Mutex<()>,
    socket: Mutex<Option<LocalSocket>>,
}

impl Link {
    pub async fn open(config: Config, folder: PathBuf, stop: Stop) -> Result<Link, Refusal> {
        let (backend, socket) = settle(&config, &folder, &stop).await?;
        let link = Link {
            config,
            folder,
            stop,
            backend: RwLock::new((0, backend)),
            repair: Mutex::new(()),
            socket: Mutex::new(socket),
        };
        Ok(link)
    }

    /// Takes over within moments when the owner goes away, asked or not.
    pub fn watch(self: Arc<Link>) {
        tokio::spawn(async move {
            loop {
                let (number, backend) = self.current().await;
                let Backend::Owner(path) = backend else {
                    return;
                };
                if let Ok(mut stream) = boot::connect(&path).await {
                    // Nothing is ever sent on this connection: it ends with the owner.
                    let _ = stream.read(&mut [0; 1]).await;
                }
                if self.stop.asked() || self.mend(number).await.is_err() {
                    return;
                }
            }
        });
    }

    async fn current(&self) -> (u64, Backend) {
        self.backend.read().await.clone()
    }

    /// The answer to one message; `None` when there is none.
    pub async fn answer(&self, line: Vec<u8>) -> Option<String> {
        let line = Bytes::from(line);
        loop {
            let (number, backend) = self.current().await;
            let failed = match backend {
                Backend::Here(service, gate) => {
                    gate.pass().await;
                    return here(service, line).await;
                }
                Backend::Owner(path) => match client::post(&path, "/mcp", line.clone()).await {
                    Ok((_, body)) => return message(&body),
                    Err(failed) => failed,
                },
            };
            tracing::info!(%failed, "looking for a new owner of the folder");
            if matches!(failed, Unreachable::Broken(_)) && !repeatable(&line) {
                return Some(failure(
                    &line,
                    &Refusal::new(
                        Code::Cancelled,
                        "The server went away during a write; look whether it happened.",
                    ),
                ));
            }
            if let Err(refusal) = self.mend(number).await {
                return Some(failure(&line, &refusal));
            }
        }
    }

    /// Finds a backend to replace number `broken`; the first caller does it for all.
    async fn mend(&self, broken: u64) -> Result<(), Refusal> {
        let _repairing = self.repair.lock().await;
        if self.backend.read().await.0 != broken {
            return Ok(());
        }
        let (backend, socket) = settle(&self.config, &self.folder, &self.stop).await?;
        *self.socket.lock().await = socket;
        *self.backend.write().await = (broken + 1, backend);
        Ok(())
    }

    pub async fn close(&self) {
        self.socket.lock().await.take();
        if let (_, Backend::Here(service, _)) = self.current().await {
            let _ = tokio::task::spawn_blocking(move || service.kb.close()).await;
        }
    }
}

/// Becomes the owner, or finds it.
async fn settle(
    config: &Config,
    folder: &Path,
    stop: &Stop,
) -> Result<(Backend, Option<LocalSocket>), Refusal> {
    let deadline = Instant::now() + SETTLE;
    loop {
        let refusal = match open(config, folder).await {
            Ok(kb) => return Ok(own(kb, config, stop)),
            Err(refusal) if refusal.code == Code::StoreLocked => refusal,
            Err(refusal) => return Err(refusal),
        };
        let path = boot::socket_path(config, folder)?;
        if boot::connect(&path).await.is_ok() {
            return Ok((Backend::Owner(path), None));
        }
        if Instant::now() > deadline || stop.asked() {
            return Err(refusal);
        }
        tokio::time::sleep(RETRY).await;
    }
}

async fn open(config: &Config, folder: &Path) -> Result<Arc<Kb>, Refusal> {
    let (config, folder) = (config.clone(), folder.to_owned());
    let opened = tokio::task::spawn_blocking(move || boot::open(&config, &folder)).await;
    opened.unwrap_or_else(|_| {
        Err(Refusal::new(
            Code::Internal,
            "Opening the folder failed unexpectedly.",
        ))
    })
}

/// Serves the socket too, for those who come later.
fn own(kb: Arc<Kb>, config: &Config, stop: &Stop) -> (Backend, Option<LocalSocket>) {
    let gate = Gate::of(&kb);
    let server = Server::new(kb, config, stop);
    let mut socket = server.open_socket();
    if let Some(listener) = socket.as_mut().and_then(LocalSocket::take_listener) {
        tokio::spawn(boot::serve_unix(listener, server.local(), stop.clone()));
    }
    (Backend::Here(server.service, gate), socket)
}

async fn here(service: Arc<Service>, line: Bytes) -> Option<String> {
    let copy = line.clone();
    let answered = tokio::task::spawn_blocking(move || {
        let caller = Caller::local();
        mcp::handle(
            Context {
                service: &service,
                caller: &caller,
            },
            None,
            &copy,
        )
    });
    match answered.await {
        Ok(reply) => reply.body,
        Err(_) => Some(failure(
            &line,
            &Refusal::new(Code::Internal, "The call failed unexpectedly."),
        )),
    }
}

/// The owner's answer, if it is a message.
fn message(body: &Bytes) -> Option<String> {
    (!body.is_empty()).then(|| String::from_utf8_lossy(body).into_owned())
}

/// May it be sent again although it may have arrived?
fn repeatable(line: &Bytes) -> bool {
    let message: Value = serde_json::from_slice(line).unwrap_or_default();
    if message["method"] != "tools/call" {
        return true;
    }
    let tool = message["params"]["name"]
        .as_str()
        .and_then(|name| Catalog::standard().find(name));
    tool.is_none_or(|entry| entry.spec.effect == Effect::Read)
}

fn failure(line: &Bytes, refusal: &Refusal) -> String {
    let message: Value = serde_json::from_slice(line).unwrap_or_default();
    let error =
        json!({"code": -32603, "message": refusal.to_string(), "data": refusal_json(refusal)});
    json!({"jsonrpc": "2.0", "id": message["id"], "error": error}).to_string()
}

pub fn too_long(limit: usize) -> String {
    let message = format!(
        "The message is longer than {limit} bytes. Send less, or raise ESCUREL_MAX_BODY_BYTES."
    );
    let error = json!({"code": -32600, "message": message, "data": {"code": "body_too_large", "retryable": false}});
    json!({"jsonrpc": "2.0", "error": error}).to_string()
}
