//! Logs on standard error; standard output belongs to the command.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

use crate::config::{Config, LogFormat};

/// What the HTTP client traces holds headers, and keys in them; what the CRDT traces is of use to
/// nobody else.
const SILENT: [&str; 4] = [
    "ureq=off",
    "ureq_proto=off",
    "loro_internal=error",
    "loro_kv_store=error",
];

/// Whether `text` says what to log. A lone word that is no level would pass
/// as the name of a module and silence everything else.
pub fn is_filter(text: &str) -> bool {
    let lone = |part: &&str| part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    let levels = text
        .split(',')
        .map(str::trim)
        .filter(lone)
        .all(|part| part.is_empty() || part.parse::<LevelFilter>().is_ok());
    levels && EnvFilter::try_new(text).is_ok()
}

/// `verbose`: a server tells what it does, a command only what went wrong.
pub fn init(config: &Config, verbose: bool) {
    let wanted = if verbose || config.log != "info" {
        config.log.as_str()
    } else {
        "warn"
    };
    // Settings are checked when they are read.
    let filter = EnvFilter::try_new(wanted).unwrap_or_else(|_| EnvFilter::new("info"));
    let filter = SILENT
        .iter()
        .filter_map(|target| target.parse().ok())
        .fold(filter, EnvFilter::add_directive);
    let human = match config.log_format {
        LogFormat::Auto => std::io::stderr().is_terminal(),
        LogFormat::Human => true,
        LogFormat::Json => false,
    };
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    // A second start in the same process keeps the first one's logs.
    let _ = if human {
        builder.with_target(false).try_init()
    } else {
        builder.json().flatten_event(true).try_init()
    };
}
