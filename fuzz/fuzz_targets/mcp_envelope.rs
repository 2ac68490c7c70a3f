#![no_main]
//! Protocol messages: any bytes as a body, any bytes as headers.
//!
//! The modules are taken as they are, without the server around them, so that
//! the target builds in seconds.

use libfuzzer_sys::fuzz_target;

#[allow(dead_code)]
#[path = "../../crates/escurel-server/src/mcp/envelope.rs"]
mod envelope;
#[allow(dead_code)]
#[path = "../../crates/escurel-server/src/mcp/era.rs"]
mod era;
#[allow(dead_code)]
#[path = "../../crates/escurel-server/src/mcp/percent.rs"]
mod percent;
#[allow(dead_code)]
#[path = "../../crates/escurel-server/src/mcp/reply.rs"]
mod reply;

use envelope::Message;
use era::{Era, Headers};

fuzz_target!(|data: &[u8]| {
    // The first line is the header values, the rest the body.
    let cut = data.iter().position(|b| *b == b'\n').unwrap_or(0);
    let (head, body) = data.split_at(cut);
    let head = String::from_utf8_lossy(head);
    let mut values = head.split('|');
    let headers = Headers { version: values.next(), method: values.next(), name: values.next() };

    let reply = match envelope::parse(body) {
        Ok(Message::Request { id, method, params }) => {
            let era = era::of(Some(&headers), &method, &params);
            match era::check(Some(&headers), &method, &params) {
                Err(error) if era == Era::Modern => error.reply(Some(&id), era),
                _ => reply::Answer::default().with("method", &method).reply(&id, era),
            }
        }
        Ok(Message::Notification) => return,
        Err(malformed) => malformed.error.reply(malformed.id.as_deref(), Era::Legacy),
    };
    // Whatever came in, what goes out is one line of JSON.
    let text = reply.body.unwrap_or_default();
    assert!(!text.contains('\n'));
    let answer: serde_json::Value = serde_json::from_str(&text).expect("an answer is JSON");
    assert_eq!(answer["jsonrpc"], "2.0");
    if let Some(decoded) = percent::decode(&head) {
        assert_eq!(percent::decode(&percent::encode(&decoded)).as_deref(), Some(decoded.as_str()));
    }
});
