//! Plays seed after seed for a time, or one seed again.
//!
//! `soak --seconds 600 [--first SEED] [--steps N] [--bare 1]`, `soak --seed SEED [--steps N] [--bare 1]`

use std::process::ExitCode;
use std::time::{Duration, Instant};

use escurel_sim::Cast;

fn main() -> ExitCode {
    let steps = argument("--steps").unwrap_or(60) as u32;
    let cast = Cast {
        bare: argument("--bare").is_some_and(|bare| bare != 0),
        ..Cast::default()
    };
    if let Some(seed) = argument("--seed") {
        return tell(seed, steps, cast);
    }
    let end = Instant::now() + Duration::from_secs(argument("--seconds").unwrap_or(60));
    let first = argument("--first").unwrap_or(0);
    let (mut seed, mut code) = (first, ExitCode::SUCCESS);
    while Instant::now() < end {
        if tell(seed, steps, cast) != ExitCode::SUCCESS {
            code = ExitCode::FAILURE;
        }
        seed += 1;
    }
    println!("{} schedules of {steps} steps", seed - first);
    code
}

fn tell(seed: u64, steps: u32, cast: Cast) -> ExitCode {
    match escurel_sim::run_seed(seed, steps, cast) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            println!("{failure}\n");
            ExitCode::FAILURE
        }
    }
}

fn argument(name: &str) -> Option<u64> {
    let mut arguments = std::env::args().skip_while(|argument| argument != name);
    arguments.nth(1)?.parse().ok()
}
