//! Tells how far long work is: a bar on a terminal, a line now and then elsewhere.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use escurel_core::Kb;
use escurel_core::api::Status;
use indicatif::{ProgressBar, ProgressStyle};

use crate::show;

const LINE_EVERY: Duration = Duration::from_secs(5);

/// Waits until every page can be found. False: it was stopped before.
pub fn wait(kb: &Kb) -> bool {
    let mut shown = Shown::new();
    let ready = kb.wait_ready(&mut |status| shown.update(status));
    shown.finish();
    ready
}

pub enum Shown {
    Bar(ProgressBar),
    Lines(Instant),
}

impl Shown {
    pub fn new() -> Shown {
        if !std::io::stderr().is_terminal() {
            return Shown::Lines(Instant::now());
        }
        let bar = ProgressBar::new(0);
        if let Ok(style) =
            ProgressStyle::with_template("{msg} {bar:30} {pos}/{len} {per_sec} {eta}")
        {
            bar.set_style(style);
        }
        Shown::Bar(bar)
    }

    pub fn update(&mut self, status: &Status) {
        self.tell(status.phase, status.done, status.total);
    }

    pub fn tell(&mut self, what: &'static str, done: u64, total: u64) {
        match self {
            Shown::Bar(bar) => {
                bar.set_message(what);
                bar.set_length(total);
                bar.set_position(done);
            }
            Shown::Lines(last) if last.elapsed() >= LINE_EVERY => {
                *last = Instant::now();
                show::note(&format!("{what}: {done} of {total}"));
            }
            Shown::Lines(_) => {}
        }
    }

    pub fn finish(self) {
        if let Shown::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }
}
