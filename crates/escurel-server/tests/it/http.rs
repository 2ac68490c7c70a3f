//! Routes, limits, hosts and origins.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, Response};
use bytes::Bytes;
use escurel_access::Caller;
use escurel_server::Sockets;
use escurel_server::boot::Stop;
use escurel_server::http::{App, Guard, Limits, local_router, router};
use futures_util::stream;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::support::{SERVICE, meta};

fn app() -> App {
    let limits = Limits {
        body_bytes: 200_000,
        request_time: Duration::from_secs(20),
    };
    let guard = Guard::new(&["kb.example".into()], &["https://app.example".into()]);
    App {
        service: Arc::clone(&SERVICE),
        limits,
        caller: Arc::new(Caller::local()),
        guard: Some(Arc::new(guard)),
        sockets: Sockets::of(&SERVICE.kb, Stop::default()),
    }
}

async fn send(request: Request<Body>) -> Response<Body> {
    router(app()).oneshot(request).await.unwrap()
}

fn build(
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: impl Into<Body>,
) -> Request<Body> {
    let mut request = Request::builder().method(method).uri(path);
    if !headers.iter().any(|(name, _)| *name == "host") {
        request = request.header("host", "localhost:8080");
    }
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(body.into()).unwrap()
}

async fn json_of(response: Response<Body>) -> (u16, Value) {
    let status = response.status().as_u16();
    let kind = response
        .headers()
        .get("content-type")
        .map(|v| v.to_str().unwrap().to_owned());
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    if bytes.is_empty() {
        return (status, Value::Null);
    }
    assert_eq!(kind.as_deref(), Some("application/json; charset=utf-8"));
    (status, serde_json::from_slice(&bytes).unwrap())
}

pub async fn post(path: &str, body: &str) -> (u16, Value) {
    json_of(
        send(build(
            "POST",
            path,
            &[("content-type", "application/json")],
            body.to_owned(),
        ))
        .await,
    )
    .await
}

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

#[tokio::test]
async fn both_spellings_and_every_polite_client() {
    for path in ["/mcp", "/mcp/", "/mcp?x=1"] {
        assert_eq!(
            post(path, PING).await,
            (200, json!({"jsonrpc": "2.0", "id": 1, "result": {}}))
        );
    }
    for headers in [
        vec![],
        vec![("accept", "*/*")],
        vec![("accept", "application/json")],
        vec![("accept", "application/json, text/event-stream")],
        vec![("content-type", "application/json; charset=utf-8")],
        vec![
            ("mcp-session-id", "from-before-the-restart"),
            ("last-event-id", "5"),
        ],
        vec![("mcp-protocol-version", "2025-03-26")],
    ] {
        let (status, body) = json_of(send(build("POST", "/mcp", &headers, PING)).await).await;
        assert_eq!((status, &body["result"]), (200, &json!({})), "{headers:?}");
    }
    let (status, _) = json_of(
        send(build(
            "POST",
            "/mcp",
            &[("content-type", "text/plain")],
            PING,
        ))
        .await,
    )
    .await;
    assert_eq!(status, 415);
}

#[tokio::test]
async fn notifications_have_no_body_and_no_type() {
    let response = send(build(
        "POST",
        "/mcp",
        &[],
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    ))
    .await;
    assert_eq!(response.status(), 202);
    assert!(response.headers().get("content-type").is_none());
    assert!(
        response
            .into_body()
            .collect()
            .await
            .unwrap()
            .to_bytes()
            .is_empty()
    );
}

