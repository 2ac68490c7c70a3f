//! `escurel eval`: how well search ranks, on a labelled collection.

mod kept;
mod pages;
mod report;
mod served;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};

use clap::ArgMatches;
use escurel_core::Vectors;
use escurel_search::eval::{Collection, Lane, Lanes, measure};
use escurel_server::boot::{self, Stop};
use escurel_server::config::Config;

use crate::failure::Failure;
use crate::progress::{Shown, Unit};
use crate::{serve, show};
use kept::Kept;
use report::{Asked, Report};

pub fn run(config: &Config, given: &ArgMatches) -> Result<ExitCode, Failure> {
    let asked = asked(given);
    let runtime = serve::runtime()?;
    let stop = runtime.block_on(async { Stop::on_signals() })?;
    let shown = Mutex::new(Shown::new(Unit::Pages));
    let watch = |what, done: usize, total: usize| {
        let mut shown = shown.lock().unwrap_or_else(PoisonError::into_inner);
        shown.at(what, done as u64, total as u64);
        !stop.asked()
    };
    let collection = Collection::read(&asked.dir, &asked.split)?;
    let work = Work {
        config,
        collection: &collection,
        k: asked.k,
        watch: &watch,
    };
    let measured = match asked.through_server {
        true => served::measured(&work, &runtime),
        false => here(&work),
    };
    let shown = shown.into_inner().unwrap_or_else(PoisonError::into_inner);
    shown.finish();
    let report = Report::new(asked, &collection, measured?);
    if show::for_people(given) {
        show::table(&report.table());
    } else {
        show::json(&report.json());
    }
    Ok(ExitCode::SUCCESS)
}

fn asked(given: &ArgMatches) -> Asked {
    let text = |name: &str| given.get_one::<String>(name).cloned().unwrap_or_default();
    let dir = given.get_one::<PathBuf>("dir").cloned();
    Asked {
        dir: dir.unwrap_or_default(),
        split: text("split"),
        k: given.get_one::<u16>("k").copied().map_or(0, usize::from),
        through_server: given.get_flag("through-server"),
    }
}

/// What is measured, and who is told about it.
struct Work<'a> {
    config: &'a Config,
    collection: &'a Collection,
    k: usize,
    watch: &'a (dyn Fn(&'static str, usize, usize) -> bool + Sync),
}

/// In this process, each lane alone and fused.
fn here(work: &Work<'_>) -> Result<report::Measured, Failure> {
    let mut measured = report::Measured::default();
    let vectors = boot::vectors(work.config)?;
    let mut lanes = Lanes::index(work.collection, work.watch)?;
    measured.indexed = lanes.indexed();
    let mut ways = vec![Lane::Lexical];
    match vectors {
        Vectors::Off(why) => measured.notes.push(words_only(&why)),
        Vectors::By(model) => {
            let kept = Kept::open(work.config, &mut measured.notes);
            let cache = kept
                .as_ref()
                .and_then(|kept| kept.cache(&*model, &mut measured.notes));
            let made = lanes.embed(work.collection, model, cache.as_ref(), work.watch)?;
            measured.embedding = Some(made);
            ways.extend([Lane::Vector, Lane::Hybrid]);
        }
    }
    for lane in ways {
        let ask = |text: &str| lanes.ask(lane, text, work.k);
        let row = measure(lane.name(), work.collection, work.k, work.watch, ask)?;
        measured.rows.push(row);
    }
    Ok(measured)
}

fn words_only(why: &str) -> String {
    format!("lexical only: {why}; --model names a folder with a sentence encoder")
}
