//! The rim: configuration, boot, HTTP, MCP framing, stdio.
//!
//! Turns transports into calls of `escurel-tools` and back. Holds no rule about
//! pages. Invariant: whoever calls is known before anything is dispatched, and
//! never from the arguments of the call.

pub mod boot;
pub mod client;
pub mod config;
pub mod http;
pub mod logging;
pub mod mcp;
pub mod metrics;
pub mod model;
mod service;
pub mod stdio;
pub mod upkeep;
pub mod webhook;
mod ws;

pub use service::Service;
pub use ws::Sockets;
