//! HTTP: routes, limits, and the plain endpoints around MCP.
//!
//! Answers JSON for every path and method, refusals included, and never
//! redirects. Invariant: on TCP nothing is read of a request before its host
//! and origin have been found acceptable.

mod body;
mod guard;
mod local;
mod problem;
mod routes;
mod tools;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::{any, get, post};
use escurel_access::Caller;

use crate::{Service, Sockets, ws};
pub use guard::Guard;
pub(crate) use problem::problem;

/// What the routes work with.
#[derive(Clone)]
pub struct App {
    pub service: Arc<Service>,
    pub limits: Limits,
    /// Who calls. Without a verifier everybody is the person at this machine.
    pub caller: Arc<Caller>,
    /// `None` on the Unix socket: its file permissions are the check.
    pub guard: Option<Arc<Guard>>,
    pub sockets: Sockets,
}

#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub body_bytes: usize,
    pub request_time: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            body_bytes: 8 << 20,
            request_time: Duration::from_secs(60),
        }
    }
}

/// Everything for the network.
pub fn router(app: App) -> Router {
    shared()
        .layer(from_fn_with_state(app.clone(), guard::check))
        .with_state(app)
}

/// The same for the Unix socket, and what only the machine's own user may do.
pub fn local_router(app: App) -> Router {
    shared()
        .route("/local/verify", post(local::verify))
        .route("/local/rebuild", post(local::rebuild))
        .route("/local/confirm-deletions", post(local::confirm_deletions))
        .route("/local/journal", post(local::journal))
        .with_state(app)
}

fn shared() -> Router<App> {
    Router::new()
        .route("/mcp", post(routes::mcp).fallback(routes::mcp_other))
        .route("/mcp/", post(routes::mcp).fallback(routes::mcp_other))
        .route(
            "/api/tools/{name}",
            post(tools::call).fallback(routes::only_post),
        )
        .route(
            "/openapi.json",
            get(routes::openapi).fallback(routes::only_get),
        )
        .route("/ws", get(ws::upgrade).fallback(routes::only_get))
        .route("/healthz", get(routes::healthz).fallback(routes::only_get))
        .route("/readyz", get(routes::readyz).fallback(routes::only_get))
        .route("/version", get(routes::version).fallback(routes::only_get))
        .route("/metrics", get(routes::metrics).fallback(routes::only_get))
        .fallback(any(routes::nothing_here))
}

/// Only `/metrics` and the probes, for a listener of their own.
pub fn metrics_router(app: App) -> Router {
    Router::new()
        .route("/metrics", get(routes::metrics).fallback(routes::only_get))
        .route("/healthz", get(routes::healthz).fallback(routes::only_get))
        .route("/readyz", get(routes::readyz).fallback(routes::only_get))
        .fallback(any(routes::nothing_here))
        .with_state(app)
}
