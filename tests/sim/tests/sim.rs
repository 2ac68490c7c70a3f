//! Some tens of schedules, on all cores.

use std::sync::atomic::{AtomicU64, Ordering};

use escurel_sim::{Cast, run_seed, type_seed};

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(default)
}

/// Plays so many schedules; answers what failed.
fn play<T: Send>(seeds: u64, run: impl Fn(u64) -> Result<(), T> + Sync) -> Vec<T> {
    let next = AtomicU64::new(setting("ESCUREL_SIM_FIRST", 0));
    let end = next.load(Ordering::Relaxed) + seeds;
    let work = || {
        let mut failures = Vec::new();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= end {
                return failures;
            }
            failures.extend(run(seed).err());
        }
    };
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..cores.min(8)).map(|_| scope.spawn(work)).collect();
        threads
            .into_iter()
            .flat_map(|thread| match thread.join() {
                Ok(failures) => failures,
                Err(panic) => std::panic::resume_unwind(panic),
            })
            .collect()
    })
}

#[test]
fn any_interleaving_of_writes_edits_and_crashes_keeps_its_promises() {
    let bare = setting("ESCUREL_SIM_BARE", 0) != 0;
    let seeds = setting("ESCUREL_SIM_SEEDS", 20);
    let steps = setting("ESCUREL_SIM_STEPS", 20) as u32;
    let cast = Cast {
        bare,
        ..Cast::default()
    };
    let mut failures = play(seeds, |seed| run_seed(seed, steps, cast));
    if !bare {
        let quick = Cast { bare: true, ..cast };
        failures.extend(play(seeds, |seed| run_seed(seed, steps, quick)));
    }
    let told: Vec<String> = failures.iter().map(|f| f.to_string()).collect();
    assert!(told.is_empty(), "{}", told.join("\n\n"));
}

#[test]
fn what_people_type_is_there_once_whatever_happens() {
    let seeds = setting("ESCUREL_SIM_SEEDS", 60);
    let steps = setting("ESCUREL_SIM_STEPS", 40) as u32;
    let cast = Cast {
        bare: true,
        ..Cast::default()
    };
    let failures = play(seeds, |seed| type_seed(seed, steps, cast));
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

/// Whoever takes a flush out of the code is told so by some schedule.
#[test]
fn a_flush_that_is_not_carried_out_is_noticed() {
    for forgets in ["audit/", "objects/", "pages", "live/"] {
        let fails = |seed, forgets: Option<&'static str>, of_typing| {
            let cast = Cast {
                bare: true,
                forgets,
            };
            match of_typing {
                true => type_seed(seed, 40, cast).is_err(),
                false => escurel_sim::fails(seed, 40, cast),
            }
        };
        let of_typing = forgets == "live/";
        let noticed = (0..400)
            .find(|seed| fails(*seed, Some(forgets), of_typing) && !fails(*seed, None, of_typing));
        assert!(noticed.is_some(), "nobody misses the flush of {forgets}");
        println!(
            "{forgets} is missed by seed {}",
            noticed.unwrap_or_default()
        );
    }
}
