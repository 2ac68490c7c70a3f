//! Keeps web pages of strangers away: host and origin allowlists, CORS.
//!
//! A browser on this machine can be made to talk to any local port. Loopback
//! names are allowed by default, everything else by configuration only.

use std::net::IpAddr;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::App;
use super::problem::problem;

const ALLOW_HEADERS: &str = "authorization, content-type, accept, mcp-protocol-version, mcp-method, mcp-name, mcp-session-id, last-event-id";

/// Names this server may be called by, and web origins that may call it.
#[derive(Clone, Debug, Default)]
pub struct Guard {
    /// `host` or `host:port`, lower case.
    hosts: Vec<String>,
    /// `scheme://host[:port]`, lower case.
    origins: Vec<String>,
}

impl Guard {
    pub fn new(hosts: &[String], origins: &[String]) -> Guard {
        let lower = |list: &[String]| {
            list.iter()
                .map(|s| s.trim().trim_end_matches('/').to_ascii_lowercase())
                .collect()
        };
        Guard {
            hosts: lower(hosts),
            origins: lower(origins),
        }
    }

    fn host_allowed(&self, host: &str) -> bool {
        let host = host.to_ascii_lowercase();
        let name = name_of(&host);
        is_loopback(name)
            || self
                .hosts
                .iter()
                .any(|allowed| *allowed == host || allowed == name)
    }

    fn origin_allowed(&self, origin: &str) -> bool {
        let origin = origin.to_ascii_lowercase();
        if self.origins.contains(&origin) {
            return true;
        }
        let authority = origin
            .strip_prefix("http://")
            .or_else(|| origin.strip_prefix("https://"));
        authority.is_some_and(|authority| {
            is_loopback(name_of(authority)) || self.hosts.iter().any(|h| h == authority)
        })
    }
}

/// The host of an authority, without port and brackets.
fn name_of(authority: &str) -> &str {
    if let Some(rest) = authority.strip_prefix('[') {
        return match rest.split_once(']') {
            Some((name, tail)) if tail.is_empty() || port(tail) => name,
            _ => "",
        };
    }
    match authority.split_once(':') {
        Some((name, _)) if port(&authority[name.len()..]) => name,
        Some(_) => "",
        None => authority,
    }
}

fn port(tail: &str) -> bool {
    tail.strip_prefix(':')
        .is_some_and(|p| p.parse::<u16>().is_ok() && p.bytes().all(|b| b.is_ascii_digit()))
}

fn is_loopback(name: &str) -> bool {
    name == "localhost" || name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

pub async fn check(State(app): State<App>, request: Request, next: Next) -> Response {
    let Some(guard) = app.guard.as_deref() else {
        return next.run(request).await;
    };
    let origin = match admit(guard, &request) {
        Ok(origin) => origin,
        Err(refused) => return *refused,
    };
    let mut response = match *request.method() {
        Method::OPTIONS => preflight(),
        _ => next.run(request).await,
    };
    if let Some(origin) = origin {
        allow(response.headers_mut(), origin);
    }
    response
}

/// The origin to name in the answer, if the request came from a web page.
fn admit(guard: &Guard, request: &Request) -> Result<Option<HeaderValue>, Box<Response>> {
    let host = request
        .uri()
        .authority()
        .map(|a| a.as_str())
        .or_else(|| text(request.headers(), header::HOST));
    if !probe(request.uri().path()) {
        match host {
            None => {
                return Err(Box::new(problem(
                    400,
                    "host_missing",
                    "The request has no Host header.",
                )));
            }
            Some(host) if !guard.host_allowed(host) => {
                return Err(Box::new(foreign("host", "ESCUREL_ALLOWED_HOSTS", host)));
            }
            Some(_) => {}
        }
    }
    let Some(value) = request.headers().get(header::ORIGIN) else {
        return Ok(None);
    };
    let origin = value.to_str().unwrap_or_default();
    if !guard.origin_allowed(origin) {
        return Err(Box::new(foreign(
            "origin",
            "ESCUREL_ALLOWED_ORIGINS",
            origin,
        )));
    }
    Ok(Some(value.clone()))
}

/// Asked by address by orchestrators, and harmless.
fn probe(path: &str) -> bool {
    matches!(path, "/healthz" | "/readyz")
}

fn text(headers: &HeaderMap, name: header::HeaderName) -> Option<&str> {
    headers
        .get(name)
        .map(|value| value.to_str().unwrap_or_default())
}

fn foreign(what: &str, setting: &str, value: &str) -> Response {
    let value: String = value.chars().take(100).collect();
    tracing::warn!(
        what,
        value,
        "refused a request; allow it with {setting} if it is yours"
    );
    let message =
        format!("The {what} {value:?} is not allowed here. Add it to {setting} if it is yours.");
    problem(403, &format!("{what}_forbidden"), &message)
}

/// Answered before any authentication: browsers send no credentials with it.
fn preflight() -> Response {
    let headers = [
        (header::ALLOW, "POST, OPTIONS"),
        (header::ACCESS_CONTROL_ALLOW_METHODS, "GET, POST, OPTIONS"),
        (header::ACCESS_CONTROL_ALLOW_HEADERS, ALLOW_HEADERS),
        (header::ACCESS_CONTROL_MAX_AGE, "600"),
    ];
    (axum::http::StatusCode::NO_CONTENT, headers).into_response()
}

fn allow(headers: &mut HeaderMap, origin: HeaderValue) {
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(
        header::ACCESS_CONTROL_EXPOSE_HEADERS,
        HeaderValue::from_static("mcp-protocol-version, www-authenticate"),
    );
    headers.append(header::VARY, HeaderValue::from_static("origin"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_and_configured_hosts() {
        let guard = Guard::new(
            &["kb.example".into(), "Proxy.example:8443".into()],
            &["https://app.example/".into()],
        );
        for host in [
            "localhost",
            "LOCALHOST:1",
            "127.0.0.1:8080",
            "[::1]",
            "[::1]:9",
            "kb.example",
            "kb.example:1",
            "proxy.example:8443",
        ] {
            assert!(guard.host_allowed(host), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil",
            "proxy.example",
            "localhost:x",
            "[::1",
            "[::1]x",
            "::1:80x",
            "a@localhost",
            "localhost:80:80",
        ] {
            assert!(!guard.host_allowed(host), "{host}");
        }
    }

    #[test]
    fn origins() {
        let guard = Guard::new(
            &["kb.example:8443".into()],
            &["https://app.example/".into()],
        );
        for origin in [
            "http://localhost:5173",
            "https://127.0.0.1",
            "http://[::1]:1",
            "https://app.example",
            "https://kb.example:8443",
        ] {
            assert!(guard.origin_allowed(origin), "{origin}");
        }
        for origin in [
            "null",
            "",
            "http://evil.example",
            "http://localhost.evil",
            "https://app.example:444",
            "http://app.example",
            "file://",
            "http://localhost@evil",
        ] {
            assert!(!guard.origin_allowed(origin), "{origin}");
        }
    }
}
