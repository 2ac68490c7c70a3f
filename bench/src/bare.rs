//! The least that an HTTP handler can cost: reads the body, returns bytes.

use std::time::Duration;

use anyhow::{Context, Result};
use axum::Router;
use axum::extract::Path;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::{get, post};
use bytes::Bytes;

/// Nothing that is compared with is longer.
const LONGEST: usize = 32 << 20;

/// Serves on the port named by `ESCUREL_BENCH_PORT`, threads as the product has.
pub fn serve() -> Result<()> {
    let port = std::env::var("ESCUREL_BENCH_PORT").context("started by the bench alone")?;
    let port: u16 = port.parse()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let app = Router::new()
            .route("/readyz", get(|| async { "ok" }))
            .route("/size/{bytes}", post(body));
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
        // Ends by itself should the bench be killed.
        tokio::select! {
            served = axum::serve(listener, app) => served?,
            () = tokio::time::sleep(Duration::from_secs(7200)) => {}
        }
        Ok(())
    })
}

/// Takes the request's body in, as any handler must, before it answers.
async fn body(Path(bytes): Path<usize>, _request: Bytes) -> impl IntoResponse {
    (
        [(CONTENT_TYPE, "application/json; charset=utf-8")],
        vec![b' '; bytes.min(LONGEST)],
    )
}
