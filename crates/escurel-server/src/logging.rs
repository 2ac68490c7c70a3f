//! Logs on standard error; standard output belongs to the command.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

use crate::config::{Config, LogFormat};

/// `verbose`: a server tells what it does, a command only what went wrong.
pub fn init(config: &Config, verbose: bool) {
    let wanted = if verbose || config.log != "info" {
        config.log.as_str()
    } else {
        "warn"
    };
    let filter = EnvFilter::try_new(wanted).unwrap_or_else(|error| {
        eprintln!("config_invalid: ESCUREL_LOG is not a filter: {error}. Using info.");
        EnvFilter::new("info")
    });
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
