//! One seed played, and a failing schedule made shorter.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use escurel_md::Layout;

use crate::step::{Step, schedule};
use crate::world::{Cast, World};

/// Runs spent on making one failing schedule shorter.
const SHRINKING: usize = 200;

/// A schedule that does not end well, as short as it could be made.
pub struct Failure {
    cast: Cast,
    seed: u64,
    steps: u32,
    layout: Layout,
    left: Vec<Step>,
    /// Index of the step in `left`, and what is wrong there.
    wrong: (usize, String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (at, why) = &self.wrong;
        writeln!(
            f,
            "seed {} ({:?}), {} of its {} steps:",
            self.seed,
            self.layout,
            self.left.len(),
            self.steps
        )?;
        for (n, step) in self.left.iter().enumerate() {
            writeln!(f, "{} {n}: {step:?}", if n == *at { ">" } else { " " })?;
        }
        writeln!(f, "{why}")?;
        let bare = if self.cast.bare { " --bare 1" } else { "" };
        write!(
            f,
            "again: cargo run --release -p escurel-sim --example soak -- --seed {} --steps {}{bare}",
            self.seed, self.steps
        )
    }
}

/// Plays the schedule of `seed`.
///
/// # Errors
/// The failure, its schedule made shorter.
pub fn run_seed(seed: u64, steps: u32, cast: Cast) -> Result<(), Box<Failure>> {
    let (layout, schedule) = schedule(seed, steps);
    let run = |schedule: &[Step]| play(seed, layout, cast, schedule);
    let Err(wrong) = run(&schedule) else {
        return Ok(());
    };
    let (left, wrong) = shrink(run, schedule, wrong);
    Err(Box::new(Failure {
        cast,
        seed,
        steps,
        layout,
        left,
        wrong,
    }))
}

/// Whether the schedule of `seed` ends badly, without looking for a shorter one.
pub fn fails(seed: u64, steps: u32, cast: Cast) -> bool {
    let (layout, schedule) = schedule(seed, steps);
    play(seed, layout, cast, &schedule).is_err()
}

/// The step that failed, and why.
fn play(seed: u64, layout: Layout, cast: Cast, steps: &[Step]) -> Result<(), (usize, String)> {
    let mut world = World::new(seed, layout, cast).map_err(|why| (0, why))?;
    for (n, step) in steps.iter().chain([&Step::Settle]).enumerate() {
        let outcome = catch_unwind(AssertUnwindSafe(|| world.act(step)));
        outcome
            .unwrap_or_else(|panic| Err(format!("panic: {}", said(&*panic))))
            .map_err(|why| (n, why))?;
    }
    Ok(())
}

fn said(panic: &(dyn std::any::Any + Send)) -> &str {
    panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("without a word")
}

/// Leaves out ever smaller parts for as long as the rest still fails.
fn shrink(
    run: impl Fn(&[Step]) -> Result<(), (usize, String)>,
    steps: Vec<Step>,
    wrong: (usize, String),
) -> (Vec<Step>, (usize, String)) {
    let mut best = steps;
    best.truncate(wrong.0 + 1);
    let mut wrong = wrong;
    let mut runs = 0;
    let mut size = best.len() / 2;
    while size > 0 {
        let mut at = 0;
        while at < best.len() && runs < SHRINKING {
            let mut fewer = best.clone();
            fewer.drain(at..(at + size).min(best.len()));
            runs += 1;
            match run(&fewer) {
                Err(found) => {
                    fewer.truncate(found.0 + 1);
                    (best, wrong) = (fewer, found);
                }
                Ok(()) => at += size,
            }
        }
        size /= 2;
    }
    (best, wrong)
}
