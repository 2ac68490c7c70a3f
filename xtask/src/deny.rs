//! Licences, bans and sources of every dependency, by cargo-deny.
//!
//! Owns the tool's installation in the user's cache. Never asks for the
//! advisory database: that needs a network that a build may not have.

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};

use crate::cmd;
use crate::places::{self, Places};
use crate::suite;
use crate::tally::{Count, Outcome, Tally};

const VERSION: &str = "0.20.2";

pub fn run(places: &Places) -> Result<ExitCode> {
    let mut tally = Tally::default();
    tally.step("deny", || outcome(places));
    Ok(tally.finish())
}

pub fn outcome(places: &Places) -> Result<Outcome> {
    let tool = match tool(places) {
        Ok(tool) => tool,
        Err(error) => return suite::absent(&format!("cargo-deny is not to be had: {error:#}")),
    };
    let status = cmd::status(Command::new(tool).current_dir(&places.root).args([
        "--workspace",
        "check",
        "licenses",
        "bans",
        "sources",
    ]))?;
    Ok(Outcome::Counted(Count::one(status.success())))
}

/// The pinned version, built once per user.
fn tool(places: &Places) -> Result<PathBuf> {
    let home = places.cache.join(format!("tools/cargo-deny-{VERSION}"));
    let tool = home.join(format!("bin/cargo-deny{}", std::env::consts::EXE_SUFFIX));
    if cmd::exists(&tool) {
        return Ok(tool);
    }
    eprintln!("Building cargo-deny {VERSION} once (some minutes) ...");
    std::fs::create_dir_all(&home)?;
    let scratch = home.join("build");
    // Built for a fast build, since it runs for a second. Its own target
    // folder and working folder keep this checkout's settings out of it.
    let built = cmd::run(
        Command::new(places::cargo())
            .current_dir(&home)
            .env("CARGO_TARGET_DIR", &scratch)
            .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1")
            .env("CARGO_PROFILE_RELEASE_LTO", "off")
            .env("CARGO_PROFILE_RELEASE_DEBUG", "0")
            .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16")
            .args([
                "install",
                "cargo-deny",
                "--locked",
                "--quiet",
                "--version",
                VERSION,
                "--root",
            ])
            .arg(&home),
    );
    // Hundreds of megabytes that nothing reads again.
    let _ = std::fs::remove_dir_all(&scratch);
    built.context("it could not be built")?;
    Ok(tool)
}
