//! Models from real HTTP servers and from folders.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

mod client;
mod folders;
mod index;
mod support;
mod wheel;
