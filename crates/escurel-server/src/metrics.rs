//! Counters for operators, in the Prometheus text format.
//!
//! Labels are tool names and codes, both closed sets: what callers send never
//! becomes a label.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use escurel_core::api::Status;
use escurel_tools::DispatchError;
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Outcome {
    tool: String,
    code: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Tool {
    tool: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct View {
    view: String,
}

type Number = Gauge<u64, AtomicU64>;

pub struct Metrics {
    registry: Registry,
    calls: Family<Outcome, Counter>,
    seconds: Family<Tool, Histogram>,
    gauges: Gauges,
}

#[derive(Default)]
struct Gauges {
    ready: Number,
    pages: Number,
    skills: Number,
    links: Number,
    broken_links: Number,
    held_deletions: Number,
    journal_seq: Number,
    lag: Family<View, Number>,
    vector_lane: Number,
    without_vectors: Number,
    embedded: Counter,
    resident: Number,
}

/// From microseconds to seconds.
fn latency() -> Histogram {
    Histogram::new([
        0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0,
    ])
}

impl Metrics {
    pub fn new() -> Metrics {
        let mut registry = Registry::with_prefix("escurel");
        let calls = Family::<Outcome, Counter>::default();
        registry.register("tool_calls", "Tool calls by outcome", calls.clone());
        let seconds = Family::<Tool, Histogram>::new_with_constructor(latency as fn() -> Histogram);
        registry.register_with_unit(
            "tool_call",
            "Time a tool call took",
            Unit::Seconds,
            seconds.clone(),
        );
        let gauges = Gauges::default();
        gauges.register(&mut registry);
        Metrics {
            registry,
            calls,
            seconds,
            gauges,
        }
    }

    pub fn called(&self, tool: &str, outcome: &Result<String, DispatchError>, took: Duration) {
        let code = match outcome {
            Ok(_) => "ok".to_owned(),
            Err(DispatchError::Refused(refusal)) => refusal.code.name().to_owned(),
            Err(error) => error.data()["code"].as_str().unwrap_or("error").to_owned(),
        };
        self.calls
            .get_or_create(&Outcome {
                tool: tool.to_owned(),
                code,
            })
            .inc();
        self.seconds
            .get_or_create(&Tool {
                tool: tool.to_owned(),
            })
            .observe(took.as_secs_f64());
    }

    /// The scrape body.
    pub fn scrape(&self, status: &Status) -> String {
        self.gauges.set(status);
        let mut out = String::new();
        if text::encode(&mut out, &self.registry).is_err() {
            tracing::error!("metrics could not be written");
        }
        out
    }
}

impl Default for Metrics {
    fn default() -> Metrics {
        Metrics::new()
    }
}

impl Gauges {
    fn register(&self, registry: &mut Registry) {
        registry.register(
            "ready",
            "1 when every page can be found",
            self.ready.clone(),
        );
        registry.register("pages", "Pages served", self.pages.clone());
        registry.register("skills", "Skills served", self.skills.clone());
        registry.register("links", "Links between pages", self.links.clone());
        registry.register(
            "broken_links",
            "Links that lead nowhere",
            self.broken_links.clone(),
        );
        registry.register(
            "held_deletions",
            "Deletions that wait for confirmation",
            self.held_deletions.clone(),
        );
        registry.register(
            "journal_seq",
            "Sequence number of the newest journal record",
            self.journal_seq.clone(),
        );
        registry.register(
            "index_lag_records",
            "Journal records that a view has not applied",
            self.lag.clone(),
        );
        registry.register(
            "vector_lane_on",
            "1 when pages are found by meaning, too",
            self.vector_lane.clone(),
        );
        registry.register(
            "pages_without_vectors",
            "Pages that only their words find yet",
            self.without_vectors.clone(),
        );
        registry.register(
            "embedded_texts",
            "Texts that got a vector since the start",
            self.embedded.clone(),
        );
        registry.register_with_unit(
            "resident_memory",
            "Resident memory",
            Unit::Bytes,
            self.resident.clone(),
        );
    }

    fn set(&self, status: &Status) {
        self.ready.set(u64::from(status.ready));
        self.pages.set(status.pages);
        self.skills.set(status.skills);
        self.links.set(status.links);
        self.broken_links.set(status.broken_links);
        self.held_deletions.set(status.held_deletions);
        self.journal_seq.set(status.journal_seq);
        for (view, seq) in [("text", status.text_seq), ("sql", status.sql_seq)] {
            let lag = status.journal_seq.saturating_sub(seq);
            self.lag
                .get_or_create(&View {
                    view: view.to_owned(),
                })
                .set(lag);
        }
        let vectors = &status.vectors;
        self.vector_lane.set(u64::from(vectors.state != "off"));
        self.without_vectors.set(vectors.waiting);
        // Counted where it happens; only grows.
        let seen = self.embedded.get();
        self.embedded.inc_by(vectors.embedded.saturating_sub(seen));
        self.resident.set(resident_bytes());
    }
}

/// 0 where the system does not tell.
fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok())
        .unwrap_or(0)
        * 1024
}
