//! Tells those who asked of what was captured, after it can be read and in
//! the order of the journal.
//!
//! Invariant: no lock is held while a listener runs, so that it may call the
//! knowledge base.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use escurel_store::Record;
use parking_lot::{Mutex, RwLock};

use crate::kb::Core;
use crate::tables::text;

/// An event that is in the inbox now. Who may see it is asked of [`Core::event`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Captured {
    pub event_id: Arc<str>,
    /// Of its record: grows from one to the next.
    pub seq: u64,
}

impl Captured {
    pub(crate) fn of(record: &Record) -> Option<Captured> {
        Some(Captured {
            event_id: text(record, "event_id")?.into(),
            seq: record.seq,
        })
    }
}

type Listener = dyn Fn(&Core, &Captured) + Send + Sync;

#[derive(Default)]
pub(crate) struct Notices {
    listeners: RwLock<Vec<Arc<Listener>>>,
    queue: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Captured>,
    /// Somebody tells; he goes on until nothing waits.
    busy: bool,
}

impl Notices {
    /// Called in the order of the journal, once the state is shown.
    pub fn push(&self, captured: Vec<Captured>) {
        self.queue.lock().waiting.extend(captured);
    }
}

impl Core {
    /// From now on tells `listener` of each captured event, once. It runs on threads that
    /// write: what takes time belongs on a thread of its own.
    pub fn on_event(&self, listener: impl Fn(&Core, &Captured) + Send + Sync + 'static) {
        self.notices.listeners.write().push(Arc::new(listener));
    }

    pub(crate) fn tell_captured(&self) {
        let mut queue = self.notices.queue.lock();
        if queue.busy {
            return;
        }
        queue.busy = true;
        while let Some(captured) = queue.waiting.pop_front() {
            drop(queue);
            let listeners = self.notices.listeners.read().clone();
            for listener in listeners {
                if catch_unwind(AssertUnwindSafe(|| listener(self, &captured))).is_err() {
                    tracing::error!("a listener for events panicked");
                }
            }
            queue = self.notices.queue.lock();
        }
        queue.busy = false;
    }
}
