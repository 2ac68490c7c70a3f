use escurel_core::Refusal;
use escurel_core::api as core;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::spec::{Cli, Effect, Execution, Quota, Run, Scope, Spec};
use crate::table::Table;
use crate::tool::{Call, Tool};

const DEFAULT_LIMIT: usize = 50;

/// Tells which captured events were sent to the webhook and what came of it.
///
/// The newest event first, of the last 1,000 since the start. An event that could not be sent is
/// still in the inbox.
#[derive(Deserialize, JsonSchema)]
pub struct AdminWebhookDeliveries {
    /// At most this many.
    #[schemars(range(min = 1, max = 1000), extend("default" = DEFAULT_LIMIT))]
    limit: Option<usize>,
}

/// What became of events that were sent.
#[derive(Serialize, JsonSchema)]
pub struct Deliveries {
    /// False: the server has no webhook.
    configured: bool,
    /// The newest event first.
    deliveries: Vec<Delivery>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum DeliveryStatus {
    Delivered,
    Retrying,
    Failed,
    Dropped,
}

#[derive(Serialize, JsonSchema)]
struct Delivery {
    /// The event.
    event_id: String,
    /// When this came to be so.
    at: String,
    /// `dropped`: too many were waiting.
    status: DeliveryStatus,
    /// How often it was tried.
    attempts: u32,
    /// What the last attempt was answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    http_status: Option<u16>,
    /// Why the last attempt failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// When it is tried again.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_attempt_at: Option<String>,
}

impl Tool for AdminWebhookDeliveries {
    const SPEC: Spec = Spec {
        name: "admin_webhook_deliveries",
        title: "What the webhook was told",
        aliases: &[],
        scope: Scope::Admin,
        execution: Execution::Deterministic,
        effect: Effect::Read,
        quota: Quota::Free,
        run: Run::Inline,
        argument_aliases: &[],
        numbered: &[],
        examples: &[("the last ten", r#"{"limit": 10}"#)],
        cli: Cli {
            positional: &[],
            from_file: &[],
            table,
        },
    };
    type Output = Deliveries;

    fn call(self, cx: &Call<'_>) -> Result<Deliveries, Refusal> {
        let limit = self.limit.unwrap_or(DEFAULT_LIMIT);
        let log = cx.kb.deliveries(cx.caller, limit)?;
        let deliveries = log.deliveries.into_iter().map(Delivery::from);
        Ok(Deliveries {
            configured: log.configured,
            deliveries: deliveries.collect(),
        })
    }
}

impl From<core::Delivery> for Delivery {
    fn from(delivery: core::Delivery) -> Delivery {
        Delivery {
            event_id: delivery.event_id,
            at: delivery.at,
            status: match delivery.status {
                core::DeliveryStatus::Delivered => DeliveryStatus::Delivered,
                core::DeliveryStatus::Retrying => DeliveryStatus::Retrying,
                core::DeliveryStatus::Failed => DeliveryStatus::Failed,
                core::DeliveryStatus::Dropped => DeliveryStatus::Dropped,
            },
            attempts: delivery.attempts,
            http_status: delivery.http_status,
            error: delivery.error,
            next_attempt_at: delivery.next_attempt_at,
        }
    }
}

fn table(answer: &Value) -> Table {
    let columns = [
        ("At", "/at"),
        ("Event", "/event_id"),
        ("Status", "/status"),
        ("Attempts", "/attempts"),
        ("HTTP", "/http_status"),
        ("Error", "/error"),
    ];
    let table = Table::of(answer, "/deliveries", &columns).counted("delivery", "deliveries");
    match answer["configured"] == true {
        true => table,
        false => table.note("no webhook is configured: ESCUREL_WEBHOOK_URL"),
    }
}
