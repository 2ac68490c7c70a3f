//! Stopping: the first signal asks, the second insists.

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// Tells everybody who waits that it is time to stop.
#[derive(Clone)]
pub struct Stop {
    sender: watch::Sender<bool>,
}

impl Default for Stop {
    fn default() -> Stop {
        Stop {
            sender: watch::Sender::new(false),
        }
    }
}

impl Stop {
    /// Stops on SIGINT or SIGTERM; a second one ends the process at once.
    pub fn on_signals() -> std::io::Result<Stop> {
        let stop = Stop::default();
        let (mut interrupt, mut terminate) = (
            signal(SignalKind::interrupt())?,
            signal(SignalKind::terminate())?,
        );
        let told = stop.clone();
        tokio::spawn(async move {
            loop {
                tokio::select! { _ = interrupt.recv() => {}, _ = terminate.recv() => {} }
                if told.asked() {
                    std::process::exit(130);
                }
                told.now();
            }
        });
        Ok(stop)
    }

    pub fn now(&self) {
        self.sender.send_replace(true);
    }

    pub fn asked(&self) -> bool {
        *self.sender.borrow()
    }

    pub async fn wait(self) {
        let mut receiver = self.sender.subscribe();
        // The sender lives as long as `self`.
        let _ = receiver.wait_for(|stop| *stop).await;
    }
}
