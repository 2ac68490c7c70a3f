#![no_main]
//! Protocol messages: any bytes as a body, any bytes as headers.
//!
//! The modules are taken as they are, without the server around them, so that
//! the target builds in seconds.

use libfuzzer_sys::fuzz_target;

#[allow(dead_code)]
#[path = "../../crates/escurel-server/src/mcp/envelope.rs"]
mod envelope;
#[allow(dead_code)]
#[path = "../../crates/escurel-server/src/mcp/era.rs"]
mod era;
#[path = "../../crates/escurel-server/src/mcp/hostile.rs"]
mod hostile;
#[allow(dead_code)]
#[path = "../../crates/escurel-server/src/mcp/percent.rs"]
mod percent;
#[allow(dead_code)]
#[path = "../../crates/escurel-server/src/mcp/reply.rs"]
mod reply;

fuzz_target!(|data: &[u8]| hostile::check(data));
