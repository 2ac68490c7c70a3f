//! Tells another program of each captured event, by HTTP.
//!
//! Never in the way of a capture: what does not fit the queue is dropped and
//! noted, and the other program can ask for the inbox at any time. Invariant:
//! what is signed is exactly what is sent.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::Weak;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use escurel_access::Caller;
use escurel_core::api::DeliveryStatus;
use escurel_core::{Attempt, Kb};
use escurel_fetch::{Client, Url};
use escurel_tools::event_json;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::Value;
use sha2::Sha256;

use crate::config::{Config, Secret};

const SIGNATURE: &str = "X-Escurel-Webhook-Signature";
/// Events that wait to be sent, and as many again that wait for another attempt.
const QUEUE: usize = 10_000;
const ATTEMPTS: u32 = 5;
/// How long a stop waits for an answer that is under way.
const GRACE: Duration = Duration::from_secs(2);

/// Where to, and how patiently.
#[derive(Clone)]
pub struct Sink {
    pub url: Url,
    pub secret: Option<Secret>,
    /// Before the second attempt; doubled with each one.
    pub rest: Duration,
    /// An answer that takes longer is none.
    pub within: Duration,
}

impl Sink {
    pub fn of(config: &Config) -> Option<Sink> {
        Some(Sink {
            url: config.webhook_url.clone()?,
            secret: config.webhook_secret.clone(),
            rest: Duration::from_secs(1),
            within: Duration::from_secs(10),
        })
    }
}

/// Sends until it is dropped.
pub struct Webhook {
    jobs: SyncSender<Job>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

enum Job {
    Send(Arc<str>),
    Stop,
}

impl Webhook {
    /// # Errors
    /// When there is no thread for it.
    pub fn start(kb: &Arc<Kb>, sink: Sink) -> std::io::Result<Webhook> {
        let (jobs, waiting) = sync_channel(QUEUE);
        let stop = Arc::new(AtomicBool::new(false));
        let sender = Sending {
            kb: Arc::downgrade(kb),
            sink,
            client: Client::default(),
            stop: Arc::clone(&stop),
            pending: BTreeMap::new(),
            came: 0,
        };
        let thread = std::thread::Builder::new()
            .name("escurel-webhook".into())
            .spawn(move || sender.run(&waiting))?;
        kb.expect_deliveries();
        let (queue, stopped) = (jobs.clone(), Arc::clone(&stop));
        kb.on_event(move |core, captured| {
            let id = &captured.event_id;
            if !stopped.load(Ordering::Acquire) && queue.try_send(Job::Send(id.clone())).is_err() {
                core.note_delivery(id, dropped(0));
            }
        });
        Ok(Webhook {
            jobs,
            stop,
            thread: Some(thread),
        })
    }
}

impl Drop for Webhook {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        // A full queue needs no wake-up.
        let _ = self.jobs.try_send(Job::Stop);
        let Some(thread) = self.thread.take() else {
            return;
        };
        let deadline = Instant::now() + GRACE;
        while !thread.is_finished() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        if thread.is_finished() {
            let _ = thread.join();
        }
    }
}

fn dropped(attempts: u32) -> Attempt {
    tracing::warn!("too many events wait for the webhook; one is not sent");
    Attempt {
        status: DeliveryStatus::Dropped,
        attempts,
        http_status: None,
        error: Some("too many events wait".to_owned()),
        again_in: None,
    }
}

/// An event and how often it was tried to send it.
struct Pending {
    event_id: Arc<str>,
    attempts: u32,
}

struct Sending {
    kb: Weak<Kb>,
    sink: Sink,
    client: Client,
    stop: Arc<AtomicBool>,
    /// By the time at which they are due.
    pending: BTreeMap<(Instant, u64), Pending>,
    came: u64,
}

/// What one request came to.
struct Outcome {
    http_status: Option<u16>,
    error: Option<String>,
}

impl Sending {
    fn run(mut self, jobs: &Receiver<Job>) {
        loop {
            match jobs.recv_timeout(self.pause()) {
                Ok(Job::Send(event_id)) => {
                    let pending = Pending {
                        event_id,
                        attempts: 0,
                    };
                    self.wait(pending, Instant::now());
                }
                Err(RecvTimeoutError::Timeout) => {}
                Ok(Job::Stop) | Err(RecvTimeoutError::Disconnected) => return,
            }
            if !self.send_due() {
                return;
            }
        }
    }

    /// Until the next one is due.
    fn pause(&self) -> Duration {
        let first = self.pending.first_key_value();
        first.map_or(Duration::from_secs(3600), |((due, _), _)| {
            due.saturating_duration_since(Instant::now())
        })
    }