#[tokio::test]
async fn other_methods_and_paths() {
    for method in ["GET", "DELETE", "PUT", "PATCH", "HEAD"] {
        for path in ["/mcp", "/mcp/"] {
            let response = send(build(method, path, &[], "")).await;
            assert_eq!(response.status(), 405, "{method} {path}");
            assert!(
                response.headers()["allow"]
                    .to_str()
                    .unwrap()
                    .starts_with("POST")
            );
        }
    }
    for path in [
        "/MCP/",
        "/mcp//",
        "//mcp",
        "/mcp/x",
        "/",
        "/.well-known/oauth-protected-resource",
        "/api",
        "/api/tools",
    ] {
        let (status, body) = post(path, PING).await;
        assert_eq!(
            (status, body["error"]["code"].as_str()),
            (404, Some("not_found")),
            "{path}"
        );
    }
    let response = send(build("POST", "/healthz", &[], "")).await;
    assert_eq!(
        (
            response.status().as_u16(),
            response.headers()["allow"].to_str().unwrap()
        ),
        (405, "GET, HEAD, OPTIONS")
    );
}

#[tokio::test]
async fn plain_endpoints() {
    let get = |path| async move { json_of(send(build("GET", path, &[], "")).await).await };
    assert_eq!(get("/healthz").await.0, 200);
    let (status, ready) = get("/readyz").await;
    assert_eq!((status, ready["ready"].as_bool()), (200, Some(true)));
    let off = json!({"state": "off", "waiting_pages": 0, "reason": "no embedding provider is set"});
    assert_eq!(ready["vectors"], off);
    assert_eq!(
        get("/version").await.1["version"],
        env!("CARGO_PKG_VERSION")
    );
    let openapi = get("/openapi.json").await.1;
    assert_eq!(openapi["openapi"], "3.1.0");
    assert!(openapi["paths"]["/api/tools/search"]["post"].is_object());
    assert_eq!(post("/api/tools/list_skills", "").await.0, 200);
    let response = send(build("GET", "/metrics", &[], "")).await;
    let text = String::from_utf8(
        response
            .into_body()
            .collect()
            .await
            .unwrap()
            .to_bytes()
            .to_vec(),
    )
    .unwrap();
    for name in [
        "escurel_tool_calls_total{tool=\"list_skills\",code=\"ok\"}",
        "escurel_tool_call_seconds_bucket",
        "escurel_pages ",
        "escurel_index_lag_records{view=\"text\"}",
        "escurel_held_deletions 0",
        "escurel_vector_lane_on 0",
        "escurel_pages_without_vectors 0",
        "escurel_embedded_texts_total 0",
    ] {
        assert!(text.contains(name), "{name}\n{text}");
    }
}

