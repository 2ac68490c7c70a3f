//! One keep-alive connection to a server.

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{ACCEPT, CONTENT_TYPE, HOST};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

pub struct Client {
    sender: SendRequest<Full<Bytes>>,
    host: String,
}

impl Client {
    pub async fn connect(port: u16) -> Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port)).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await?;
        tokio::spawn(async move {
            // A broken connection shows in the request that used it.
            let _ = connection.await;
        });
        Ok(Self {
            sender,
            host: format!("127.0.0.1:{port}"),
        })
    }

    /// Sends a body and returns the whole answer.
    pub async fn post(&mut self, path: &str, body: Bytes) -> Result<Bytes> {
        let request = Request::post(path)
            .header(HOST, &self.host)
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json, text/event-stream")
            .header("MCP-Protocol-Version", "2025-11-25")
            .body(Full::new(body))?;
        self.sender.ready().await?;
        let response = self.sender.send_request(request).await?;
        let status = response.status();
        let body = response.into_body().collect().await?.to_bytes();
        ensure!(status.is_success(), "status {status}: {}", text(&body));
        Ok(body)
    }

    /// The status of a plain GET.
    pub async fn get(&mut self, path: &str) -> Result<u16> {
        let request = Request::get(path)
            .header(HOST, &self.host)
            .body(Full::new(Bytes::new()))?;
        let response = self.sender.send_request(request).await?;
        let status = response.status().as_u16();
        response.into_body().collect().await?;
        Ok(status)
    }

    /// Calls a tool; a refusal is an error.
    pub async fn call(&mut self, request: Bytes) -> Result<serde_json::Value> {
        let answer = self.post("/mcp", request).await?;
        accepted(&answer)
    }
}

/// The structured result of a successful call.
pub fn accepted(answer: &[u8]) -> Result<serde_json::Value> {
    let mut message: serde_json::Value = serde_json::from_slice(answer)?;
    ensure!(message["error"].is_null(), "error: {}", message["error"]);
    let result = message.get_mut("result").context("no result")?.take();
    ensure!(
        result["isError"] != true,
        "refused: {}",
        result["content"][0]["text"]
    );
    Ok(result["structuredContent"].clone())
}

/// The body of a `tools/call`.
pub fn request(tool: &str, arguments: &serde_json::Value) -> Bytes {
    let message = serde_json::json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": tool, "arguments": arguments},
    });
    Bytes::from(message.to_string())
}

fn text(body: &[u8]) -> String {
    String::from_utf8_lossy(body).chars().take(300).collect()
}
