//! Talking to the owner of a folder over its Unix socket.

use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::{Request, Response, header};
use hyper_util::rt::TokioIo;

use crate::boot::connect;

/// The owner could not be reached, or went away before it answered.
#[derive(Debug, thiserror::Error)]
pub enum Unreachable {
    #[error("the owner does not listen: {0}")]
    Connect(#[from] std::io::Error),
    #[error("the owner went away: {0}")]
    Broken(#[from] hyper::Error),
    #[error("the request cannot be sent: {0}")]
    Request(#[from] hyper::http::Error),
}

/// Does the owner answer at all within `patience`? One that is suspended accepts
/// connections and never does.
pub async fn answers(socket: &Path, patience: Duration) -> bool {
    let request = Request::get("/healthz").body(Full::default());
    let asked = async { Ok::<_, Unreachable>(exchange(socket, request?).await?.status()) };
    matches!(tokio::time::timeout(patience, asked).await, Ok(Ok(status)) if status.is_success())
}

/// Sends one request; the answer's body is still to be read.
pub async fn send(
    socket: &Path,
    path: &str,
    body: Bytes,
) -> Result<Response<Incoming>, Unreachable> {
    let request = Request::post(path)
        .header(header::CONTENT_TYPE, "application/json")
        .body(Full::new(body))?;
    exchange(socket, request).await
}

async fn exchange(
    socket: &Path,
    mut request: Request<Full<Bytes>>,
) -> Result<Response<Incoming>, Unreachable> {
    let stream = connect(socket).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(async move {
        // Its failure also fails the request, which reports it.
        let _ = connection.await;
    });
    let host = header::HeaderValue::from_static("localhost");
    request.headers_mut().insert(header::HOST, host);
    Ok(sender.send_request(request).await?)
}

/// Sends one request and reads the whole answer.
pub async fn post(socket: &Path, path: &str, body: Bytes) -> Result<(u16, Bytes), Unreachable> {
    let response = send(socket, path, body).await?;
    let status = response.status().as_u16();
    Ok((status, response.into_body().collect().await?.to_bytes()))
}