#[tokio::test]
async fn tools_over_plain_http() {
    let (status, body) = post("/api/tools/search", r#"{"q":"renewal"}"#).await;
    assert!(status == 200 && body["hits"].is_array(), "{body}");
    for (path, body, want, code) in [
        ("/api/tools/serch", "{}", 404, "unknown_tool"),
        ("/api/tools/search", "{", 400, "parse_error"),
        ("/api/tools/search", "[]", 400, "parse_error"),
        (
            "/api/tools/search",
            r#"{"q":"x","kk":1}"#,
            400,
            "unknown_argument",
        ),
        (
            "/api/tools/list_instances",
            r#"{"skill_id":"custmer"}"#,
            404,
            "skill_not_found",
        ),
    ] {
        let (status, answer) = post(path, body).await;
        assert_eq!(
            (status, answer["error"]["code"].as_str()),
            (want, Some(code)),
            "{path} {answer}"
        );
        assert!(answer["error"]["message"].is_string() && answer["error"]["retryable"] == false);
    }
}

#[tokio::test]
async fn hosts_and_origins() {
    for (headers, want) in [
        (vec![("host", "localhost")], 200),
        (vec![("host", "127.0.0.1:8080")], 200),
        (vec![("host", "[::1]:8080")], 200),
        (vec![("host", "kb.example:443")], 200),
        (vec![("host", "evil.example")], 403),
        (vec![("host", "localhost.evil.example:8080")], 403),
        (vec![("origin", "http://localhost:5173")], 200),
        (vec![("origin", "https://app.example")], 200),
        (vec![("origin", "http://evil.example")], 403),
        (vec![("origin", "null")], 403),
    ] {
        let response = send(build("POST", "/mcp", &headers, PING)).await;
        let allowed = response
            .headers()
            .get("access-control-allow-origin")
            .cloned();
        let (status, body) = json_of(response).await;
        assert_eq!(status, want, "{headers:?} {body}");
        if headers[0].0 == "origin" {
            assert_eq!(allowed.is_some(), want == 200, "{headers:?}");
        }
        if want == 403 {
            assert!(
                body["error"]["message"]
                    .as_str()
                    .unwrap()
                    .contains("ESCUREL_ALLOWED_"),
                "{body}"
            );
        }
    }
    let absolute = build("POST", "http://evil.example/mcp", &[], PING);
    assert_eq!(send(absolute).await.status(), 403);
    let probe = build("GET", "/healthz", &[("host", "10.1.2.3:8080")], "");
    assert_eq!(send(probe).await.status(), 200);
}

#[tokio::test]
async fn preflight() {
    let asks = [
        ("origin", "https://app.example"),
        ("access-control-request-method", "POST"),
    ];
    let response = send(build("OPTIONS", "/mcp", &asks, "")).await;
    assert_eq!(response.status(), 204);
    let headers = response.headers();
    assert_eq!(
        headers["access-control-allow-origin"],
        "https://app.example"
    );
    for name in [
        "authorization",
        "content-type",
        "accept",
        "mcp-protocol-version",
        "mcp-method",
        "mcp-name",
        "mcp-session-id",
        "last-event-id",
    ] {
        assert!(
            headers["access-control-allow-headers"]
                .to_str()
                .unwrap()
                .contains(name),
            "{name}"
        );
    }
    assert_eq!(
        send(build(
            "OPTIONS",
            "/mcp",
            &[("origin", "https://evil.example")],
            ""
        ))
        .await
        .status(),
        403
    );
}

#[tokio::test]
async fn bodies_in_pieces_and_bodies_too_large() {
    let filler = " ".repeat(100_000);
    let text = format!("{filler}{PING}");
    let pieces = text
        .into_bytes()
        .into_iter()
        .map(|b| Ok::<_, std::io::Error>(Bytes::from(vec![b])));
    let (status, body) = json_of(
        send(build(
            "POST",
            "/mcp",
            &[],
            Body::from_stream(stream::iter(pieces)),
        ))
        .await,
    )
    .await;
    assert_eq!((status, &body["result"]), (200, &json!({})));
    for path in ["/mcp", "/api/tools/search"] {
        let (status, body) =
            json_of(send(build("POST", path, &[], vec![b' '; 200_001])).await).await;
        assert_eq!(status, 413, "{body}");
        assert!(body.to_string().contains("body_too_large"));
    }
    let broken = stream::iter([
        Ok(Bytes::from_static(b"{")),
        Err(std::io::Error::other("gone")),
    ]);
    let (status, _) =
        json_of(send(build("POST", "/mcp", &[], Body::from_stream(broken))).await).await;
    assert_eq!(status, 400);
}

#[tokio::test]
async fn modern_headers_are_read() {
    let body = json!({"jsonrpc": "2.0", "id": "a", "method": "tools/list", "params": {"_meta": meta("2026-07-28")}}).to_string();
    let headers = [
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "tools/list"),
    ];
    let (status, answer) = json_of(send(build("POST", "/mcp", &headers, body.clone())).await).await;
    assert_eq!((status, answer["id"].as_str()), (200, Some("a")));
    assert!(answer["result"]["ttlMs"].is_u64());
    let (status, _) = json_of(send(build("POST", "/mcp", &headers[..1], body)).await).await;
    assert_eq!(status, 400);
}

#[tokio::test]
async fn upkeep_is_for_the_socket_only() {
    assert_eq!(post("/local/verify", "").await.0, 404);
    let mut app = app();
    app.guard = None;
    let response = local_router(app)
        .oneshot(build("POST", "/local/verify", &[("host", "x")], ""))
        .await
        .unwrap();
    let (status, report) = json_of(response).await;
    assert_eq!(status, 200, "{report}");
    assert!(report["findings"].is_array());
}
