//! What became of the notices that were sent to another program: plain values,
//! so that tools can show them. Who sends is not known here.

use std::collections::VecDeque;
use std::time::Duration;

use escurel_access::Caller;
use escurel_md::When;
use parking_lot::Mutex;

use crate::Result;
use crate::api::{Deliveries, Delivery, DeliveryStatus};
use crate::kb::Core;

/// So many are remembered.
const KEPT: usize = 1_000;

#[derive(Default)]
pub(crate) struct DeliveryLog(Mutex<Log>);

#[derive(Default)]
struct Log {
    configured: bool,
    /// Oldest first.
    known: VecDeque<Delivery>,
}

/// What is to be noted of one delivery.
#[derive(Clone, Debug)]
pub struct Attempt {
    pub status: DeliveryStatus,
    /// So far.
    pub attempts: u32,
    pub http_status: Option<u16>,
    pub error: Option<String>,
    /// When it is tried again.
    pub again_in: Option<Duration>,
}

impl Core {
    /// Somebody sends notices.
    pub fn expect_deliveries(&self) {
        self.deliveries_log.0.lock().configured = true;
    }

    /// Notes how the delivery of an event stands.
    pub fn note_delivery(&self, event_id: &str, attempt: Attempt) {
        let now = self.now();
        let later = |wait: Duration| {
            let wait = i64::try_from(wait.as_micros()).unwrap_or(i64::MAX);
            When::to_rfc3339(now.saturating_add(wait))
        };
        let delivery = Delivery {
            event_id: event_id.to_owned(),
            at: When::to_rfc3339(now),
            status: attempt.status,
            attempts: attempt.attempts,
            http_status: attempt.http_status,
            error: attempt.error,
            next_attempt_at: attempt.again_in.map(later),
        };
        let known = &mut self.deliveries_log.0.lock().known;
        if let Some(before) = known.iter_mut().rfind(|d| d.event_id == event_id) {
            *before = delivery;
            return;
        }
        if known.len() == KEPT {
            known.pop_front();
        }
        known.push_back(delivery);
    }

    /// The last deliveries, the newest event first.
    ///
    /// # Errors
    /// `admin_required`.
    pub fn deliveries(&self, caller: &Caller, limit: usize) -> Result<Deliveries> {
        self.demand_admin(caller)?;
        let log = self.deliveries_log.0.lock();
        Ok(Deliveries {
            configured: log.configured,
            deliveries: log.known.iter().rev().take(limit).cloned().collect(),
        })
    }
}
