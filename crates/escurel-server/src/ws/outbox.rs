//! What waits to be sent to one client: a queue with a bound.
//!
//! Answers wait for room in it; what others do is dropped when there is none,
//! and the client is told that it missed something.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, WebSocket, close_code};
use futures_util::SinkExt;
use futures_util::stream::SplitSink;
use serde_json::Value;
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;

use super::{Ended, frames};

/// Frames that may wait.
const FRAMES: usize = 256;
/// Bytes that may wait.
const BYTES: u64 = 32 << 20;
/// A client that takes nothing for so long is gone.
const PATIENCE: Duration = Duration::from_secs(30);
/// Clients and what is between them are asked so often whether they still live.
const PING: Duration = Duration::from_secs(30);

pub(super) struct Outbox {
    sender: mpsc::Sender<Message>,
    /// Bytes in the queue.
    waiting: AtomicU64,
    /// Frames that were dropped since the client was last told.
    skipped: AtomicU64,
    lagging: Notify,
    broken: Notify,
}

pub(super) fn open(sink: SplitSink<WebSocket, Message>) -> (Arc<Outbox>, JoinHandle<()>) {
    let (sender, receiver) = mpsc::channel(FRAMES);
    let outbox = Arc::new(Outbox {
        sender,
        waiting: AtomicU64::new(0),
        skipped: AtomicU64::new(0),
        lagging: Notify::new(),
        broken: Notify::new(),
    });
    let writer = tokio::spawn(write(Arc::clone(&outbox), receiver, sink));
    (outbox, writer)
}

impl Outbox {
    /// Sends as soon as there is room.
    pub async fn send(&self, frame: &Value) {
        self.send_message(Message::text(frame.to_string())).await;
    }

    pub async fn error(&self, code: &str, message: &str) {
        self.send(&frames::error(code, message)).await;
    }

    async fn send_message(&self, message: Message) {
        let bytes = size(&message);
        self.waiting.fetch_add(bytes, Ordering::AcqRel);
        if self.sender.send(message).await.is_err() {
            self.waiting.fetch_sub(bytes, Ordering::AcqRel);
        }
    }

    /// Sends if there is room and nothing was dropped before; never waits.
    pub fn offer(&self, frame: impl FnOnce() -> Value) {
        if self.skipped.load(Ordering::Acquire) > 0 || self.waiting.load(Ordering::Acquire) > BYTES
        {
            self.skip();
            return;
        }
        let message = Message::text(frame().to_string());
        let bytes = size(&message);
        self.waiting.fetch_add(bytes, Ordering::AcqRel);
        if self.sender.try_send(message).is_err() {
            self.waiting.fetch_sub(bytes, Ordering::AcqRel);
            self.skip();
        }
    }

    fn skip(&self) {
        self.skipped.fetch_add(1, Ordering::AcqRel);
        self.lagging.notify_one();
    }

    /// Returns when a frame was dropped.
    pub async fn lagging(&self) {
        self.lagging.notified().await;
    }

    /// How many frames were dropped since this was last asked.
    pub fn take_skipped(&self) -> u64 {
        self.skipped.swap(0, Ordering::AcqRel)
    }

    /// Returns when the client cannot be reached any more.
    pub async fn broken(&self) {
        self.broken.notified().await;
    }

    /// Says good-bye, if there is something to say.
    pub async fn end(&self, ended: Option<Ended>) {
        let (code, reason) = match ended {
            None => return,
            Some(Ended::Invalid) => (close_code::INVALID, "what was sent cannot be worked with"),
            Some(Ended::Silent) => (close_code::POLICY, "nothing came"),
            Some(Ended::GoingAway) => (close_code::AWAY, "the server stops"),
            Some(Ended::Normal) => (close_code::NORMAL, "done"),
        };
        let frame = CloseFrame {
            code,
            reason: reason.into(),
        };
        let close = self.send_message(Message::Close(Some(frame)));
        let _ = tokio::time::timeout(PATIENCE, close).await;
    }

    /// Lets what waits be sent, and then goes.
    pub async fn finished(self: Arc<Self>, mut writer: JoinHandle<()>) {
        let close = self.send_message(Message::Close(None));
        let _ = tokio::time::timeout(PATIENCE, close).await;
        if tokio::time::timeout(PATIENCE, &mut writer).await.is_err() {
            writer.abort();
        }
    }
}

fn size(message: &Message) -> u64 {
    match message {
        Message::Text(text) => text.len() as u64,
        Message::Binary(bytes) | Message::Ping(bytes) | Message::Pong(bytes) => bytes.len() as u64,
        Message::Close(_) => 0,
    }
}

async fn write(
    outbox: Arc<Outbox>,
    mut receiver: mpsc::Receiver<Message>,
    mut sink: SplitSink<WebSocket, Message>,
) {
    let mut pings = tokio::time::interval(PING);
    loop {
        let message = tokio::select! {
            message = receiver.recv() => message,
            _ = pings.tick() => Some(Message::Ping(Default::default())),
        };
        let Some(message) = message else { break };
        let last = matches!(message, Message::Close(_));
        if !matches!(message, Message::Ping(_)) {
            outbox.waiting.fetch_sub(size(&message), Ordering::AcqRel);
        }
        let sent = tokio::time::timeout(PATIENCE, sink.send(message)).await;
        if last || !matches!(sent, Ok(Ok(()))) {
            break;
        }
    }
    receiver.close();
    outbox.broken.notify_one();
}
