//! Calls with a key: carried out once, answered as often as they are repeated.
//!
//! The first record of a call's write carries key and digest, so write and key
//! are durable together; the answer follows as a record of its own. Invariant:
//! a call whose write may have happened is never carried out again.

use std::cell::RefCell;
use std::sync::Arc;

use escurel_access::Caller;
use escurel_store::{Draft, Kind};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::given::note;
use crate::kb::Core;
use crate::lane::Work;
use crate::tables::{DIGEST, KEY, REMEMBERED, RequestRow};
use crate::{Audience, Code, Refusal, Result};

/// A call that may come again.
pub struct Request<'a> {
    pub tool: &'a str,
    /// The caller's name for it.
    pub key: &'a str,
    /// Without the key, and with their declared types.
    pub arguments: &'a Value,
}

/// What a call came to.
pub struct Done {
    pub answer: String,
    /// False: nothing was to be written, or it was refused in the answer.
    pub wrote: bool,
}

/// Key and digest as they stand in records.
#[derive(Clone)]
struct Stamp {
    key: String,
    digest: String,
}

impl Core {
    /// Carries a call out unless it was before: then its answer is given again. Two at once are
    /// carried out once. What was refused is not remembered.
    ///
    /// # Errors
    /// `idempotency_conflict`: the key was used with other arguments; `request_interrupted`: it
    /// was recorded and the answer is lost; `content_erased`; those of `act`.
    pub fn once(
        &self,
        caller: &Caller,
        request: &Request<'_>,
        act: impl FnOnce() -> Result<Done>,
    ) -> Result<String> {
        self.demand_tables()?;
        let stamp = Stamp::of(caller, request);
        let _one = self.request_locks.lock(&stamp.key);
        if let Some(row) = self.remembered(&stamp) {
            return self.again(&row, &stamp);
        }
        let stamping = Stamping::begin(&stamp, caller);
        let outcome = act();
        let written = stamping.end();
        let answer = match &outcome {
            Ok(done) if done.wrote => Some(done.answer.as_bytes().into()),
            // It was recorded and something failed: it may be in effect.
            Err(refusal) if written && refusal.code.audience() != Audience::Caller => {
                return Err(refusal.clone());
            }
            // It was recorded and then refused: the key is free again.
            _ if written => None,
            _ => return outcome.map(|done| done.answer),
        };
        if let Err(refusal) = self.note_answer(caller, &stamp, answer) {
            tracing::warn!(%refusal, tool = request.tool, "an answer cannot be given again");
        }
        outcome.map(|done| done.answer)
    }

    fn remembered(&self, stamp: &Stamp) -> Option<Arc<RequestRow>> {
        let view = self.view.load();
        let row = view.tables.requests.get(&stamp.key)?;
        (row.at.saturating_add(REMEMBERED) > self.now()).then(|| row.clone())
    }

    fn again(&self, row: &RequestRow, stamp: &Stamp) -> Result<String> {
        let refuse = |code, why: String| Err(Refusal::new(code, why).at("idempotency_key"));
        if *row.digest != *stamp.digest {
            let why = "The key was used for a call with other arguments.";
            return refuse(Code::IdempotencyConflict, why.to_owned());
        }
        let Some(answer) = row.answer() else {
            let why = format!(
                "What the call wrote was recorded ({}), and its answer was lost.",
                row.wrote
            );
            return refuse(Code::RequestInterrupted, why);
        };
        let bytes = self.store.object(&answer)?;
        String::from_utf8(bytes)
            .map_err(|_| Refusal::new(Code::Io, "The stored answer is not UTF-8."))
    }

    fn note_answer(
        &self,
        caller: &Caller,
        stamp: &Stamp,
        content: Option<Arc<[u8]>>,
    ) -> Result<()> {
        let draft = Draft {
            content,
            note: note(stamp.fields()),
            ..Draft::new(Kind::RequestAnswered, &caller.subject)
        };
        self.append(vec![draft])?.publish(|_, _| Work::default())
    }
}

