//! The rim over a knowledge base in memory: no sockets, no processes.

mod eras;
mod http;
mod resources;
mod support;
mod tools;
mod traversal;
