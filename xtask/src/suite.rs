//! What `test` and `check` run, in this order.
//!
//! Invariant: a step that cannot run here is reported by name. On a build
//! server (`CI=true`) that is a failure, so that nothing is silently left out.

use std::process::{Command, ExitCode};

use anyhow::{Result, bail};

use crate::cmd;
use crate::deny;
use crate::duckdb;
use crate::places::Places;
use crate::tally::{Count, Outcome, Tally};

/// Kills of the server in the crash loop; more of them are a command of its own.
const KILLS: &str = "10";

/// All checks, or with a filter only the tests, clients and live scripts it names.
pub fn test(places: &Places, filter: Option<&str>) -> Result<ExitCode> {
    let mut tally = Tally::default();
    duckdb::setup(places)?;
    if filter.is_none() {
        tally.step("format", || format(places));
        tally.step("lints", || lints(places));
        tally.step("deny", || deny::outcome(places));
    }
    tally.step("tests", || tests(places, filter));
    if tally.step("build", || build(places)) {
        tally.step("clients", || clients(places, filter));
        tally.step("live", || live(places, filter));
        if filter.is_none_or(|filter| "crash-loop".contains(filter)) {
            tally.step("crash-loop", || crash_loop(places));
        }
    }
    Ok(tally.finish())
}

/// The checks that take seconds.
pub fn check(places: &Places) -> Result<ExitCode> {
    let mut tally = Tally::default();
    duckdb::setup(places)?;
    tally.step("format", || format(places));
    tally.step("lints", || lints(places));
    Ok(tally.finish())
}

pub fn on_build_server() -> bool {
    std::env::var("CI").is_ok_and(|v| v == "true" || v == "1")
}

/// Left out on a person's machine, a failure on a build server.
pub fn absent(what: &str) -> Result<Outcome> {
    if on_build_server() {
        bail!("{what}");
    }
    Ok(Outcome::Skipped(what.to_owned()))
}

fn format(places: &Places) -> Result<Outcome> {
    one(cmd::cargo(places).args(["fmt", "--all", "--check"]))
}

fn lints(places: &Places) -> Result<Outcome> {
    one(cmd::cargo(places).args([
        "clippy",
        "--release",
        "--workspace",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ]))
}

fn tests(places: &Places, filter: Option<&str>) -> Result<Outcome> {
    let mut cargo = cmd::cargo(places);
    cargo
        .args(["test", "--release", "--workspace", "--no-fail-fast"])
        .args(filter);
    let mut count = Count::default();
    let status = cmd::each_line(&mut cargo, |line| count.add_line(line))?;
    Ok(Outcome::Counted(count.with_exit(status.success())))
}

/// The binary as it is shipped, and an editor that types into its pages.
fn build(places: &Places) -> Result<Outcome> {
    one(&mut cmd::build(places, &["escurel", "escurel-live-client"]))
}

fn clients(places: &Places, filter: Option<&str>) -> Result<Outcome> {
    match script(places, "tests/clients/run.py") {
        Some(run) => filtered(run, filter),
        None => absent("python3 is not installed"),
    }
}

/// What is quick of live editing.
fn live(places: &Places, filter: Option<&str>) -> Result<Outcome> {
    let Some(mut run) = script(places, "tests/live/run.py") else {
        return absent("python3 is not installed");
    };
    run.arg("--quick");
    filtered(run, filter)
}

fn crash_loop(places: &Places) -> Result<Outcome> {
    match script(places, "tests/crash-loop/run.py") {
        Some(mut run) => one(run.args(["--times", KILLS])),
        None => absent("python3 is not installed"),
    }
}

/// A script that drives the binary; none where there is no Python.
fn script(places: &Places, path: &str) -> Option<Command> {
    let python = ["python3", "python"].into_iter().find(|p| cmd::exists(p))?;
    let mut run = Command::new(python);
    run.arg(places.root.join(path));
    run.arg("--binary").arg(places.binary());
    run.arg("--cache").arg(places.cache.join("clients"));
    Some(run)
}

/// Runs a script that counts its checks, all of them or those that the filter names.
fn filtered(mut run: Command, filter: Option<&str>) -> Result<Outcome> {
    if let Some(filter) = filter {
        run.arg("--filter").arg(filter);
    }
    let mut count = Count::default();
    let status = cmd::each_line(&mut run, |line| count.add_line(line))?;
    Ok(Outcome::Counted(count.with_exit(status.success())))
}

fn one(command: &mut Command) -> Result<Outcome> {
    Ok(Outcome::Counted(Count::one(
        cmd::status(command)?.success(),
    )))
}
