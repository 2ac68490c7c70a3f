//! A socket that edits one page.

use std::ops::ControlFlow;
use std::sync::Arc;

use escurel_core::{Code, Hello, Kb, Listener, Refusal, Said};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::outbox::Outbox;
use super::{Client, Ended, Frame, Incoming, frames};

/// Changes of one client that wait for the disk.
const UNSAVED: usize = 1024;
/// So many are acknowledged after one flush.
const TOGETHER: usize = 256;

/// Sends what others do to one client.
struct Ear {
    session: String,
    outbox: Arc<Outbox>,
    wants_text: bool,
    /// Told when the session was closed or has to be joined again.
    turned: mpsc::UnboundedSender<Turn>,
}

enum Turn {
    Closed,
    Resync(&'static str),
}

impl Listener for Ear {
    fn wants_text(&self) -> bool {
        self.wants_text
    }

    fn hear(&self, said: &Said) {
        match said {
            Said::Op {
                merged_version,
                op,
                text,
            } => self.outbox.offer(|| {
                let mut frame = json!({
                    "type": "peer_op",
                    "session": self.session,
                    "merged_version": frames::version(*merged_version),
                    "op": frames::encode(op),
                });
                if let Some(text) = text {
                    frame["content"] = json!(&**text);
                }
                frame
            }),
            Said::Presence(fields) => self
                .outbox
                .offer(|| frames::presence(&self.session, fields)),
            Said::Closed => drop(self.turned.send(Turn::Closed)),
            Said::Resync(reason) => drop(self.turned.send(Turn::Resync(reason))),
        }
    }
}

/// A change that waits for the disk.
struct Taken {
    merged_version: u64,
    text: Option<String>,
}

/// A socket's place in a session.
struct Seat {
    session: String,
    peer: u64,
    wants_text: bool,
    turns: mpsc::UnboundedReceiver<Turn>,
    taken: mpsc::Sender<Taken>,
}

/// Whether a socket goes on.
type Flow = ControlFlow<Option<Ended>>;
const ON: Flow = ControlFlow::Continue(());

pub(super) async fn run(client: &Client, incoming: &mut Incoming, hello: Frame) -> Option<Ended> {
    let mut desk = Desk { client, seat: None };
    let mut flow = desk.join(&hello).await;
    while flow.is_continue() {
        flow = tokio::select! {
            frame = incoming.frame(client) => match frame {
                Some(frame) => desk.take(&frame).await,
                None => ControlFlow::Break(None),
            },
            turn = turn(&mut desk.seat) => desk.turned(turn).await,
            () = client.outbox.lagging() => desk.turned(Turn::Resync("lagging")).await,
        };
    }
    desk.leave().await;
    flow.break_value().flatten()
}

/// What becomes of the session; never, for those who have none.
async fn turn(seat: &mut Option<Seat>) -> Turn {
    match seat {
        Some(seat) => seat.turns.recv().await.unwrap_or(Turn::Closed),
        None => std::future::pending().await,
    }
}

struct Desk<'a> {
    client: &'a Client,
    seat: Option<Seat>,
}