    fn wait(&mut self, pending: Pending, due: Instant) {
        self.came += 1;
        self.pending.insert((due, self.came), pending);
    }

    /// False: it is over.
    fn send_due(&mut self) -> bool {
        while let Some(first) = self.pending.first_entry() {
            if self.stop.load(Ordering::Acquire) {
                return false;
            }
            if first.key().0 > Instant::now() {
                break;
            }
            let pending = first.remove();
            let Some(kb) = self.kb.upgrade() else {
                return false;
            };
            self.send(&kb, pending);
        }
        !self.stop.load(Ordering::Acquire)
    }

    fn send(&mut self, kb: &Kb, mut pending: Pending) {
        let Outcome { http_status, error } = self.post(kb, &pending.event_id);
        pending.attempts += 1;
        let event_id = Arc::clone(&pending.event_id);
        let mut attempt = Attempt {
            status: DeliveryStatus::Delivered,
            attempts: pending.attempts,
            http_status,
            error,
            again_in: None,
        };
        if attempt.error.is_some() {
            attempt = self.again(pending, attempt);
        }
        kb.note_delivery(&event_id, attempt);
    }

    fn again(&mut self, pending: Pending, attempt: Attempt) -> Attempt {
        if pending.attempts >= ATTEMPTS {
            tracing::warn!(
                event = &*pending.event_id,
                error = attempt.error,
                "the webhook could not be told of an event"
            );
            return Attempt {
                status: DeliveryStatus::Failed,
                ..attempt
            };
        }
        if self.pending.len() >= QUEUE {
            return dropped(pending.attempts);
        }
        let rest = self.sink.rest * 2u32.pow(pending.attempts - 1);
        self.wait(pending, Instant::now() + rest);
        Attempt {
            status: DeliveryStatus::Retrying,
            again_in: Some(rest),
            ..attempt
        }
    }

    fn post(&self, kb: &Kb, event_id: &str) -> Outcome {
        let failed = |error: String| Outcome {
            http_status: None,
            error: Some(error),
        };
        // The stored event, as an administrator sees it: who receives it is the operator's choice.
        let event = match kb.event(&Caller::local(), event_id) {
            Ok(event) => event,
            Err(refusal) => return failed(refusal.to_string()),
        };
        let mut payload = event_json(event);
        payload.insert("tenant_id".to_owned(), kb.tenant().into());
        let body = Value::Object(payload).to_string();
        let signature = self
            .sink
            .secret
            .as_ref()
            .map(|s| signature(s, body.as_bytes()));
        let header = signature.as_deref().map(|value| (SIGNATURE, value));
        let sink = &self.sink;
        match self
            .client
            .send(&sink.url, header, body.into_bytes(), sink.within)
        {
            Ok(answer) => Outcome {
                http_status: Some(answer.status),
                error: (!(200..300).contains(&answer.status))
                    .then(|| format!("it answered {}", answer.status)),
            },
            Err(error) => failed(error.to_string()),
        }
    }
}

/// `sha256=` and the HMAC-SHA256 of the body in lower-case hex.
fn signature(secret: &Secret, body: &[u8]) -> String {
    let key = secret.reveal().as_bytes();
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else {
        // HMAC takes keys of every length.
        return String::new();
    };
    mac.update(body);
    let digest = mac.finalize().into_bytes();
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256={hex}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Setting, Sources};

    #[test]
    fn settings_make_a_sink_and_show_no_secret() {
        let load = |pairs: &[(&str, &str)]| {
            let pairs = pairs
                .iter()
                .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
            let sources = Sources {
                env: pairs.collect(),
                ..Sources::default()
            };
            Config::load(&sources).unwrap()
        };
        assert!(Sink::of(&load(&[("ESCUREL_WEBHOOK_SECRET", "hush")])).is_none());
        let config = load(&[
            ("ESCUREL_WEBHOOK_URL", "https://runner.example/hook"),
            ("ESCUREL_WEBHOOK_SECRET", "hush"),
        ]);
        assert!(!format!("{config:?}").contains("hush"));
        let sink = Sink::of(&config).unwrap();
        assert_eq!(sink.url.as_str(), "https://runner.example/hook");
        assert_eq!(sink.secret.unwrap().reveal(), "hush");
    }

    /// Test case 2 of RFC 4231.
    #[test]
    fn the_signature_is_hmac_sha256() {
        let secret = Secret::parse("Jefe").unwrap();
        assert_eq!(
            signature(&secret, b"what do ya want for nothing?"),
            "sha256=5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
    }
}