impl Stamp {
    /// The digest covers the key, which nobody else knows: without it the chain does not let
    /// anybody test a guess of what was written.
    fn of(caller: &Caller, request: &Request<'_>) -> Stamp {
        let named = [caller.subject.as_str(), request.tool, request.key];
        let mut arguments = String::new();
        write_canonical(request.arguments, &mut arguments);
        let all = [named[0], named[1], named[2], &arguments];
        Stamp {
            key: digest(&named),
            digest: digest(&all),
        }
    }

    fn fields(&self) -> [(&'static str, String); 2] {
        [(KEY, self.key.clone()), (DIGEST, self.digest.clone())]
    }
}

/// Of several texts, none of which can reach into the next.
fn digest(texts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for text in texts {
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text.as_bytes());
    }
    let bytes: [u8; 32] = hash.finalize().into();
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The same text for equal values, in whatever order their keys came.
fn write_canonical(value: &Value, out: &mut String) {
    match value {
        Value::Object(map) => {
            let mut fields: Vec<_> = map.iter().collect();
            fields.sort_unstable_by_key(|(name, _)| *name);
            out.push('{');
            for (name, value) in fields {
                out.push_str(&Value::from(name.as_str()).to_string());
                out.push(':');
                write_canonical(value, out);
                out.push(',');
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for item in items {
                write_canonical(item, out);
                out.push(',');
            }
            out.push(']');
        }
        plain => out.push_str(&plain.to_string()),
    }
}

struct Active {
    stamp: Stamp,
    subject: String,
    written: bool,
}

thread_local! {
    /// The call that this thread carries out: a write runs on one thread.
    static ACTIVE: RefCell<Option<Active>> = const { RefCell::new(None) };
}

/// While it lives, the first record of the caller on this thread is stamped.
struct Stamping;

impl Stamping {
    fn begin(stamp: &Stamp, caller: &Caller) -> Stamping {
        let active = Active {
            stamp: stamp.clone(),
            subject: caller.subject.clone(),
            written: false,
        };
        ACTIVE.set(Some(active));
        Stamping
    }

    /// Was anything written?
    fn end(self) -> bool {
        ACTIVE.with_borrow(|active| active.as_ref().is_some_and(|active| active.written))
    }
}

impl Drop for Stamping {
    fn drop(&mut self) {
        ACTIVE.set(None);
    }
}

/// Stamps the first draft of the call that this thread carries out. What others saved meanwhile
/// is recorded on this thread, too, but is not the call's.
pub(crate) fn stamp(drafts: &mut [Draft]) -> bool {
    ACTIVE.with_borrow(|active| {
        let Some(active) = active.as_ref().filter(|active| !active.written) else {
            return false;
        };
        let first = drafts
            .iter_mut()
            .find(|draft| draft.actor == active.subject);
        if let Some(draft) = first {
            draft.note.extend(note(active.stamp.fields()));
            return true;
        }
        false
    })
}

/// What was stamped is durable.
pub(crate) fn written() {
    ACTIVE.with_borrow_mut(|active| {
        if let Some(active) = active {
            active.written = true;
        }
    });
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn equal_calls_have_equal_stamps_and_others_do_not() {
        let stamp = |caller: &str, tool: &str, key: &str, arguments: Value| {
            let request = Request {
                tool,
                key,
                arguments: &arguments,
            };
            let stamp = Stamp::of(&Caller::agent(caller, []), &request);
            (stamp.key, stamp.digest)
        };
        let one = stamp(
            "a",
            "t",
            "k",
            json!({"x": 1, "y": {"b": [1, 2], "a": null}}),
        );
        let same = stamp(
            "a",
            "t",
            "k",
            json!({"y": {"a": null, "b": [1, 2]}, "x": 1}),
        );
        assert_eq!(one, same);
        let other = stamp(
            "a",
            "t",
            "k",
            json!({"x": "1", "y": {"b": [1, 2], "a": null}}),
        );
        assert_eq!(one.0, other.0);
        assert_ne!(one.1, other.1);
        for (caller, tool, key) in [("b", "t", "k"), ("a", "u", "k"), ("a", "tk", "")] {
            let other = stamp(caller, tool, key, json!({}));
            assert_ne!(one.0, other.0);
        }
        let (nested, flat) = (json!([[1], [2]]), json!([[1, 2]]));
        assert_ne!(stamp("a", "t", "k", nested), stamp("a", "t", "k", flat));
    }
}
