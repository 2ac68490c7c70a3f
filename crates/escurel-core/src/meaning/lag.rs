//! How far the vector lane is, for those who ask and for those who watch.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::{Meaning, Upkeep};
use crate::api::{LaneState, VectorStatus};
use crate::kb::Core;

/// Between two looks of somebody who watches.
const LOOK: Duration = Duration::from_millis(200);

impl Meaning {
    pub fn status(&self) -> VectorStatus {
        match self {
            Meaning::Off(why) => VectorStatus {
                state: "off",
                reason: Some(why.clone()),
                ..VectorStatus::default()
            },
            Meaning::On(upkeep) => upkeep.status(),
        }
    }
}

impl Upkeep {
    /// The lane in a query that it takes part in.
    pub(super) fn state(&self) -> LaneState {
        let status = self.lag();
        super::lane(status.state, status.reason)
    }

    fn status(&self) -> VectorStatus {
        let lag = self.lag();
        match self.questions.resting() {
            Some(error) => VectorStatus {
                state: "off",
                reason: Some(error.to_string()),
                ..lag
            },
            None => lag,
        }
    }

    fn lag(&self) -> VectorStatus {
        let queue = self.queue.lock();
        let waiting = queue.due.len() + queue.taken.len();
        let mut reason = match waiting {
            _ if !queue.begun => Some("the vectors are being loaded".to_owned()),
            0 => None,
            waiting => Some(format!("{waiting} pages have no vectors yet")),
        };
        if let (Some(reason), Some(failure)) = (&mut reason, &queue.failure) {
            reason.push_str(&format!(": {failure}"));
        }
        if let (Some(reason), true) = (&mut reason, queue.refused) {
            reason.push_str("; it is asked again after a restart");
        }
        VectorStatus {
            state: if reason.is_none() { "fresh" } else { "lagging" },
            reason,
            waiting: waiting as u64,
            embedded: self.embedded.load(Ordering::Relaxed),
        }
    }

    /// Nothing more gets vectors by itself.
    fn at_rest(&self) -> bool {
        let queue = self.queue.lock();
        queue.refused || (queue.begun && queue.due.is_empty() && queue.taken.is_empty())
    }
}

impl Core {
    /// Tells how many pages wait for their vectors until none does, the provider
    /// refuses, or the knowledge base closes.
    pub fn watch_vectors(&self, told: &mut dyn FnMut(&VectorStatus)) {
        let Some(upkeep) = self.meaning.upkeep() else {
            return;
        };
        while !self.stopping() && !upkeep.at_rest() {
            told(&upkeep.status());
            std::thread::sleep(LOOK);
        }
    }
}
