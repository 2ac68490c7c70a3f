//! What goes to standard output.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::ArgMatches;
use escurel_tools::Table;
use serde_json::Value;

use crate::args;
use crate::failure::Failure;

/// A line. A reader that has gone away is not an error.
pub fn line(text: &str) {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}

/// JSON for programs, pretty for people.
pub fn json(value: &Value) {
    let pretty = io::stdout().is_terminal();
    let text = if pretty {
        serde_json::to_string_pretty(value).unwrap_or_default()
    } else {
        value.to_string()
    };
    line(&text);
}

/// Does a person read this?
pub fn for_people(given: &ArgMatches) -> bool {
    io::stdout().is_terminal() && !given.get_flag("json")
}

pub fn table(table: &Table) {
    if !table.rows.is_empty() {
        let mut drawn = comfy_table::Table::new();
        drawn
            .load_style(comfy_table::presets::NOTHING)
            .set_content_arrangement(comfy_table::ContentArrangement::Dynamic);
        drawn.set_header(&table.headers);
        drawn.add_rows(&table.rows);
        line(&drawn.to_string());
    }
    if let Some(footer) = &table.footer {
        line(footer);
    }
}

pub fn completions(given: &ArgMatches) -> Result<ExitCode, Failure> {
    let Some(shell) = given.get_one::<clap_complete::Shell>("shell") else {
        return Err(Failure::usage("Name a shell."));
    };
    let mut out = Vec::new();
    clap_complete::generate(*shell, &mut args::command(), "escurel", &mut out);
    line(&String::from_utf8_lossy(&out));
    Ok(ExitCode::SUCCESS)
}

pub fn man(given: &ArgMatches) -> Result<ExitCode, Failure> {
    if let Some(dir) = given.get_one::<PathBuf>("dir") {
        std::fs::create_dir_all(dir)?;
        clap_mangen::generate_to(args::command(), dir)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut out = Vec::new();
    clap_mangen::Man::new(args::command()).render(&mut out)?;
    line(&String::from_utf8_lossy(&out));
    Ok(ExitCode::SUCCESS)
}

pub fn version() -> Result<ExitCode, Failure> {
    line(&format!("escurel {}", env!("CARGO_PKG_VERSION")));
    Ok(ExitCode::SUCCESS)
}
