//! From settings to a running server: opening the folder, binding, stopping.
//!
//! Invariant: the folder's lock is held before anything listens, so whoever
//! reaches an address reaches the owner.

mod accept;
mod seed;
mod socket;
mod stop;
mod vectors;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::Router;
use escurel_access::{Caller, OpenPolicy};
use escurel_core::api::{RepairPlan, VerifyReport};
use escurel_core::{Code, Kb, OpenOptions, Refusal};
use tokio::net::TcpListener;

use crate::config::Config;
use crate::http::{self, App, Guard, Limits};
use crate::webhook::{Sink, Webhook};
use crate::{Service, Sockets};
pub use accept::{serve_tcp, serve_unix};
pub use seed::seed;
pub use socket::{LocalSocket, connect};
pub use stop::Stop;
pub use vectors::vectors;

/// Why nothing listens.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    #[error("port_in_use: Port {} of {} is taken by another program. Choose another with --listen {}:{}, or port 0 for any free one.",
        .0.port(), .0.ip(), bracketed(.0), .0.port().checked_add(1).unwrap_or(8080))]
    InUse(SocketAddr),
    #[error("listen_failed: Cannot listen on {0}: {1}. Choose another address with --listen.")]
    Other(SocketAddr, std::io::Error),
}

fn bracketed(address: &SocketAddr) -> String {
    if address.is_ipv6() {
        format!("[{}]", address.ip())
    } else {
        address.ip().to_string()
    }
}

/// How the folder is opened under these settings.
pub fn options(config: &Config, folder: &Path) -> Result<OpenOptions, Refusal> {
    Ok(OpenOptions {
        policy: Arc::new(OpenPolicy),
        tenant: tenant(config, folder)?,
        cache_home: config.cache_dir.clone(),
        read_only: config.read_only,
        autonomy_lint: config.autonomy_lint,
        event_acl: config.event_acl,
        ..OpenOptions::default()
    })
}

/// The tenant that is meant: the named one, `default`, or the only one.
fn tenant(config: &Config, folder: &Path) -> Result<Option<String>, Refusal> {
    let Ok(entries) = std::fs::read_dir(folder.join("tenants")) else {
        return vault_tenant(config, folder);
    };
    let dirs = entries.flatten().filter(|entry| entry.path().is_dir());
    let mut names: Vec<String> = dirs
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort_unstable();
    if let Some(named) = &config.tenant {
        // The first tenant of a data directory is made by naming it, others by a seed.
        let may_be_new = names.is_empty() || config.seed_dir.is_some();
        if may_be_new || names.contains(named) {
            return Ok(Some(named.clone()));
        }
        let message = format!("{} has no tenant `{named}`.", folder.display());
        return Err(Refusal::new(Code::InvalidArgument, message)
            .at("tenant")
            .candidates(names));
    }
    match names.as_slice() {
        [] => Ok(None),
        [only] => Ok(Some(only.clone())),
        several if several.iter().any(|name| name == "default") => Ok(None),
        _ => Err(Refusal::new(
            Code::InvalidArgument,
            "The data directory has several tenants; name one with ESCUREL_TENANT or --tenant.",
        )
        .at("tenant")
        .candidates(names)),
    }
}

/// Any folder of notes has one tenant, `default`.
fn vault_tenant(config: &Config, folder: &Path) -> Result<Option<String>, Refusal> {
    match &config.tenant {
        Some(named) if named != "default" && config.seed_dir.is_none() => Err(Refusal::new(
            Code::InvalidArgument,
            format!(
                "{} is a folder of notes without tenants, so it has no tenant `{named}`; leave the tenant out, or name a \
                 data directory (one that holds tenants/).",
                folder.display()
            ),
        )
        .at("tenant")),
        _ => Ok(None),
    }
}

/// Compares a folder that nobody serves, and takes nothing up that differs.
pub fn verify(config: &Config, folder: &Path) -> Result<VerifyReport, Refusal> {
    let options = options(config, folder)?.as_served(folder)?;
    Kb::verify_at_rest(folder, options, &Caller::local())
}

/// For a look: a folder that was never served stays as it is.
pub fn glance(config: &Config, folder: &Path) -> Result<Arc<Kb>, Refusal> {
    match options(config, folder)?.as_served(folder) {
        Ok(options) => Kb::open(folder, options),
        Err(refusal) if refusal.code == Code::FolderNotServed => {
            Kb::glance(folder, options(config, folder)?)
        }
        Err(refusal) => Err(refusal),
    }
}

