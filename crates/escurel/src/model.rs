//! `escurel model pull` and `escurel model status`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::ArgMatches;
use escurel_fetch::{MINILM, Outcome, State, Step};
use escurel_server::config::Config;
use escurel_server::model::{self, Status};
use serde_json::json;

use crate::failure::Failure;
use crate::progress::{Shown, Unit};
use crate::show;

pub fn run(config: &Config, given: &ArgMatches) -> Result<ExitCode, Failure> {
    match given.subcommand() {
        Some(("pull", given)) => pull(config, given),
        Some(("status", given)) => status(config, given),
        _ => Err(Failure::usage("Name pull or status.")),
    }
}

fn pull(config: &Config, given: &ArgMatches) -> Result<ExitCode, Failure> {
    if given.get_flag("if-needed") && !model::is_lacking(config) {
        return Ok(ExitCode::SUCCESS);
    }
    let from = given.get_one::<PathBuf>("from");
    let mut shown = Shown::new(Unit::Bytes);
    let pulled = model::pull(config, from.map(PathBuf::as_path), &mut |step| {
        show_step(&mut shown, step);
    });
    shown.finish();
    let outcome = pulled?;
    let folder = model::folder(config);
    if show::for_people(given) {
        let folder = folder.display();
        show::line(&match outcome {
            Outcome::WasThere => format!("{} is already in {folder}, intact.", MINILM.name),
            Outcome::Placed => format!(
                "{} is in {folder}. Servers that start from now on find pages by meaning, too.",
                MINILM.name
            ),
        });
    } else {
        show::json(&json!({
            "model": MINILM.name,
            "folder": folder,
            "state": "intact",
            "fetched": outcome == Outcome::Placed,
        }));
    }
    Ok(ExitCode::SUCCESS)
}

fn show_step(shown: &mut Shown, step: Step) {
    match step {
        Step::Waiting => show::note("Another process fetches the model; waiting for it."),
        Step::Fetching(got, whole) => shown.at("fetching", got, whole),
        Step::Checking => shown.doing("checking"),
        Step::Unpacking => shown.doing("unpacking"),
    }
}

/// Exit code 1 when the model is not there as it should be.
fn status(config: &Config, given: &ArgMatches) -> Result<ExitCode, Failure> {
    let status = model::status(config)?;
    if show::for_people(given) {
        show::line(&sentence(&status));
    } else {
        show::json(&json!({
            "model": MINILM.name,
            "folder": status.folder,
            "state": match status.state {
                State::Absent => "absent",
                State::Different(_) => "different",
                State::Intact => "intact",
            },
            "arrived_bytes": status.arrived,
            "download_bytes": status.download,
            "used": status.used,
        }));
    }
    Ok(match status.state {
        State::Intact => ExitCode::SUCCESS,
        _ => ExitCode::from(1),
    })
}

fn sentence(status: &Status) -> String {
    let folder = status.folder.display();
    let mut text = match &status.state {
        State::Intact => format!("{} is in {folder}, intact.", MINILM.name),
        State::Different(path) => format!(
            "{} is not the file that belongs to this release.",
            path.display()
        ),
        State::Absent => format!(
            "{} is not in {folder}. `escurel model pull` fetches it.",
            MINILM.name
        ),
    };
    if status.arrived > 0 {
        let (arrived, whole) = (
            Unit::Bytes.of(status.arrived),
            Unit::Bytes.of(status.download),
        );
        text.push_str(&format!(" {arrived} of {whole} have arrived."));
    }
    if !status.used {
        text.push_str(" Nothing uses it: embedding_provider names another.");
    }
    text
}
