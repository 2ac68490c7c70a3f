//! Accepts connections and ends them in an orderly way.
//!
//! Invariant: a client that sends nothing, or too slowly, holds one slot for a
//! bounded time and never the listener.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;

use super::Stop;

/// Requests that are still running get this long after a signal.
const GRACE: Duration = Duration::from_secs(10);
/// A connection may be idle, or take for the head of a request, this long.
const IDLE: Duration = Duration::from_secs(120);
/// More connections wait to be accepted.
const CONNECTIONS: usize = 4096;
/// When the process has no file handle left.
const BREATH: Duration = Duration::from_millis(50);

/// Something that connections come from.
trait Door {
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;
    /// Whether idle connections end; those of our own processes do not.
    const BOUNDED: bool;
    async fn accept(&self) -> io::Result<Self::Stream>;
}

impl Door for TcpListener {
    type Stream = tokio::net::TcpStream;
    const BOUNDED: bool = true;

    async fn accept(&self) -> io::Result<Self::Stream> {
        let (stream, _) = TcpListener::accept(self).await?;
        // Small answers must not wait for more to send.
        let _ = stream.set_nodelay(true);
        Ok(stream)
    }
}

impl Door for UnixListener {
    type Stream = tokio::net::UnixStream;
    const BOUNDED: bool = false;

    async fn accept(&self) -> io::Result<Self::Stream> {
        Ok(UnixListener::accept(self).await?.0)
    }
}

/// Serves until `stop`, then lets running requests finish.
pub async fn serve_tcp(listener: TcpListener, routes: Router, stop: Stop) {
    serve(listener, routes, stop).await;
}

pub async fn serve_unix(listener: UnixListener, routes: Router, stop: Stop) {
    serve(listener, routes, stop).await;
}

async fn serve<D: Door>(door: D, routes: Router, stop: Stop) {
    let slots = Arc::new(Semaphore::new(CONNECTIONS));
    let mut open = JoinSet::new();
    loop {
        let slot = tokio::select! {
            slot = Arc::clone(&slots).acquire_owned() => slot,
            () = stop.clone().wait() => break,
        };
        let Ok(slot) = slot else { break };
        tokio::select! {
            accepted = door.accept() => match accepted {
                Ok(stream) => {
                    open.spawn(connection(stream, D::BOUNDED, routes.clone(), stop.clone(), slot));
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(BREATH).await;
                }
            },
            // Forgets connections that have ended.
            Some(_) = open.join_next(), if !open.is_empty() => {}
            () = stop.clone().wait() => break,
        }
    }
    // Nobody can connect any more.
    drop(door);
    let ended = async { while open.join_next().await.is_some() {} };
    if tokio::time::timeout(GRACE, ended).await.is_err() {
        tracing::warn!("some requests were still running and are given up");
    }
}

async fn connection(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    bounded: bool,
    routes: Router,
    stop: Stop,
    _slot: OwnedSemaphorePermit,
) {
    let mut builder = http1::Builder::new();
    if bounded {
        builder.timer(TokioTimer::new()).header_read_timeout(IDLE);
    }
    let serving = builder
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(routes))
        .with_upgrades();
    tokio::pin!(serving);
    let outcome = tokio::select! {
        outcome = serving.as_mut() => outcome,
        () = stop.wait() => {
            serving.as_mut().graceful_shutdown();
            serving.await
        }
    };
    if let Err(error) = outcome {
        // Clients that go away are everyday life.
        tracing::debug!(%error, "a connection ended early");
    }
}
