//! The meaning of the system: reads, the one door for writes, adoption of
//! outside edits, recovery.
//!
//! Knows no JSON shapes, no HTTP and no SQL text. Invariant: every read and
//! write takes a [`Caller`](escurel_access::Caller) and asks the policy.

pub mod api;
mod builtin;
mod chat;
mod deliveries;
mod erase;
mod errors;
mod facts;
mod given;
mod inbox;
mod kb;
mod lane;
mod lately;
mod live;
mod maintain;
mod meaning;
mod notices;
mod past;
mod progress;
mod read;
mod reconcile;
mod recover;
pub mod refusal;
mod repair;
mod requests;
mod sessions;
mod sight;
mod sql;
mod sums;
mod tables;
mod verify;
mod view;
mod write;

pub use deliveries::Attempt;
pub use kb::{Core, FAILPOINTS, Kb, OpenOptions, default_cache_home};
pub use maintain::Chore;
pub use meaning::Vectors;
pub use notices::Captured;
pub use refusal::{Audience, Code, Refusal, Result};
pub use requests::{Done, Request};
pub use sessions::{Hello, Listener, MAX_OP, OpAuthor, OpenRequest, Said};
pub use write::{AutonomyLint, Edit, Part, Position, Put, Then, Written};
