//! Which folder a command is about.

use std::path::{Path, PathBuf};

use clap::ArgMatches;
use escurel_server::config::Config;

use crate::demo;
use crate::failure::Failure;

/// A folder that the command line names.
pub enum Chosen {
    Path(PathBuf),
    /// Nothing was named: the settings decide, else the demo.
    Default,
}

pub fn to_serve(given: &ArgMatches) -> Result<Chosen, Failure> {
    Ok(given
        .get_one::<PathBuf>("path")
        .map_or(Chosen::Default, |path| Chosen::Path(path.clone())))
}

/// The folder to serve. The demo brings its tenant along.
pub fn resolve(chosen: Chosen, config: &mut Config) -> Result<PathBuf, Failure> {
    let path = match (chosen, &config.data_dir) {
        (Chosen::Path(path), _) => path,
        (Chosen::Default, Some(dir)) => dir.clone(),
        (Chosen::Default, None) => {
            config.tenant = Some("demo".to_owned());
            demo::data_dir(|name| std::env::var(name).ok())?
        }
    };
    absolute(&path, config.seed_dir.is_some())
}

/// `--folder`, ESCUREL_DATA_DIR, or where we are.
pub fn to_ask(given: &ArgMatches, config: &Config) -> Result<PathBuf, Failure> {
    if let Some(path) = given
        .get_one::<PathBuf>("folder")
        .or(config.data_dir.as_ref())
    {
        return absolute(path, false);
    }
    let here = std::env::current_dir()?;
    if let Some(served) = here
        .ancestors()
        .find(|dir| dir.join(".escurel").is_dir() || dir.join("tenants").is_dir())
    {
        return Ok(served.to_owned());
    }
    let home = std::env::var_os("HOME").map(PathBuf::from);
    if here.parent().is_none() || Some(&here) == home.as_ref() {
        return Err(unclear(&here));
    }
    Ok(here)
}

fn unclear(here: &Path) -> Failure {
    let demo = demo::place(|name| std::env::var(name).ok()).ok();
    let example = match demo.filter(|demo| demo.is_dir()) {
        Some(demo) => format!("for the demo, --folder {}", demo.display()),
        None => "for example --folder ~/notes".to_owned(),
    };
    Failure::usage(format!(
        "folder_unclear: {} has not been served yet and is too large a guess. Name a folder, {example}.",
        here.display()
    ))
}

pub fn absolute(path: &Path, may_be_missing: bool) -> Result<PathBuf, Failure> {
    match path.canonicalize() {
        Ok(path) => Ok(path),
        Err(_) if may_be_missing => Ok(std::path::absolute(path)?),
        Err(error) => Err(Failure::usage(format!(
            "folder_not_found: {} cannot be served: {error}. Name an existing folder.",
            path.display()
        ))),
    }
}
