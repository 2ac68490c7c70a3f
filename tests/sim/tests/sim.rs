//! Some tens of schedules, on all cores.

use std::sync::atomic::{AtomicU64, Ordering};

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(default)
}

#[test]
fn any_interleaving_of_writes_edits_and_crashes_keeps_its_promises() {
    let seeds = setting("ESCUREL_SIM_SEEDS", 20);
    let steps = setting("ESCUREL_SIM_STEPS", 20) as u32;
    let next = AtomicU64::new(setting("ESCUREL_SIM_FIRST", 0));
    let end = next.load(Ordering::Relaxed) + seeds;
    let work = || {
        let mut failures = Vec::new();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= end {
                return failures;
            }
            failures.extend(escurel_sim::run_seed(seed, steps).err());
        }
    };
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    let failures: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..cores.min(8)).map(|_| scope.spawn(work)).collect();
        threads
            .into_iter()
            .flat_map(|t| t.join().unwrap())
            .collect()
    });
    let told: Vec<String> = failures.iter().map(|f| f.to_string()).collect();
    assert!(told.is_empty(), "{}", told.join("\n\n"));
}
