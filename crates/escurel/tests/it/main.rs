//! The real binary: processes, ports, sockets, signals.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

mod clients;
mod command_line;
mod eval;
mod live;
mod meaning;
mod model;
mod serve;
mod stdio;
mod support;
