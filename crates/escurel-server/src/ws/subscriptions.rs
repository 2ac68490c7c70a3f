//! A socket that is told of what happens: searches that are kept up to date.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Client, Ended, Frame, Incoming, frames};

/// Searches that one socket may keep.
const MOST: usize = 32;
/// A search is run again at most so often.
const PACE: Duration = Duration::from_millis(250);

/// A search, and what was last sent of it.
struct Search {
    arguments: Value,
    /// The state that the last answer is of.
    of: u64,
    sent: Option<Value>,
}

pub(super) async fn run(client: &Client, incoming: &mut Incoming) -> Option<Ended> {
    let mut searches: BTreeMap<String, Search> = BTreeMap::new();
    let mut pace = tokio::time::interval(PACE);
    pace.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            frame = incoming.frame(client) => take(client, &mut searches, &frame?).await,
            _ = pace.tick(), if !searches.is_empty() => again(client, &mut searches).await,
        }
    }
}

async fn take(client: &Client, searches: &mut BTreeMap<String, Search>, frame: &Frame) {
    match frame.kind() {
        "search_subscribe" => subscribe(client, searches, frame).await,
        "search_unsubscribe" => {
            searches.remove(frame.text("subscription_id").unwrap_or_default());
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
