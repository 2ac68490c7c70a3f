//! The command line: serve a folder, be an agent's stdio server, ask a
//! question, look after the store.
//!
//! Owns arguments, the terminal and exit codes; everything else is a call.

mod args;
mod banner;
mod call;
mod demo;
mod eval;
mod failure;
mod folder;
mod mcp;
mod model;
mod progress;
mod serve;
mod show;
mod tool;
mod upkeep;

use std::process::ExitCode;

use clap::ArgMatches;
use escurel_server::config::{Config, Sources, default_file};
use escurel_server::logging;
use failure::Failure;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let matches = args::command().get_matches();
    match run(&matches) {
        Ok(code) => code,
        Err(failure) => {
            show::note(&failure.to_string());
            failure.exit_code()
        }
    }
}

fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let Some((name, given)) = matches.subcommand() else {
        return Err(Failure::usage("Name a command; --help lists them."));
    };
    match name {
        "completions" => return show::completions(given),
        "man" => return show::man(given),
        "version" => return show::version(),
        _ => {}
    }
    let config = settings(matches, given)?;
    logging::init(&config, name == "serve");
    match name {
        "serve" => serve::run(config, folder::to_serve(given)?),
        "mcp" => mcp::run(config, folder::to_serve(given)?),
        "rebuild" => upkeep::rebuild(config, given),
        "verify" => upkeep::verify(config, given),
        "confirm-deletions" => upkeep::confirm_deletions(config, given),
        "model" => model::run(&config, given),
        "journal" => upkeep::journal(config, given),
        "eval" => eval::run(&config, given),
        _ => tool::run(config, name, given),
    }
}

/// File, environment and flags.
fn settings(matches: &ArgMatches, given: &ArgMatches) -> Result<Config, Failure> {
    let named = matches.get_one::<std::path::PathBuf>("config").cloned();
    let env: Vec<(String, String)> = std::env::vars_os()
        .filter_map(|(k, v)| Some((k.into_string().ok()?, v.to_string_lossy().into_owned())))
        .collect();
    let file = named.or_else(|| default_file(|name| std::env::var(name).ok()));
    Ok(Config::load(&Sources {
        file,
        env,
        flags: args::flags(given),
    })?)
}
