//! `/mcp` and the plain endpoints.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use escurel_core::Code;
use escurel_core::api::Status;
use escurel_tools::Run;
use serde_json::json;

use super::problem::{json_response, problem};
use super::{App, body};
use crate::mcp::{self, Context, Headers, Reply, RpcError, Step, Work};
use crate::service::Service;

/// Bodies up to this size are parsed on the thread that received them.
const SMALL: usize = 64 * 1024;

pub async fn mcp(State(app): State<App>, request: Request) -> Response {
    if let Some(refused) = content_type(request.headers()) {
        return refused;
    }
    let limit = app.limits.request_time;
    match tokio::time::timeout(limit, answer(&app, request)).await {
        Ok(response) => response,
        Err(_) => unreadable(
            408,
            "request_timeout",
            "The request did not arrive in time.",
        ),
    }
}

async fn answer(app: &App, request: Request) -> Response {
    let (parts, incoming) = request.into_parts();
    let bytes = match body::read(incoming, app.limits.body_bytes).await {
        Ok(bytes) => bytes,
        Err(unread) => return unreadable(unread.status, unread.code, &unread.message),
    };
    reply(app, &parts.headers, bytes).await.into_response()
}

async fn reply(app: &App, headers: &HeaderMap, bytes: Bytes) -> Reply {
    if bytes.len() > SMALL {
        let (app, headers) = (app.clone(), headers.clone());
        return blocking(None, app.limits, move || {
            mcp::handle(context(&app), protocol(&app, &headers).as_ref(), &bytes)
        })
        .await;
    }
    match mcp::begin(context(app), protocol(app, headers).as_ref(), &bytes) {
        Step::Done(reply) => reply,
        Step::Work(work) if work.run() == Run::Inline => work.finish(context(app)),
        Step::Work(work) => {
            let id = work.id().to_owned();
            let app = app.clone();
            blocking(Some(&id), app.limits, move || work.finish(context(&app))).await
        }
    }
}

fn context(app: &App) -> Context<'_> {
    Context {
        service: &app.service,
        caller: &app.caller,
    }
}

/// Runs where blocking is allowed; the caller gets an answer in bounded time.
async fn blocking(
    id: Option<&str>,
    limits: super::Limits,
    work: impl FnOnce() -> Reply + Send + 'static,
) -> Reply {
    match tokio::time::timeout(limits.request_time, tokio::task::spawn_blocking(work)).await {
        Ok(Ok(reply)) => reply,
        Ok(Err(_)) => Work::give_up(
            id,
            &unfinished(Code::Internal, "The call failed unexpectedly."),
        ),
        Err(_) => Work::give_up(
            id,
            &unfinished(Code::IndexBehind, "The call took too long."),
        ),
    }
}

fn unfinished(code: Code, message: &str) -> RpcError {
    let refusal = escurel_core::Refusal::new(code, message);
    RpcError::new(
        -32603,
        refusal.to_string(),
        escurel_tools::refusal_json(&refusal),
    )
}

/// The Unix socket carries messages of stdio servers, which have no headers.
fn protocol<'a>(app: &App, headers: &'a HeaderMap) -> Option<Headers<'a>> {
    app.guard.as_ref()?;
    let text = |name: &str| {
        headers
            .get(name)
            .map(|value| value.to_str().unwrap_or("\u{fffd}").trim())
    };
    Some(Headers {
        version: text("mcp-protocol-version"),
        method: text("mcp-method"),
        name: text("mcp-name"),
    })
}

/// Absent is fine; another type than JSON is not.
fn content_type(headers: &HeaderMap) -> Option<Response> {
    let value = headers
        .get(header::CONTENT_TYPE)?
        .to_str()
        .unwrap_or_default()
        .to_ascii_lowercase();
    let essence = value.split(';').next().unwrap_or_default().trim();
    let json = essence == "application/json" || essence.ends_with("+json");
    (!json).then(|| unreadable(415, "content_type", "Send the body as application/json."))
}

/// JSON-RPC clients look for their own error shape; there is no id to echo yet.
fn unreadable(status: u16, code: &str, message: &str) -> Response {
    let error =
        RpcError::new(-32600, message, json!({"code": code, "retryable": false})).status(status);
    Work::give_up(None, &error).into_response()
}

impl IntoResponse for Reply {
    fn into_response(self) -> Response {
        match self.body {
            Some(body) => json_response(self.status, body),
            None => StatusCode::from_u16(self.status)
                .unwrap_or(StatusCode::ACCEPTED)
                .into_response(),
        }
    }
}

/// There is no stream to open and no session to end.
pub async fn mcp_other() -> Response {
    not_allowed("POST, OPTIONS", "/mcp takes POST requests only.")
}

pub async fn only_post() -> Response {
    not_allowed("POST, OPTIONS", "This path takes POST requests only.")
}

pub async fn only_get() -> Response {
    not_allowed("GET, HEAD, OPTIONS", "This path takes GET requests only.")
}

fn not_allowed(allow: &'static str, message: &str) -> Response {
    let mut response = problem(405, "method_not_allowed", message);
    response
        .headers_mut()
        .insert(header::ALLOW, HeaderValue::from_static(allow));
    response
}

pub async fn nothing_here() -> Response {
    problem(
        404,
        "not_found",
        "There is nothing at this path. MCP is at /mcp, tools are at /api/tools/{name}, the list of routes is /openapi.json.",
    )
}

pub async fn openapi(State(app): State<App>) -> Response {
    json_response(200, app.service.openapi().to_string())
}

pub async fn healthz() -> Response {
    json_response(200, r#"{"status":"alive"}"#.to_owned())
}

pub async fn readyz(State(app): State<App>) -> Response {
    let status = status_of(&app, |service| service.kb.overview()).await;
    let body = json!({
        "ready": status.ready,
        "phase": status.phase,
        "done": status.done,
        "total": status.total,
        "pages": status.pages,
        "held_deletions": status.held_deletions,
        "vectors": {
            "state": status.vectors.state,
            "waiting_pages": status.vectors.waiting,
            "reason": status.vectors.reason,
        },
        "warnings": status.notices(),
    });
    json_response(if status.ready { 200 } else { 503 }, body.to_string())
}

async fn status_of(app: &App, ask: fn(&Service) -> Status) -> Status {
    let service = Arc::clone(&app.service);
    tokio::task::spawn_blocking(move || ask(&service))
        .await
        .unwrap_or_default()
}

pub async fn version() -> Response {
    let versions = [mcp::MODERN, mcp::LEGACY].concat();
    let body = json!({"name": "escurel", "version": env!("CARGO_PKG_VERSION"), "mcp": versions});
    json_response(200, body.to_string())
}

pub async fn metrics(State(app): State<App>) -> Response {
    let status = status_of(&app, Service::status).await;
    let text = app.service.metrics.scrape(&status);
    let kind =
        HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");
    ([(header::CONTENT_TYPE, kind)], Body::from(text)).into_response()
}
