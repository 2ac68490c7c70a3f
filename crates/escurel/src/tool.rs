//! A tool as a sub-command.

use std::io::Read;
use std::process::ExitCode;

use clap::ArgMatches;
use clap::parser::ValueSource;
use escurel_access::Caller;
use escurel_server::boot;
use escurel_server::config::Config;
use escurel_tools::{
    ArgKind, ArgSpec, Call, Catalog, CommandSpec, DispatchError, Effect, commands, dispatch,
    render_table,
};
use serde_json::Value;

use crate::call::{self, Open, Reached};
use crate::failure::Failure;
use crate::{folder, show};

pub fn run(config: Config, name: &str, given: &ArgMatches) -> Result<ExitCode, Failure> {
    let Some(spec) = commands(Catalog::standard())
        .into_iter()
        .find(|spec| spec.name == name)
    else {
        return Err(Failure::usage(format!("There is no command {name}.")));
    };
    let folder = folder::to_ask(given, &config)?;
    let arguments = arguments(&spec, given)?;
    let value = match call::reach(&config, &folder, opening(spec.tool))? {
        Reached::Owner(socket) => {
            call::ask(&socket, &format!("/api/tools/{}", spec.tool), &arguments)?
        }
        Reached::Here(kb) => {
            let caller = Caller::local();
            let answered = dispatch(
                Catalog::standard(),
                &Call {
                    kb: &kb,
                    caller: &caller,
                },
                spec.tool,
                arguments,
            );
            kb.close();
            let answer = answered.map_err(failure)?;
            serde_json::from_str(&answer).map_err(|e| Failure::coded("internal", &e.to_string()))?
        }
    };
    if show::for_people(given) {
        show::table(&render_table(spec.tool, &value));
    } else {
        show::json(&value);
    }
    Ok(if negative(&value) {
        ExitCode::from(1)
    } else {
        ExitCode::SUCCESS
    })
}

/// Only what writes makes a folder its own.
fn opening(tool: &str) -> Open {
    let entry = Catalog::standard().find(tool);
    match entry.map(|entry| entry.spec.effect) {
        Some(Effect::Read) => boot::glance,
        _ => boot::open,
    }
}

/// An answer that says no: no such page, or a check that failed.
fn negative(value: &Value) -> bool {
    value.get("page").is_some_and(Value::is_null) || value["ok"] == false
}

fn failure(error: DispatchError) -> Failure {
    match error {
        DispatchError::Refused(refusal) => refusal.into(),
        error => {
            let data = error.data();
            Failure::coded(data["code"].as_str().unwrap_or("error"), &error.sentence())
        }
    }
}

fn arguments(spec: &CommandSpec, given: &ArgMatches) -> Result<Value, Failure> {
    let mut texts = Vec::new();
    for arg in spec.args() {
        if given.value_source(&arg.argument) != Some(ValueSource::CommandLine) {
            continue;
        }
        texts.push((arg.argument.as_str(), values(arg, given)?));
    }
    Ok(spec.arguments(texts))
}

fn values(arg: &ArgSpec, given: &ArgMatches) -> Result<Vec<String>, Failure> {
    if arg.kind == ArgKind::Switch {
        return Ok(Vec::new());
    }
    let values = given
        .get_many::<String>(&arg.argument)
        .into_iter()
        .flatten();
    if !arg.from_file {
        return Ok(values.cloned().collect());
    }
    values.map(|path| read(path)).collect()
}

fn read(path: &str) -> Result<String, Failure> {
    let mut text = String::new();
    let read = if path == "-" {
        std::io::stdin().read_to_string(&mut text)
    } else {
        std::fs::File::open(path).and_then(|mut file| file.read_to_string(&mut text))
    };
    match read {
        Ok(_) => Ok(text),
        Err(error) => Err(Failure::usage(format!(
            "file_unreadable: {path} cannot be read: {error}."
        ))),
    }
}
