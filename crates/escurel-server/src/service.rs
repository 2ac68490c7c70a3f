//! What every transport shares: the knowledge base, the tools, the counters.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use escurel_access::Caller;
use escurel_core::{Code, Kb, Refusal};
use escurel_tools::{Call, Catalog, DispatchError, Run, dispatch, openapi};
use serde_json::Value;

use crate::metrics::Metrics;

pub struct Service {
    pub kb: Arc<Kb>,
    pub catalog: &'static Catalog,
    pub metrics: Metrics,
    /// Adds what the protocol's conformance suite asks for.
    pub fixtures: bool,
    openapi: OnceLock<Arc<str>>,
}

impl Service {
    pub fn new(kb: Arc<Kb>, fixtures: bool) -> Service {
        Service { kb, catalog: Catalog::standard(), metrics: Metrics::new(), fixtures, openapi: OnceLock::new() }
    }

    /// Where a call of this tool may run; unknown names are refused at once.
    pub fn run_of(&self, tool: &str) -> Run {
        self.catalog.find(tool).map_or(Run::Inline, |entry| entry.spec.run)
    }

    /// Calls a tool. A handler that panics costs its caller an answer, nobody else.
    pub fn call(&self, caller: &Caller, tool: &str, arguments: Value) -> Result<Value, DispatchError> {
        let begun = Instant::now();
        let cx = Call { kb: &self.kb, caller };
        let outcome = catch_unwind(AssertUnwindSafe(|| dispatch(self.catalog, &cx, tool, arguments))).unwrap_or_else(|_| {
            let message = format!("The tool {tool} failed unexpectedly.");
            Err(DispatchError::Refused(Refusal::new(Code::Internal, message)))
        });
        let name = self.catalog.find(tool).map_or("unknown", |entry| entry.spec.name);
        self.metrics.called(name, &outcome, begun.elapsed());
        outcome
    }

    /// The OpenAPI document, written once.
    pub fn openapi(&self) -> Arc<str> {
        Arc::clone(self.openapi.get_or_init(|| openapi(self.catalog).to_string().into()))
    }
}
