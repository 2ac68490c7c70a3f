//! A socket that is told of what happens: searches that are kept up to date,
//! events as they are captured.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use escurel_core::Captured;
use serde_json::{Value, json};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use super::{Client, Ended, Frame, Incoming, frames};

/// Searches that one socket may keep.
const MOST: usize = 32;
/// Events that are told again to those who were away.
const REPLAYED: usize = 10_000;
/// A search is run again at most so often.
const PACE: Duration = Duration::from_millis(250);

/// A search, and what was last sent of it.
struct Search {
    arguments: Value,
    /// The state that the last answer is of.
    of: u64,
    sent: Option<Value>,
}

/// What one socket has asked for.
#[derive(Default)]
struct Wishes {
    searches: BTreeMap<String, Search>,
    /// Names of subscriptions to events.
    events: BTreeSet<String>,
    captured: Option<broadcast::Receiver<Captured>>,
}

pub(super) async fn run(client: &Client, incoming: &mut Incoming) -> Option<Ended> {
    let mut wishes = Wishes::default();
    let mut pace = tokio::time::interval(PACE);
    pace.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            frame = incoming.frame(client) => take(client, &mut wishes, &frame?).await,
            _ = pace.tick(), if !wishes.searches.is_empty() => again(client, &mut wishes.searches).await,
            captured = captured(&mut wishes.captured) => tell(client, &wishes.events, captured).await,
        }
    }
}

/// The next event; never, for those who did not ask.
async fn captured(
    receiver: &mut Option<broadcast::Receiver<Captured>>,
) -> Result<Captured, RecvError> {
    match receiver {
        Some(receiver) => receiver.recv().await,
        None => std::future::pending().await,
    }
}

async fn take(client: &Client, wishes: &mut Wishes, frame: &Frame) {
    match frame.kind() {
        "search_subscribe" => subscribe(client, &mut wishes.searches, frame).await,
        "event_subscribe" => follow(client, wishes, frame).await,
        "unsubscribe" => {
            let id = frame.text("subscription_id").unwrap_or_default();
            wishes.searches.remove(id);
            wishes.events.remove(id);
        }
        "presence" => {
            let known = ["user", "cursor", "anchor"];
            let fields = frame
                .0
                .iter()
                .filter(|(key, _)| known.contains(&key.as_str()));
            let fields = fields.map(|(key, value)| (key.clone(), value.clone()));
            let session = frame.text("session").unwrap_or_default();
            let frame = frames::presence(session, &fields.collect());
            client.outbox.send(&frame).await;
        }
        other => {
            let shown: String = other.chars().take(40).collect();
            let message = format!("There is no frame {shown:?} on a socket without a session.");
            client.outbox.error("unknown_frame", &message).await;
        }
    }
}

/// From now on tells of events; first of those that wait since the one that was seen last. One that
/// comes in between may be told twice.
async fn follow(client: &Client, wishes: &mut Wishes, frame: &Frame) {
    let Some(id) = frame.text("subscription_id").map(str::to_owned) else {
        let message = "A subscription has a subscription_id.";
        return client.outbox.error("invalid_subscription", message).await;
    };
    if wishes.events.len() >= MOST && !wishes.events.contains(&id) {
        let message = format!("A socket keeps at most {MOST} subscriptions to events.");
        return client.outbox.error("invalid_subscription", &message).await;
    }
    wishes
        .captured
        .get_or_insert_with(|| client.events.subscribe());
    wishes.events.insert(id.clone());
    let ack = json!({ "type": "event_subscribe_ack", "subscription_id": id });
    client.outbox.send(&ack).await;
    let Some(since) = frame.text("since_event_id").map(str::to_owned) else {
        return;
    };
    let (service, caller) = (client.service.clone(), client.caller.clone());
    let missed =
        tokio::task::spawn_blocking(move || service.kb.events_after(&caller, &since, REPLAYED));
    match missed.await {
        Ok(Ok(events)) => {
            for event in events {
                send_event(client, &id, event, true).await;
            }
        }
        Ok(Err(refusal)) => client.outbox.send(&frames::refused("", &refusal)).await,
        Err(_) => {
            let message = "The events could not be read.";
            client.outbox.error("internal", message).await;
        }
    }
}

