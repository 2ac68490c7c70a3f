//! Upkeep of the folder, for the command line while a server owns it.
//!
//! Reachable over the Unix socket only.

use std::io::{self, Write};
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use escurel_access::Caller;
use escurel_core::{Code, Kb, Refusal};
use futures_util::stream;
use serde_json::Value;
use tokio::sync::mpsc;

use super::App;
use super::problem::{json_response, refused};
use crate::upkeep;

pub async fn verify(State(app): State<App>) -> Response {
    run(app, upkeep::verify).await
}

pub async fn rebuild(State(app): State<App>) -> Response {
    run(app, |kb, caller| upkeep::rebuild(kb, caller, &mut |_| {})).await
}

pub async fn confirm_deletions(State(app): State<App>) -> Response {
    run(app, upkeep::confirm_deletions).await
}

async fn run(app: App, work: fn(&Kb, &Caller) -> Result<Value, Refusal>) -> Response {
    let (service, caller) = (Arc::clone(&app.service), Arc::clone(&app.caller));
    match tokio::task::spawn_blocking(move || work(&service.kb, &caller)).await {
        Ok(Ok(value)) => json_response(200, value.to_string()),
        Ok(Err(refusal)) => refused(&refusal),
        Err(_) => refused(&Refusal::new(
            Code::Internal,
            "The call failed unexpectedly.",
        )),
    }
}

/// Streams the journal; a failure in between breaks the connection, so that
/// half an export is never taken for a whole one.
pub async fn journal(State(app): State<App>) -> Response {
    let (sender, receiver) = mpsc::channel::<io::Result<Bytes>>(8);
    tokio::task::spawn_blocking(move || {
        let mut out = io::BufWriter::with_capacity(64 * 1024, Pipe(sender.clone()));
        let exported = app.service.kb.export_journal(&app.caller, &mut out);
        let failed = match (exported, out.flush()) {
            (Err(refusal), _) => Some(io::Error::other(refusal.to_string())),
            (Ok(_), Err(error)) => Some(error),
            (Ok(_), Ok(())) => None,
        };
        if let Some(error) = failed {
            tracing::error!(%error, "the journal could not be exported");
            let _ = sender.blocking_send(Err(error));
        }
    });
    let chunks = stream::unfold(receiver, async |mut receiver| {
        receiver.recv().await.map(|chunk| (chunk, receiver))
    });
    Body::from_stream(chunks).into_response()
}

struct Pipe(mpsc::Sender<io::Result<Bytes>>);

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let sent = self.0.blocking_send(Ok(Bytes::copy_from_slice(bytes)));
        sent.map(|()| bytes.len())
            .map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_pipe_without_reader_breaks() {
        let (sender, receiver) = mpsc::channel(1);
        drop(receiver);
        let failed = tokio::task::spawn_blocking(move || Pipe(sender).write(b"x"))
            .await
            .unwrap();
        assert_eq!(failed.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }
}
