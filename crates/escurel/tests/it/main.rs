//! The real binary: processes, ports, sockets, signals.

mod clients;
mod command_line;
mod serve;
mod stdio;
mod support;
