//! What holds for any bytes that claim to be a message. The fuzz target and the
//! replay of kept inputs share it.

use super::envelope::{self, Message};
use super::era::{self, Era, Headers};
use super::{percent, reply};

/// The first line is the header values (version, method, name, parted by `|`), the rest the body.
///
/// # Panics
/// When an answer is not one line of JSON-RPC, or an escaped path does not come back.
pub fn check(data: &[u8]) {
    let cut = data.iter().position(|b| *b == b'\n').unwrap_or(0);
    let (head, body) = data.split_at(cut);
    let head = String::from_utf8_lossy(head);
    check_answer(&head, body);
    if let Some(decoded) = percent::decode(&head) {
        let again = percent::decode(&percent::encode(&decoded));
        assert_eq!(again.as_deref(), Some(decoded.as_str()));
    }
}

fn check_answer(head: &str, body: &[u8]) {
    let mut values = head.split('|');
    let headers = Headers {
        version: values.next(),
        method: values.next(),
        name: values.next(),
    };
    let reply = match envelope::parse(body) {
        Ok(Message::Notification) => return,
        Ok(Message::Request { id, method, params }) => {
            let era = era::of(Some(&headers), &method, &params);
            match era::check(Some(&headers), &method, &params) {
                Err(error) if era == Era::Modern => error.reply(Some(&id), era),
                _ => reply::Answer::default()
                    .with("method", &method)
                    .reply(&id, era),
            }
        }
        Err(malformed) => malformed.error.reply(malformed.id.as_deref(), Era::Legacy),
    };
    let text = reply.body.unwrap_or_default();
    assert!(!text.contains('\n'), "{text}");
    let answer: serde_json::Value = serde_json::from_str(&text).expect("an answer is JSON");
    assert_eq!(answer["jsonrpc"], "2.0");
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_kept_message_is_answered() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus/envelope");
        let mut seen = 0;
        for file in std::fs::read_dir(folder).unwrap() {
            super::check(&std::fs::read(file.unwrap().path()).unwrap());
            seen += 1;
        }
        assert!(seen >= 20, "only {seen} messages were found");
    }
}
