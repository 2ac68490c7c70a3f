//! The rim over a knowledge base in memory: no sockets, no processes.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

mod eras;
mod http;
mod resources;
mod support;
mod tools;
mod traversal;
mod webhook;
