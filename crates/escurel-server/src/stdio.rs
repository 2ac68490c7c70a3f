//! MCP over standard input and output: one message per line.
//!
//! Serves the folder itself when it can have the lock, otherwise passes every
//! message to the owner. Writes nothing but messages to the output. Invariant:
//! each request gets one answer, also when the owner dies in between.

mod lines;
mod link;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use escurel_core::Refusal;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::{Semaphore, mpsc};

use crate::boot::Stop;
use crate::config::Config;
use lines::Line;
use link::Link;

/// Requests that are worked on at once.
const PARALLEL: usize = 64;
/// What is left after the end of the input gets this long.
const GRACE: Duration = Duration::from_secs(10);

/// Runs until the input ends, the output closes, or `stop`.
pub async fn run(
    config: Config,
    folder: PathBuf,
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Unpin + Send + 'static,
    stop: Stop,
) -> Result<(), Refusal> {
    let limit = config.max_body_bytes;
    let link = Arc::new(Link::open(config, folder, stop.clone()).await?);
    Arc::clone(&link).watch();
    let (answers, mut outgoing) = mpsc::channel::<String>(PARALLEL);
    let stopped = stop.clone();
    let writer = tokio::spawn(async move {
        let mut output = output;
        while let Some(line) = outgoing.recv().await {
            if write_line(&mut output, line).await.is_err() {
                stopped.now();
                return;
            }
        }
    });
    tokio::select! {
        () = pump(Arc::clone(&link), input, limit, answers) => {}
        () = stop.clone().wait() => {}
    }
    // The pump has dropped its sender: the writer ends with the last answer.
    let _ = tokio::time::timeout(GRACE, writer).await;
    stop.now();
    link.close().await;
    Ok(())
}

async fn write_line(
    output: &mut (impl AsyncWrite + Unpin),
    mut line: String,
) -> std::io::Result<()> {
    line.push('\n');
    output.write_all(line.as_bytes()).await?;
    output.flush().await
}

/// Reads messages and has each answered by a task of its own.
async fn pump(
    link: Arc<Link>,
    input: impl AsyncRead + Unpin,
    limit: usize,
    answers: mpsc::Sender<String>,
) {
    let mut input = BufReader::new(input);
    let slots = Arc::new(Semaphore::new(PARALLEL));
    loop {
        let line = match lines::next(&mut input, limit).await {
            Ok(Line::Message(line)) => line,
            Ok(Line::TooLong) => {
                let _ = answers.send(link::too_long(limit)).await;
                continue;
            }
            Ok(Line::End) => return,
            Err(error) => {
                tracing::error!(%error, "standard input failed");
                return;
            }
        };
        let Ok(slot) = Arc::clone(&slots).acquire_owned().await else {
            return;
        };
        let (link, answers) = (Arc::clone(&link), answers.clone());
        tokio::spawn(async move {
            if let Some(answer) = link.answer(line).await {
                let _ = answers.send(answer).await;
            }
            drop(slot);
        });
    }
}