async fn tell(client: &Client, ids: &BTreeSet<String>, captured: Result<Captured, RecvError>) {
    let captured = match captured {
        Ok(captured) => captured,
        Err(RecvError::Lagged(skipped)) => {
            for id in ids {
                let frame = json!({
                    "type": "event_lagged",
                    "subscription_id": id,
                    "skipped": skipped,
                    "message": "Events were missed: list_inbox has what still waits.",
                });
                client.outbox.send(&frame).await;
            }
            return;
        }
        Err(RecvError::Closed) => return,
    };
    let (service, caller) = (client.service.clone(), client.caller.clone());
    let event = tokio::task::spawn_blocking(move || service.kb.event(&caller, &captured.event_id));
    // Who may not see it does not learn that there is one.
    if let Ok(Ok(event)) = event.await {
        for id in ids {
            send_event(client, id, event.clone(), false).await;
        }
    }
}

async fn send_event(client: &Client, id: &str, event: escurel_core::api::Event, replayed: bool) {
    let event = serde_json::to_value(escurel_tools::wire::Event::from(event)).unwrap_or_default();
    let mut frame = json!({ "type": "event", "subscription_id": id, "event": event });
    if replayed {
        frame["replayed"] = json!(true);
    }
    client.outbox.send(&frame).await;
}

async fn subscribe(client: &Client, searches: &mut BTreeMap<String, Search>, frame: &Frame) {
    let refuse = |message: String| async move {
        client.outbox.error("invalid_subscription", &message).await;
    };
    let Some(id) = frame.text("subscription_id").map(str::to_owned) else {
        return refuse("A subscription has a subscription_id.".to_owned()).await;
    };
    if frame.text("q").is_none_or(|q| q.trim().is_empty()) {
        return refuse("A search needs `q`.".to_owned()).await;
    }
    if searches.len() >= MOST && !searches.contains_key(&id) {
        return refuse(format!("A socket keeps at most {MOST} searches.")).await;
    }
    let mut arguments = frame.0.clone();
    arguments.retain(|key, _| key != "type" && key != "subscription_id");
    let mut search = Search {
        arguments: Value::Object(arguments),
        of: client.service.kb.seq(),
        sent: None,
    };
    match hits(client, &search.arguments).await {
        Ok(found) => {
            send(client, &id, &found).await;
            search.sent = Some(found);
            searches.insert(id, search);
        }
        Err(message) => refuse(message).await,
    }
}

/// Sends what has changed. What happened in between is not told: the last state counts.
async fn again(client: &Client, searches: &mut BTreeMap<String, Search>) {
    let now = client.service.kb.seq();
    for (id, search) in searches.iter_mut().filter(|(_, search)| search.of != now) {
        search.of = now;
        if let Ok(found) = hits(client, &search.arguments).await
            && search.sent.as_ref() != Some(&found)
        {
            send(client, id, &found).await;
            search.sent = Some(found);
        }
    }
}

async fn send(client: &Client, id: &str, hits: &Value) {
    let frame = json!({ "type": "search_event", "subscription_id": id, "hits": hits });
    client.outbox.send(&frame).await;
}

async fn hits(client: &Client, arguments: &Value) -> Result<Value, String> {
    let (service, caller) = (client.service.clone(), client.caller.clone());
    let arguments = arguments.clone();
    let found =
        tokio::task::spawn_blocking(move || service.call(&caller, "search", arguments)).await;
    let answer = match found {
        Ok(Ok(answer)) => answer,
        Ok(Err(error)) => return Err(error.sentence()),
        Err(_) => return Err("The search failed unexpectedly.".to_owned()),
    };
    let mut answer: Value = serde_json::from_str(&answer).unwrap_or_default();
    Ok(answer["hits"].take())
}
