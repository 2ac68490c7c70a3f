//! What this program asks of other machines: the one HTTP client, and model
//! files, fetched and checked.
//!
//! Owns how a model gets into its folder. Refuses to know settings, and never
//! runs a model. Invariant: a file is in its place whole and checked, or not
//! at all.

mod client;
mod download;
mod error;
mod index;
mod model;
mod part;
mod pull;
mod unpack;

pub use client::{Answer, Client, Unanswered};
pub use error::FetchError;
pub use model::{MINILM, Model, Pinned, State};
pub use url::Url;

pub use pull::{Existing, Outcome, Pull, Source, Step};
