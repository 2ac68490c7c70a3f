//! Refusals of plain HTTP: a status and one JSON shape.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use escurel_core::Refusal;
use escurel_tools::{DispatchError, refusal_json};
use serde_json::{Value, json};

/// JSON with its charset: some clients read it as Latin-1 otherwise.
pub fn json_response(status: u16, body: String) -> Response {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    (
        status,
        [(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/json; charset=utf-8"),
        )],
        body,
    )
        .into_response()
}

/// `{"error": {code, message, retryable, …}}`.
pub fn problem(status: u16, code: &str, message: &str) -> Response {
    of_data(
        status,
        json!({"code": code, "retryable": status == 503 || status == 504}),
        message,
    )
}

fn of_data(status: u16, mut data: Value, message: &str) -> Response {
    data["message"] = json!(message);
    json_response(status, json!({"error": data}).to_string())
}

pub fn refused(refusal: &Refusal) -> Response {
    of_data(
        refusal.code.http_status(),
        refusal_json(refusal),
        &format!("{} {}", refusal.message, refusal.next_step()),
    )
}

pub fn of_dispatch(error: &DispatchError) -> Response {
    match error {
        DispatchError::Refused(refusal) => refused(refusal),
        DispatchError::UnknownTool { .. } => of_data(404, error.data(), &error.to_string()),
        DispatchError::AdminRequired => of_data(403, error.data(), &error.to_string()),
        DispatchError::Rpc { .. } => of_data(400, error.data(), &error.sentence()),
    }
}
