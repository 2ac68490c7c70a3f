//! Reads request bodies up to a limit.

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;

/// Why a body could not be had.
pub struct Unread {
    pub status: u16,
    pub code: &'static str,
    pub message: String,
}

/// The whole body, however it was cut into packets.
pub async fn read(mut body: Body, limit: usize) -> Result<Bytes, Unread> {
    let mut all = BytesMut::new();
    let mut whole: Option<Bytes> = None;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| broken())?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        if all.len() + whole.as_ref().map_or(0, Bytes::len) + data.len() > limit {
            drain(body, limit.saturating_mul(4)).await;
            return Err(too_large(limit));
        }
        match whole.take() {
            // Most bodies come in one piece and need no copy.
            None if all.is_empty() => whole = Some(data),
            first => {
                all.extend_from_slice(&first.unwrap_or_default());
                all.extend_from_slice(&data);
            }
        }
    }
    Ok(whole.unwrap_or_else(|| all.freeze()))
}

/// A client that is still sending does not read an answer, so some more is taken from it.
async fn drain(mut body: Body, mut budget: usize) {
    while let Some(Ok(frame)) = body.frame().await {
        let taken = frame.data_ref().map_or(0, Bytes::len);
        let Some(rest) = budget.checked_sub(taken) else {
            return;
        };
        budget = rest;
    }
}

fn broken() -> Unread {
    Unread {
        status: 400,
        code: "body_broken",
        message: "The request body ended early.".to_owned(),
    }
}

fn too_large(limit: usize) -> Unread {
    let message = format!(
        "The request body is larger than {limit} bytes. Send less, or raise ESCUREL_MAX_BODY_BYTES."
    );
    Unread {
        status: 413,
        code: "body_too_large",
        message,
    }
}
