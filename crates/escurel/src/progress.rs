//! Tells how far something is: a bar on a terminal, a line now and then elsewhere.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use escurel_core::Kb;
use indicatif::{ProgressBar, ProgressStyle};

use crate::show;

const LINE_EVERY: Duration = Duration::from_secs(5);

/// Waits until every page can be found. False: it was stopped before.
pub fn wait(kb: &Kb) -> bool {
    let mut shown = Shown::new(Unit::Pages);
    let ready = kb.wait_ready(&mut |status| shown.at(status.phase, status.done, status.total));
    shown.finish();
    ready
}

/// Shows on a terminal how many pages wait for their vectors, until none does.
/// Elsewhere the log says when it begins and ends.
pub fn watch_vectors(kb: &Kb) {
    if !std::io::stderr().is_terminal() {
        return;
    }
    let mut shown = Shown::new(Unit::Pages);
    let mut most = 0;
    kb.watch_vectors(&mut |vectors| {
        most = most.max(vectors.waiting);
        if most > 0 {
            shown.at("embedding", most - vectors.waiting, most);
        }
    });
    shown.finish();
}

/// What is counted.
#[derive(Clone, Copy)]
pub enum Unit {
    Pages,
    Bytes,
}

impl Unit {
    pub fn of(self, count: u64) -> String {
        match self {
            Unit::Pages => count.to_string(),
            Unit::Bytes => format!("{:.1} MB", count as f64 / 1e6),
        }
    }

    fn template(self) -> &'static str {
        match self {
            Unit::Pages => "{msg} {bar:30} {pos}/{len} {per_sec} {eta}",
            Unit::Bytes => {
                "{msg} {bar:30} {decimal_bytes}/{decimal_total_bytes} {decimal_bytes_per_sec} {eta}"
            }
        }
    }
}

/// What people see of it.
pub struct Shown {
    unit: Unit,
    /// On a terminal only.
    bar: Option<ProgressBar>,
    last_line: Instant,
}

impl Shown {
    pub fn new(unit: Unit) -> Shown {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(0);
            match ProgressStyle::with_template(unit.template()) {
                Ok(style) => bar.with_style(style),
                Err(_) => bar,
            }
        });
        Shown {
            unit,
            bar,
            last_line: Instant::now(),
        }
    }

    pub fn at(&mut self, what: &'static str, done: u64, total: u64) {
        if let Some(bar) = &self.bar {
            bar.set_length(total);
            bar.set_position(done);
            bar.set_message(what);
        } else if self.last_line.elapsed() >= LINE_EVERY {
            self.last_line = Instant::now();
            let (done, total) = (self.unit.of(done), self.unit.of(total));
            show::note(&format!("{what}: {done} of {total}"));
        }
    }

    /// Something that has no measure.
    pub fn doing(&self, what: &'static str) {
        if let Some(bar) = &self.bar {
            bar.set_message(what);
        }
    }

    pub fn finish(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }
}
