//! The Model Context Protocol without a transport: bytes in, bytes and a status out.
//!
//! Serves the initialize-based versions and the stateless one on the same
//! endpoint. Keeps no sessions and sends nothing on its own. Invariant: every
//! request gets exactly one answer that carries its id.

mod envelope;
mod era;
mod fixtures;
#[cfg(test)]
mod hostile;
mod methods;
mod percent;
mod reply;
mod resources;
mod tools;

use escurel_access::Caller;
use escurel_tools::Run;

use crate::service::Service;
use envelope::Message;
pub use era::{Era, Headers, LEGACY, MODERN};
use methods::Method;
pub use reply::{Reply, RpcError};

/// Who asks, and what the service knows.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    pub service: &'a Service,
    pub caller: &'a Caller,
}

/// A message after the checks that touch no page.
pub enum Step {
    Done(Reply),
    Work(Work),
}

/// A request that is ready to be carried out.
pub struct Work {
    id: String,
    era: Era,
    method: Method,
}

impl Work {
    /// Whether it may run on a thread that must not block.
    pub fn run(&self) -> Run {
        self.method.run()
    }

    pub fn finish(self, cx: Context<'_>) -> Reply {
        match self.method.answer(cx, self.era) {
            Ok(answer) => answer.reply(&self.id, self.era),
            Err(error) => error.reply(Some(&self.id), self.era),
        }
    }

    /// The answer when the work could not be finished.
    pub fn give_up(id: Option<&str>, error: &RpcError) -> Reply {
        error.reply(id, Era::Legacy)
    }

    pub fn id(&self) -> &str {
        &self.id
    }
}

/// Answers one message. `headers` is `None` on transports that have none.
pub fn handle(cx: Context<'_>, headers: Option<&Headers<'_>>, body: &[u8]) -> Reply {
    match begin(cx, headers, body) {
        Step::Done(reply) => reply,
        Step::Work(work) => work.finish(cx),
    }
}

/// Reads and checks a message.
pub fn begin(cx: Context<'_>, headers: Option<&Headers<'_>>, body: &[u8]) -> Step {
    let (id, method, params) = match envelope::parse(body) {
        Ok(Message::Request { id, method, params }) => (id, method, params),
        Ok(Message::Notification) => return Step::Done(Reply::accepted()),
        Err(malformed) => {
            return Step::Done(malformed.error.reply(malformed.id.as_deref(), Era::Legacy));
        }
    };
    let era = era::of(headers, &method, &params);
    let checked = match era {
        Era::Modern => era::check(headers, &method, &params),
        Era::Legacy => Ok(()),
    };
    match checked.and_then(|()| Method::parse(cx.service, era, &method, params)) {
        Ok(method) => Step::Work(Work { id, era, method }),
        Err(error) => Step::Done(error.reply(Some(&id), era)),
    }
}
