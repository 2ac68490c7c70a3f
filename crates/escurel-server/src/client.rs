//! Talking to a server: to the owner of a folder over its Unix socket, to
//! others over the network.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::{Request, Response, header};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

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
    let mut sender = speak(connect(socket).await?).await?;
    let host = header::HeaderValue::from_static("localhost");
    request.headers_mut().insert(header::HOST, host);
    Ok(sender.send_request(request).await?)
}

async fn speak<S>(stream: S) -> Result<SendRequest<Full<Bytes>>, Unreachable>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(async move {
        // Its failure also fails the request, which reports it.
        let _ = connection.await;
    });
    Ok(sender)
}

/// Sends one request and reads the whole answer.
pub async fn post(socket: &Path, path: &str, body: Bytes) -> Result<(u16, Bytes), Unreachable> {
    let response = send(socket, path, body).await?;
    let status = response.status().as_u16();
    Ok((status, response.into_body().collect().await?.to_bytes()))
}

/// A connection over the network that stays open from call to call.
pub struct Connection {
    sender: SendRequest<Full<Bytes>>,
    address: SocketAddr,
}

impl Connection {
    pub async fn open(address: SocketAddr) -> Result<Connection, Unreachable> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let sender = speak(stream).await?;
        Ok(Connection { sender, address })
    }

    /// Sends one request and reads the whole answer.
    pub async fn post(&mut self, path: &str, body: Bytes) -> Result<(u16, Bytes), Unreachable> {
        let request = Request::post(path)
            .header(header::HOST, self.address.to_string())
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::new(body))?;
        self.sender.ready().await?;
        let response = self.sender.send_request(request).await?;
        let status = response.status().as_u16();
        Ok((status, response.into_body().collect().await?.to_bytes()))
    }
}
