//! Everything that makes a run differ from another: time, randomness, faults.
//!
//! No other file of the project reads the wall clock or draws random bytes, so
//! a run with [`ManualClock`] and [`SeededIds`] is repeatable.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use sha2::{Digest, Sha256};

use crate::Uid;

/// Wall clock in UTC microseconds since 1970.
pub trait Clock: Send + Sync {
    fn now_micros(&self) -> i64;
}

/// The machine's clock.
pub struct SystemClock;

impl Clock for SystemClock {
    #[allow(clippy::disallowed_methods, reason = "the one home of the wall clock")]
    fn now_micros(&self) -> i64 {
        match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(after) => i64::try_from(after.as_micros()).unwrap_or(i64::MAX),
            Err(before) => -i64::try_from(before.duration().as_micros()).unwrap_or(i64::MAX),
        }
    }
}

/// A clock that moves only when told to.
pub struct ManualClock(AtomicI64);

impl ManualClock {
    pub fn new(start_micros: i64) -> Self {
        Self(AtomicI64::new(start_micros))
    }

    pub fn advance(&self, micros: i64) {
        self.0.fetch_add(micros, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now_micros(&self) -> i64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// Source of page ids and of the salts that keep object names unguessable.
pub trait Ids: Send + Sync {
    fn uid(&self, now_micros: i64) -> Uid;
    fn salt(&self) -> [u8; 32];
}

/// The operating system's random source.
pub struct RandomIds;

impl RandomIds {
    fn fill<const N: usize>() -> [u8; N] {
        let mut out = [0; N];
        // A system without randomness cannot run safely; time and address mixed
        // through SHA-256 keep ids distinct where the call fails, which Linux
        // and macOS do not after boot.
        if getrandom::fill(&mut out).is_err() {
            static CALLS: AtomicU64 = AtomicU64::new(0);
            let mut hash = Sha256::new();
            hash.update(CALLS.fetch_add(1, Ordering::SeqCst).to_le_bytes());
            hash.update(SystemClock.now_micros().to_le_bytes());
            hash.update(std::process::id().to_le_bytes());
            let digest: [u8; 32] = hash.finalize().into();
            for (to, from) in out.iter_mut().zip(digest) {
                *to = from;
            }
        }
        out
    }
}

impl Ids for RandomIds {
    fn uid(&self, now_micros: i64) -> Uid {
        Uid::from_parts(now_micros, u128::from_le_bytes(Self::fill()))
    }

    fn salt(&self) -> [u8; 32] {
        Self::fill()
    }
}

/// Repeatable ids: the n-th call with one seed always gives the same value.
pub struct SeededIds {
    seed: u64,
    calls: AtomicU64,
}

impl SeededIds {
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            calls: AtomicU64::new(0),
        }
    }

    fn next(&self) -> [u8; 32] {
        let call = self.calls.fetch_add(1, Ordering::SeqCst);
        let mut hash = Sha256::new();
        hash.update(self.seed.to_le_bytes());
        hash.update(call.to_le_bytes());
        hash.finalize().into()
    }
}

impl Ids for SeededIds {
    fn uid(&self, now_micros: i64) -> Uid {
        let mut random = [0; 16];
        random.copy_from_slice(&self.next()[..16]);
        Uid::from_parts(now_micros, u128::from_le_bytes(random))
    }

    fn salt(&self) -> [u8; 32] {
        self.next()
    }
}

/// Named places at which a test may inject an IO failure or end the process.
pub trait Failpoints: Send + Sync {
    /// `Err` is treated as if the IO operation at that place had failed.
    fn reach(&self, point: &'static str) -> io::Result<()>;
}

pub struct NoFailpoints;

impl Failpoints for NoFailpoints {
    fn reach(&self, _: &'static str) -> io::Result<()> {
        Ok(())
    }
}

/// What is passed to everything that needs time, ids or faults.
#[derive(Clone)]
pub struct Env {
    pub clock: Arc<dyn Clock>,
    pub ids: Arc<dyn Ids>,
    pub failpoints: Arc<dyn Failpoints>,
}

impl Env {
    pub fn system() -> Env {
        Env {
            clock: Arc::new(SystemClock),
            ids: Arc::new(RandomIds),
            failpoints: Arc::new(NoFailpoints),
        }
    }
}
