//! `/ws`: live editing and subscriptions over one socket each.
//!
//! The first frame chooses what a socket is for, for as long as it lives.
//! Invariants: nothing that is sent to a client waits without a bound, and a
//! client that is too slow, silent or wrong costs nobody but itself.

mod frames;
mod outbox;
mod session;
mod subscriptions;

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::response::Response;
use escurel_access::Caller;
use escurel_core::{Captured, Kb};
use futures_util::StreamExt;
use futures_util::stream::SplitStream;
use serde_json::{Map, Value};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, broadcast, mpsc};
use tokio::task::JoinHandle;

use crate::Service;
use crate::boot::Stop;
use crate::http::{App, problem};
use outbox::Outbox;

/// A message may be so large. Bytes.
const MAX_MESSAGE: usize = 16 << 20;
/// Sockets at once.
const MAX_SOCKETS: usize = 4096;
/// The first frame has to come within this.
const HELLO: Duration = Duration::from_secs(10);
/// A client that says nothing for so long, not even a pong, is gone.
const SILENCE: Duration = Duration::from_secs(90);

/// What all sockets share.
#[derive(Clone)]
pub struct Sockets {
    slots: Arc<Semaphore>,
    stop: Stop,
    /// What is captured, for those who want to be told.
    events: broadcast::Sender<Captured>,
}

/// Events that a socket may be behind before it misses some.
const EVENTS: usize = 1024;

impl Sockets {
    /// They are closed when `stop` says so.
    pub fn of(kb: &Kb, stop: Stop) -> Sockets {
        let events = broadcast::Sender::new(EVENTS);
        let told = events.clone();
        kb.on_event(move |_, captured| drop(told.send(captured.clone())));
        Sockets {
            slots: Arc::new(Semaphore::new(MAX_SOCKETS)),
            stop,
            events,
        }
    }
}

/// What one socket works with.
#[derive(Clone)]
struct Client {
    service: Arc<Service>,
    caller: Arc<Caller>,
    outbox: Arc<Outbox>,
    events: broadcast::Sender<Captured>,
}

pub async fn upgrade(
    State(app): State<App>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Response {
    let Ok(upgrade) = upgrade else {
        let message = "This is a WebSocket: connect with the ws scheme.";
        return problem(426, "upgrade_required", message);
    };
    let Ok(slot) = Arc::clone(&app.sockets.slots).try_acquire_owned() else {
        let message = "Too many WebSockets are open. Repeat in a moment.";
        return problem(503, "sockets_exhausted", message);
    };
    upgrade
        .max_message_size(MAX_MESSAGE)
        .max_frame_size(MAX_MESSAGE)
        .on_upgrade(move |socket| serve(app, socket, slot))
}

async fn serve(app: App, socket: WebSocket, _slot: OwnedSemaphorePermit) {
    let (sink, stream) = socket.split();
    let (outbox, writer) = outbox::open(sink);
    let client = Client {
        service: app.service,
        caller: app.caller,
        outbox,
        events: app.sockets.events.clone(),
    };
    let (mut incoming, reader) = Incoming::of(stream);
    let talk = async {
        let ended = talk(&client, &mut incoming).await;
        client.outbox.end(ended).await;
    };
    tokio::select! {
        () = talk => {}
        () = app.sockets.stop.wait() => client.outbox.end(Some(Ended::GoingAway)).await,
        () = client.outbox.broken() => {}
    }
    reader.abort();
    client.outbox.finished(writer).await;
}

/// Why a socket is closed from here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    /// What was sent cannot be worked with.
    Invalid,
    /// Nothing came, or too late.
    Silent,
    GoingAway,
    Normal,
}

async fn talk(client: &Client, incoming: &mut Incoming) -> Option<Ended> {
    let first = match tokio::time::timeout(HELLO, incoming.frame(client)).await {
        Ok(Some(frame)) => frame,
        Ok(None) => return None,
        Err(_) => {
            let message = "The first frame, a hello, did not come in time.";
            client.outbox.error("hello_missing", message).await;
            return Some(Ended::Silent);
        }
    };
    if first.kind() != "hello" {
        let message = "The first frame must be a hello with a session or with presence_only.";
        client.outbox.error("hello_missing", message).await;
        return Some(Ended::Invalid);
    }
    if first.flag("presence_only") {
        return subscriptions::run(client, incoming).await;
    }
    session::run(client, incoming, first).await
}

/// What comes from a client, one JSON object at a time. Waiting for it may be given up.
struct Incoming {
    frames: mpsc::Receiver<Result<Frame, String>>,
}

struct Frame(Map<String, Value>);

impl Frame {
    fn kind(&self) -> &str {
        self.text("type").unwrap_or_default()
    }

    fn text(&self, key: &str) -> Option<&str> {
        self.0.get(key).and_then(Value::as_str)
    }

    fn flag(&self, key: &str) -> bool {
        self.0.get(key).and_then(Value::as_bool).unwrap_or(false)
    }
}

impl Incoming {
    /// Reads ahead by one frame; the rest waits at the client's end.
    fn of(mut stream: SplitStream<WebSocket>) -> (Incoming, JoinHandle<()>) {
        let (sender, frames) = mpsc::channel(1);
        let reader = tokio::spawn(async move {
            while let Some(frame) = read(&mut stream).await {
                let last = frame.is_err();
                if sender.send(frame).await.is_err() || last {
                    break;
                }
            }
        });
        (Incoming { frames }, reader)
    }

    /// The next frame. `None`: the client is gone, or sent something that is no frame and was told.
    async fn frame(&mut self, client: &Client) -> Option<Frame> {
        match self.frames.recv().await? {
            Ok(frame) => Some(frame),
            Err(problem) => {
                client.outbox.error("invalid_frame", &problem).await;
                None
            }
        }
    }
}

/// `None`: nothing more will come.
async fn read(stream: &mut SplitStream<WebSocket>) -> Option<Result<Frame, String>> {
    loop {
        let message = tokio::time::timeout(SILENCE, stream.next()).await.ok()??;
        match message {
            Ok(Message::Text(text)) => return Some(parse(&text)),
            Ok(Message::Ping(_) | Message::Pong(_)) => {}
            Ok(Message::Binary(_)) => {
                return Some(Err(
                    "Frames are JSON text; bytes in them are base64.".to_owned()
                ));
            }
            Ok(Message::Close(_)) => return None,
            Err(error) => return Some(Err(format!("The message cannot be read: {error}."))),
        }
    }
}

fn parse(text: &str) -> Result<Frame, String> {
    match serde_json::from_str(text) {
        Ok(Value::Object(fields)) => Ok(Frame(fields)),
        Ok(_) => Err("A frame is a JSON object.".to_owned()),
        Err(error) => Err(format!("The frame is not JSON: {error}.")),
    }
}
