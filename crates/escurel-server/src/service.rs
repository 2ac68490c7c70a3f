//! What every transport shares: the knowledge base, the tools, the counters.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use escurel_access::Caller;
use escurel_core::api::Status;
use escurel_core::{Code, Kb, Refusal};
use escurel_tools::{Call, Catalog, DispatchError, Run, dispatch, openapi};
use parking_lot::Mutex;
use serde_json::Value;

use crate::metrics::Metrics;
use crate::webhook::Webhook;

/// Counting every link is not for every probe: a count is kept at least so
/// long, and so many times as long as it took.
const STATUS_AGE: Duration = Duration::from_secs(1);
const STATUS_SHARE: u32 = 50;

pub struct Service {
    pub kb: Arc<Kb>,
    pub catalog: &'static Catalog,
    pub metrics: Metrics,
    /// Adds what the protocol's conformance suite asks for.
    pub fixtures: bool,
    /// Held so that it is told of events as long as this lives.
    _webhook: Option<Webhook>,
    openapi: OnceLock<Arc<str>>,
    /// Until when it is good enough.
    status: Mutex<Option<(Instant, Status)>>,
}

impl Service {
    pub fn new(kb: Arc<Kb>, fixtures: bool) -> Service {
        let (openapi, status) = (OnceLock::new(), Mutex::new(None));
        Service {
            kb,
            catalog: Catalog::standard(),
            metrics: Metrics::new(),
            fixtures,
            _webhook: None,
            openapi,
            status,
        }
    }

    /// With another program that is told of captured events.
    pub fn with_webhook(self, webhook: Option<Webhook>) -> Service {
        Service {
            _webhook: webhook,
            ..self
        }
    }

    /// Where this call may run; unknown names are refused at once.
    pub fn run_of(&self, tool: &str, arguments: &Value) -> Run {
        // A query is embedded before it is searched: milliseconds that others need not wait.
        if tool == "search" && self.kb.embeds() {
            return Run::Blocking;
        }
        self.catalog
            .find(tool)
            .map_or(Run::Inline, |entry| entry.spec.run.of(arguments))
    }

    /// Calls a tool. A handler that panics costs its caller an answer, nobody else.
    pub fn call(
        &self,
        caller: &Caller,
        tool: &str,
        arguments: Value,
    ) -> Result<String, DispatchError> {
        let begun = Instant::now();
        let cx = Call {
            kb: &self.kb,
            caller,
        };
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            dispatch(self.catalog, &cx, tool, arguments)
        }))
        .unwrap_or_else(|_| {
            let message = format!("The tool {tool} failed unexpectedly.");
            Err(DispatchError::Refused(Refusal::new(
                Code::Internal,
                message,
            )))
        });
        let name = self
            .catalog
            .find(tool)
            .map_or("unknown", |entry| entry.spec.name);
        self.metrics.called(name, &outcome, begun.elapsed());
        outcome
    }

    /// What is served and how it is doing; blocks, and links may be counted a while ago.
    pub fn status(&self) -> Status {
        let progress = self.kb.overview();
        if !progress.ready {
            return progress;
        }
        let mut kept = self.status.lock();
        let begun = Instant::now();
        if let Some((until, counted)) = &*kept
            && begun < *until
        {
            return Status {
                links: counted.links,
                broken_links: counted.broken_links,
                ambiguous_links: counted.ambiguous_links,
                ..progress
            };
        }
        let status = self.kb.status();
        let until = begun + STATUS_AGE.max(begun.elapsed() * STATUS_SHARE);
        *kept = Some((until, status.clone()));
        status
    }

    /// The OpenAPI document, written once.
    pub fn openapi(&self) -> Arc<str> {
        Arc::clone(
            self.openapi
                .get_or_init(|| openapi(self.catalog).to_string().into()),
        )
    }
}
