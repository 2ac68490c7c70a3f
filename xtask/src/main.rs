//! Developer commands: `cargo xtask setup | serve | test | check | bench | deny`.
//!
//! Owns how a checkout is prepared, run and checked. Refuses to know anything
//! about the product itself: it only starts the programs that do.
//! Invariant: it builds without DuckDB, so it can be what fetches DuckDB.

mod cmd;
mod deny;
mod duckdb;
mod places;
mod suite;
mod tally;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
#[command(about = "Prepare, run and check this checkout")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Fetch the DuckDB library and put it where builds and binaries find it.
    Setup,
    /// Build the release binary and serve a folder (without one: the demo corpus).
    Serve {
        /// Everything after `serve` goes to `escurel serve` as it stands.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Run every check: format, lints, licences, tests, then real clients, live editing and kills.
    Test {
        /// Run only the tests, client checks and live scripts whose name contains this.
        filter: Option<String>,
    },
    /// Run the quick checks alone: format and lints.
    Check,
    /// Measure the release binary: `--corpus DIR | --generate 1k|10k|100k`, `--model DIR`, `--json OUT`.
    Bench {
        /// Everything after `bench` goes to the bench as it stands.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Check licences, duplicate bans and sources of all dependencies.
    Deny,
}

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Serving goes on without the model; what it lacks then, both say themselves.
fn fetch_model(places: &places::Places) -> Result<()> {
    let mut pull = std::process::Command::new(places.binary());
    cmd::status(pull.args(["model", "pull", "--if-needed"])).map(drop)
}

fn run(command: Command) -> Result<ExitCode> {
    let places = places::Places::find()?;
    match command {
        Command::Setup => {
            duckdb::setup(&places)?;
            println!("DuckDB {} is ready.", duckdb::VERSION);
            Ok(ExitCode::SUCCESS)
        }
        Command::Serve { args } => {
            duckdb::setup(&places)?;
            cmd::run(&mut cmd::build(&places, &["escurel"]))?;
            fetch_model(&places)?;
            cmd::become_it(
                std::process::Command::new(places.binary())
                    .arg("serve")
                    .args(args),
            )
        }
        Command::Bench { args } => {
            duckdb::setup(&places)?;
            let mut build = cmd::build(&places, &["escurel-bench", "escurel"]);
            cmd::run(build.args(["--example", "prime"]))?;
            let mut bench = std::process::Command::new(places.release("escurel-bench"));
            cmd::become_it(bench.arg("--binary").arg(places.binary()).args(args))
        }
        Command::Test { filter } => suite::test(&places, filter.as_deref()),
        Command::Check => suite::check(&places),
        Command::Deny => deny::run(&places),
    }
}
