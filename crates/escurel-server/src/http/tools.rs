//! `POST /api/tools/{name}`: arguments in, result out, the same dispatch as MCP.

use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use bytes::Bytes;
use escurel_core::{Code, Refusal};
use escurel_tools::{DispatchError, Run};
use serde_json::{Value, json};

use super::problem::{json_response, of_dispatch, problem};
use super::{App, body};

/// JSON text, or why not.
type Outcome = Result<String, DispatchError>;

pub async fn call(
    State(app): State<App>,
    name: Result<Path<String>, PathRejection>,
    request: Request,
) -> Response {
    let Ok(Path(name)) = name else {
        return problem(404, "unknown_tool", "The path does not name a tool.");
    };
    let limit = app.limits.request_time;
    match tokio::time::timeout(limit, answer(app, name, request)).await {
        Ok(response) => response,
        Err(_) => problem(
            504,
            "request_timeout",
            "The call took too long. Repeat it in a moment.",
        ),
    }
}

async fn answer(app: App, name: String, request: Request) -> Response {
    let bytes = match body::read(request.into_body(), app.limits.body_bytes).await {
        Ok(bytes) => bytes,
        Err(unread) => return problem(unread.status, unread.code, &unread.message),
    };
    let arguments = match arguments(&bytes) {
        Ok(arguments) => arguments,
        Err(message) => return problem(400, "parse_error", &message),
    };
    match run(app, name, arguments).await {
        Ok(answer) => json_response(200, answer),
        Err(error) => of_dispatch(&error),
    }
}

async fn run(app: App, name: String, arguments: Value) -> Outcome {
    if app.service.run_of(&name, &arguments) == Run::Inline {
        return app.service.call(&app.caller, &name, arguments);
    }
    let (service, caller) = (Arc::clone(&app.service), Arc::clone(&app.caller));
    let call = tokio::task::spawn_blocking(move || service.call(&caller, &name, arguments));
    call.await.unwrap_or_else(|_| {
        Err(DispatchError::Refused(Refusal::new(
            Code::Internal,
            "The call failed unexpectedly.",
        )))
    })
}

/// An empty body means no arguments.
fn arguments(bytes: &Bytes) -> Result<Value, String> {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Ok(json!({}));
    }
    match serde_json::from_slice(bytes) {
        Ok(value @ Value::Object(_)) => Ok(value),
        Ok(_) => Err("The body must be a JSON object with the tool's arguments.".to_owned()),
        Err(error) => Err(format!("The body is not valid JSON: {error}.")),
    }
}
