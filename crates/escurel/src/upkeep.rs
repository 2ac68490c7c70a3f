//! `rebuild`, `verify`, `confirm-deletions`, `journal export`.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::ArgMatches;
use escurel_access::Caller;
use escurel_core::Kb;
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
    let Some(("export", given)) = given.subcommand() else {
        return Err(Failure::usage("Name export."));
    };
    let folder = folder::to_ask(given, &config)?;
    let reached = call::reach(&config, &folder, boot::open_served)?;
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