impl Desk<'_> {
    async fn take(&mut self, frame: &Frame) -> Flow {
        match frame.kind() {
            "hello" => self.join(frame).await,
            "op" => self.op(frame).await,
            "presence" => self.presence(frame).await,
            "close" => self.close(frame).await,
            other => {
                let shown: String = other.chars().take(40).collect();
                let message = format!(
                    "There is no frame {shown:?} in a session. There are op, presence, close and hello."
                );
                self.client.outbox.error("unknown_frame", &message).await;
                ON
            }
        }
    }

    /// Takes a place in a session; a client that missed something says hello again.
    async fn join(&mut self, hello: &Frame) -> Flow {
        self.leave().await;
        let Some(session) = hello.text("session").map(str::to_owned) else {
            let message = "A hello names a session from open_session.";
            self.client.outbox.error("invalid_frame", message).await;
            return ControlFlow::Break(Some(Ended::Invalid));
        };
        let have = match hello.text("have").map(frames::decode) {
            Some(None) => {
                let message = "`have` is not base64.";
                self.client.outbox.error("invalid_frame", message).await;
                return ControlFlow::Break(Some(Ended::Invalid));
            }
            have => have.flatten(),
        };
        let wants_text = hello.0.get("content").and_then(Value::as_bool) != Some(false);
        self.client.outbox.take_skipped();
        let (turned, turns) = mpsc::unbounded_channel();
        let ear = Arc::new(Ear {
            session: session.clone(),
            outbox: Arc::clone(&self.client.outbox),
            wants_text,
            turned,
        });
        let ask = Hello {
            session: session.clone(),
            lineage: hello.text("lineage").map(str::to_owned),
            have,
        };
        let caller = Arc::clone(&self.client.caller);
        let attached = self.blocking(move |kb| kb.attach(&caller, &ask, ear)).await;
        let attached = match attached {
            Ok(attached) => attached,
            Err(refusal) if refusal.code == Code::LineageChanged => {
                let frame = frames::resync(&session, "lineage", 0, &refusal.message);
                self.client.outbox.send(&frame).await;
                return ON;
            }
            Err(refusal) => {
                let frame = frames::refused(&session, &refusal);
                self.client.outbox.send(&frame).await;
                return ControlFlow::Break(Some(Ended::Invalid));
            }
        };
        let mut answer = json!({
            "type": "hello_ack",
            "session": session,
            "lineage": attached.lineage,
            "head_version": frames::version(attached.head_version),
            "update": frames::encode(&attached.update),
        });
        if let Some(text) = attached.text {
            answer["content"] = json!(text);
        }
        self.client.outbox.send(&answer).await;
        self.seat = Some(Seat {
            taken: acknowledge(self.client.clone(), session.clone()),
            session,
            peer: attached.peer,
            wants_text,
            turns,
        });
        ON
    }

    async fn leave(&mut self) {
        if let Some(seat) = self.seat.take() {
            let (session, peer) = (seat.session, seat.peer);
            let _ = self
                .blocking(move |kb| {
                    kb.detach(&session, peer);
                    Ok(())
                })
                .await;
        }
    }

    /// The seat, if the frame is for its session.
    async fn seated(&self, frame: &Frame) -> Option<&Seat> {
        let named = frame.text("session");
        let seat = self.seat.as_ref();
        let fits = seat.filter(|seat| named.is_none_or(|named| named == seat.session));
        if fits.is_none() {
            let message = "This socket is not attached to that session; say hello first.";
            self.client.outbox.error("unknown_session", message).await;
        }
        fits
    }

    async fn op(&mut self, frame: &Frame) -> Flow {
        let Some(seat) = self.seated(frame).await else {
            return ON;
        };
        let Some(op) = frame.text("op").and_then(frames::decode) else {
            let message = "`op` must be a Loro update in base64.";
            self.client.outbox.error("op_invalid", message).await;
            return ControlFlow::Break(Some(Ended::Invalid));
        };
        let (session, peer, wants_text) = (seat.session.clone(), seat.peer, seat.wants_text);
        let taken = seat.taken.clone();
        let caller = Arc::clone(&self.client.caller);
        let changed = {
            let session = session.clone();
            self.blocking(move |kb| kb.change(&caller, &session, Some(peer), &op, wants_text))
                .await
        };
        match changed {
            Ok(ack) => {
                let ack = Taken {
                    merged_version: ack.merged_version,
                    text: ack.text,
                };
                match taken.send(ack).await {
                    Ok(()) => ON,
                    // Its changes could not be saved, and it was told.
                    Err(_) => ControlFlow::Break(Some(Ended::GoingAway)),
                }
            }
            Err(refusal) => {
                let frame = frames::refused(&session, &refusal);
                self.client.outbox.send(&frame).await;
                match refusal.code {
                    Code::OpInvalid => ControlFlow::Break(Some(Ended::Invalid)),
                    _ => ON,
                }
            }
        }
    }

    async fn presence(&mut self, frame: &Frame) -> Flow {
        if let Some(seat) = self.seated(frame).await {
            let (session, peer) = (seat.session.clone(), seat.peer);
            let fields = frame.0.clone();
            let told = self
                .blocking(move |kb| kb.presence(&session, peer, &fields))
                .await;
            if let Err(refusal) = told {
                let frame = frames::refused(frame.text("session").unwrap_or_default(), &refusal);
                self.client.outbox.send(&frame).await;
            }
        }
        ON
    }

    async fn close(&mut self, frame: &Frame) -> Flow {
        let Some(seat) = self.seated(frame).await else {
            return ON;
        };
        let session = seat.session.clone();
        let commit = frame.0.get("commit").and_then(Value::as_bool) != Some(false);
        let caller = Arc::clone(&self.client.caller);
        let closed = {
            let session = session.clone();
            self.blocking(move |kb| kb.close_session(&caller, &session, commit))
                .await
        };
        let frame = match &closed {
            Ok(closed) => json!({
                "type": "closed",
                "session": session,
                "ok": closed.ok,
                "final_version": closed.ok.then(|| frames::version(closed.final_version)),
                "issues": issues(&closed.issues),
            }),
            Err(refusal) => frames::refused(&session, refusal),
        };
        self.client.outbox.send(&frame).await;
        match closed {
            Ok(closed) if closed.ok => {
                self.seat = None;
                ControlFlow::Break(Some(Ended::Normal))
            }
            _ => ON,
        }
    }

    /// The session is over, or this client has to join it again.
    async fn turned(&mut self, turn: Turn) -> Flow {
        let Some(session) = self.seat.as_ref().map(|seat| seat.session.clone()) else {
            return ON;
        };
        match turn {
            Turn::Closed => {
                let frame =
                    json!({ "type": "closed", "session": session, "ok": true, "issues": [] });
                self.client.outbox.send(&frame).await;
                self.seat = None;
                ControlFlow::Break(Some(Ended::Normal))
            }
            Turn::Resync(reason) => {
                self.leave().await;
                let skipped = self.client.outbox.take_skipped();
                let message = "Changes were missed: say hello again with what you have.";
                let frame = frames::resync(&session, reason, skipped, message);
                self.client.outbox.send(&frame).await;
                ON
            }
        }
    }

    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Kb) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        blocking(self.client, work).await
    }
}

