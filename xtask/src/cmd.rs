//! Starting other programs, with errors that name the program.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, ExitCode, ExitStatus, Stdio};

use anyhow::{Context, Result, ensure};

use crate::places::{self, Places};

/// Cargo, in the checkout.
pub fn cargo(places: &Places) -> Command {
    let mut command = Command::new(places::cargo());
    command.current_dir(&places.root);
    command
}

/// Builds binaries of the workspace. The whole workspace decides the features of
/// dependencies, so that most of what the tests compiled serves here too; features
/// that only tests ask for stay out, and what has such is compiled again.
pub fn build(places: &Places, binaries: &[&str]) -> Command {
    let mut command = cargo(places);
    command.args(["build", "--release", "--workspace"]);
    binaries.iter().for_each(|name| {
        command.args(["--bin", name]);
    });
    command
}

/// Runs to the end and asks for success.
pub fn run(command: &mut Command) -> Result<()> {
    let status = status(command)?;
    ensure!(status.success(), "{} failed ({status})", name(command));
    Ok(())
}

pub fn status(command: &mut Command) -> Result<ExitStatus> {
    command
        .status()
        .with_context(|| format!("{} could not be started", name(command)))
}

/// Runs to the end; each line of standard output is printed and handed on.
pub fn each_line(command: &mut Command, mut seen: impl FnMut(&str)) -> Result<ExitStatus> {
    command.stdout(Stdio::piped());
    let mut child = command
        .spawn()
        .with_context(|| format!("{} could not be started", name(command)))?;
    if let Some(stdout) = child.stdout.take() {
        let mut reader = BufReader::new(stdout);
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line)? > 0 {
            std::io::stdout().write_all(&line)?;
            seen(String::from_utf8_lossy(&line).trim_end());
            line.clear();
        }
    }
    Ok(child.wait()?)
}

/// Whether a program of this name can be started at all.
pub fn exists(program: impl AsRef<OsStr>) -> bool {
    Command::new(program)
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Gives this process over to the program, so that signals reach it.
#[cfg(unix)]
pub fn become_it(command: &mut Command) -> Result<ExitCode> {
    use std::os::unix::process::CommandExt;
    let error = command.exec();
    Err(error).with_context(|| format!("{} could not be started", name(command)))
}

#[cfg(not(unix))]
pub fn become_it(command: &mut Command) -> Result<ExitCode> {
    let code = status(command)?.code().unwrap_or(1);
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)))
}

fn name(command: &Command) -> String {
    command.get_program().to_string_lossy().into_owned()
}