pub fn open(config: &Config, folder: &Path) -> Result<Arc<Kb>, Refusal> {
    if let Some(from) = &config.seed_dir {
        seed(from, folder, config.tenant.as_deref().unwrap_or("default"))?;
    }
    let options = OpenOptions {
        vectors: vectors(config)?,
        ..options(config, folder)?
    };
    Kb::open(folder, options)
}

/// Opens a folder that has been served; refuses to begin with another.
pub fn open_served(config: &Config, folder: &Path) -> Result<Arc<Kb>, Refusal> {
    Kb::open(folder, options(config, folder)?.as_served(folder)?)
}

/// Where the owner of a folder that has been served listens. Creates nothing.
pub fn served_socket(config: &Config, folder: &Path) -> Result<PathBuf, Refusal> {
    let options = options(config, folder)?.as_served(folder)?;
    Kb::socket_path(folder, &options)
}

/// Deletes what is derived of a folder that has been served.
pub fn forget_index(config: &Config, folder: &Path) -> Result<(), Refusal> {
    Kb::forget_index(folder, &options(config, folder)?.as_served(folder)?)
}

/// What [`repair_journal`] would do to a folder that has been served.
pub fn plan_repair(config: &Config, folder: &Path) -> Result<RepairPlan, Refusal> {
    let options = options(config, folder)?.as_served(folder)?;
    Kb::plan_repair(folder, &options, &Caller::local())
}

/// Goes on with what can be read of a broken journal.
pub fn repair_journal(config: &Config, folder: &Path) -> Result<RepairPlan, Refusal> {
    let options = options(config, folder)?.as_served(folder)?;
    Kb::repair_journal(folder, &options, &Caller::local())
}

/// Where the folder's owner listens for processes of this machine.
pub fn socket_path(config: &Config, folder: &Path) -> Result<PathBuf, Refusal> {
    Kb::socket_path(folder, &options(config, folder)?)
}

pub async fn bind(address: SocketAddr) -> Result<TcpListener, BindError> {
    TcpListener::bind(address)
        .await
        .map_err(|error| match error.kind() {
            std::io::ErrorKind::AddrInUse => BindError::InUse(address),
            _ => BindError::Other(address, error),
        })
}

fn webhook(kb: &Arc<Kb>, config: &Config) -> Option<Webhook> {
    let webhook = Webhook::start(kb, Sink::of(config)?);
    webhook
        .inspect_err(|error| tracing::error!(%error, "no webhook is told of events"))
        .ok()
}

/// What serves one knowledge base.
pub struct Server {
    pub service: Arc<Service>,
    pub limits: Limits,
    sockets: Sockets,
}

impl Server {
    /// WebSockets are closed when `stop` says so.
    pub fn new(kb: Arc<Kb>, config: &Config, stop: &Stop) -> Server {
        let limits = Limits {
            body_bytes: config.max_body_bytes,
            request_time: config.request_timeout,
        };
        let webhook = webhook(&kb, config);
        let service = Service::new(kb, config.test_fixtures).with_webhook(webhook);
        Server {
            sockets: Sockets::of(&service.kb, stop.clone()),
            service: Arc::new(service),
            limits,
        }
    }

    fn app(&self, guard: Option<Guard>) -> App {
        let caller = Arc::new(Caller::local());
        App {
            service: Arc::clone(&self.service),
            limits: self.limits,
            caller,
            guard: guard.map(Arc::new),
            sockets: self.sockets.clone(),
        }
    }

    /// Routes for the network.
    pub fn public(&self, config: &Config, bound: SocketAddr) -> Router {
        let mut hosts = config.allowed_hosts.clone();
        if !bound.ip().is_unspecified() {
            hosts.push(bound.to_string());
        }
        http::router(self.app(Some(Guard::new(&hosts, &config.allowed_origins))))
    }

    /// Routes for the Unix socket: the file's permissions say who may call.
    pub fn local(&self) -> Router {
        http::local_router(self.app(None))
    }

    pub fn metrics(&self) -> Router {
        http::metrics_router(self.app(None))
    }

    /// Opens the socket beside the lock; a folder without one is served all the same.
    pub fn open_socket(&self) -> Option<LocalSocket> {
        let path = self.service.kb.socket()?;
        match LocalSocket::bind(&path) {
            Ok(socket) => Some(socket),
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "other processes cannot reach this one over its socket");
                None
            }
        }
    }
}
