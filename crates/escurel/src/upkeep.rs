//! `rebuild`, `verify`, `confirm-deletions`, `journal export`, `journal repair`.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::ArgMatches;
use escurel_access::Caller;
use escurel_core::Kb;
use escurel_core::api::BrokenChain;
use escurel_server::config::Config;
use escurel_server::{boot, upkeep};
use serde_json::{Value, json};

use crate::call::{self, Reached};
use crate::failure::Failure;
use crate::{folder, progress, show};

pub fn rebuild(config: Config, given: &ArgMatches) -> Result<ExitCode, Failure> {
    let folder = folder::to_ask(given, &config)?;
    let socket = boot::served_socket(&config, &folder)?;
    let summary = if call::listens(&socket) {
        call::ask(&socket, "/local/rebuild", &json!({}))?
    } else {
        boot::forget_index(&config, &folder)?;
        let kb = boot::open_served(&config, &folder)?;
        let rebuilt = progress::wait(&kb);
        let status = kb.status();
        kb.close();
        if !rebuilt || status.phase == "read_only" {
            return Err(Failure::unavailable(format!(
                "index_damaged: The index could not be derived again. {}",
                status.warnings.join(" ")
            )));
        }
        upkeep::summary(&status)
    };
    if show::for_people(given) {
        show::line(&format!(
            "Rebuilt: {} pages, {} skills, {} links.",
            summary["pages"], summary["skills"], summary["links"]
        ));
    } else {
        show::json(&summary);
    }
    Ok(ExitCode::SUCCESS)
}

pub fn verify(config: Config, given: &ArgMatches) -> Result<ExitCode, Failure> {
    let folder = folder::to_ask(given, &config)?;
    let report = match call::owner_or(&config, &folder, boot::verify)? {
        Reached::Owner(socket) => call::ask(&socket, "/local/verify", &json!({}))?,
        Reached::Here(report) => upkeep::verified(&report),
    };
    if given.get_flag("json") || !show::for_people(given) {
        show::json(&report);
    } else {
        for finding in report["findings"].as_array().into_iter().flatten() {
            let text = |key: &str| finding[key].as_str().unwrap_or_default();
            show::line(&format!(
                "{} {}: {}",
                text("part"),
                text("item"),
                text("problem")
            ));
        }
        let found = report["findings"].as_array().map_or(0, Vec::len);
        show::line(&format!(
            "{} pages, {} records, {} objects: {found} findings.",
            report["pages"], report["records"], report["objects"]
        ));
    }
    Ok(if report["ok"] == true {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(1)
    })
}

pub fn confirm_deletions(config: Config, given: &ArgMatches) -> Result<ExitCode, Failure> {
    let done = either(
        &config,
        given,
        "/local/confirm-deletions",
        upkeep::confirm_deletions,
    )?;
    if show::for_people(given) {
        show::line(&format!("{} pages deleted.", done["deleted"]));
    } else {
        show::json(&done);
    }
    Ok(ExitCode::SUCCESS)
}

type Work = fn(&Kb, &Caller) -> Result<Value, escurel_core::Refusal>;

/// In the owner if there is one, else here.
fn either(config: &Config, given: &ArgMatches, path: &str, work: Work) -> Result<Value, Failure> {
    let folder = folder::to_ask(given, config)?;
    match call::reach(config, &folder, boot::open_served)? {
        Reached::Owner(socket) => call::ask(&socket, path, &json!({})),
        Reached::Here(kb) => {
            let done = work(&kb, &Caller::local());
            kb.close();
            Ok(done?)
        }
    }
}

pub fn journal(config: Config, given: &ArgMatches) -> Result<ExitCode, Failure> {
    match given.subcommand() {
        Some(("export", given)) => export(&config, given),
        Some(("repair", given)) => repair(&config, given),
        _ => Err(Failure::usage("Name export or repair.")),
    }
}

fn repair(config: &Config, given: &ArgMatches) -> Result<ExitCode, Failure> {
    let folder = match given.get_one::<PathBuf>("path") {
        Some(path) => folder::absolute(path, false)?,
        None => folder::to_ask(given, config)?,
    };
    let planned_only = given.get_flag("dry-run");
    let plan = match planned_only {
        true => boot::plan_repair(config, &folder)?,
        false => boot::repair_journal(config, &folder)?,
    };
    if !show::for_people(given) {
        show::json(&upkeep::repaired(&plan, planned_only));
        return Ok(ExitCode::SUCCESS);
    }
    match &plan.broken {
        None => show::line(&format!(
            "The journal is whole: {} records. There is nothing to repair.",
            plan.records
        )),
        Some(chain) => tell_of(chain, plan.records, planned_only),
    }
    if plan.missing_contents > 0 {
        show::line(&format!(
            "{} contents that it names cannot be read; a repair does not change that. Restore `journal/objects` from a \
             backup; escurel verify names them.",
            plan.missing_contents
        ));
    }
    Ok(ExitCode::SUCCESS)
}

fn tell_of(chain: &BrokenChain, records: u64, planned_only: bool) {
    let (kept, moved, next) = match planned_only {
        true => (
            "would go on",
            "would be kept",
            "Repair it: leave out --dry-run.",
        ),
        false => (
            "go on",
            "is kept",
            "Serve the folder: what files say is taken up.",
        ),
    };
    show::line(&format!(
        "The journal was broken from record {} on: {}.",
        chain.first, chain.problem
    ));
    show::line(&match chain.lost {
        0 => format!("All {records} records {kept} in a new chain."),
        lost => format!(
            "{records} records {kept} in a new chain. {lost} could not be read: {}.",
            chain.lost_records
        ),
    });
    show::line(&format!(
        "The broken chain {moved} in journal/{}; the new one begins with a record that names it.",
        chain.set_aside
    ));
    show::line(next);
}

fn export(config: &Config, given: &ArgMatches) -> Result<ExitCode, Failure> {
    let folder = folder::to_ask(given, config)?;
    let reached = call::reach(config, &folder, boot::open_served)?;
    let out: Box<dyn Write> = match given.get_one::<PathBuf>("out") {
        Some(path) => Box::new(BufWriter::new(File::create(path)?)),
        None => Box::new(BufWriter::new(std::io::stdout().lock())),
    };
    let mut out = show::Pipe::new(out);
    let exported = match reached {
        Reached::Owner(socket) => call::stream(&socket, "/local/journal", &mut out),
        Reached::Here(kb) => {
            let exported = kb.export_journal(&Caller::local(), &mut out);
            kb.close();
            exported.map(|_| ()).map_err(Failure::from)
        }
    };
    match exported.and_then(|()| Ok(out.flush()?)) {
        // Whoever wanted only the beginning has it.
        Err(_) if out.gone => Ok(ExitCode::SUCCESS),
        done => done.map(|()| ExitCode::SUCCESS),
    }
}
