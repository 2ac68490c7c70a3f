//! The meaning of the system: reads, the one door for writes, reconciliation of
//! outside edits, recovery.
//!
//! Knows no JSON shapes, no HTTP and no SQL text. Invariant: every read and
//! write takes a [`Caller`](escurel_access::Caller) and asks the policy.

pub mod api;
mod kb;
pub mod refusal;

pub use kb::{Kb, OpenOptions};
pub use refusal::{Audience, Code, Refusal, Result};