async fn blocking<T: Send + 'static>(
    client: &Client,
    work: impl FnOnce(&Kb) -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    let service = Arc::clone(&client.service);
    let done = tokio::task::spawn_blocking(move || work(&service.kb)).await;
    done.unwrap_or_else(|_| {
        let why = "The call failed unexpectedly.";
        Err(Refusal::new(Code::Internal, why))
    })
}

/// Acknowledges changes once they are on the disk: those that came meanwhile with one flush.
fn acknowledge(client: Client, session: String) -> mpsc::Sender<Taken> {
    let (sender, mut receiver) = mpsc::channel::<Taken>(UNSAVED);
    tokio::spawn(async move {
        let mut taken = Vec::new();
        while receiver.recv_many(&mut taken, TOGETHER).await > 0 {
            let saved = {
                let session = session.clone();
                blocking(&client, move |kb| kb.make_durable(&session)).await
            };
            if let Err(refusal) = saved {
                client
                    .outbox
                    .send(&frames::refused(&session, &refusal))
                    .await;
                break;
            }
            for change in taken.drain(..) {
                let mut frame = json!({
                    "type": "op_ack",
                    "session": session,
                    "merged_version": frames::version(change.merged_version),
                    "conflicts": [],
                    "issues": [],
                });
                if let Some(text) = change.text {
                    frame["content"] = json!(text);
                }
                client.outbox.send(&frame).await;
            }
        }
    });
    sender
}

fn issues(issues: &[escurel_core::api::Issue]) -> Value {
    let issues = issues.iter().cloned();
    let wire: Vec<escurel_tools::wire::Issue> =
        issues.map(escurel_tools::wire::Issue::from).collect();
    serde_json::to_value(wire).unwrap_or_default()
}
