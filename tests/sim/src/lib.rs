//! Whole knowledge bases driven through random interleavings of writes, outside
//! edits, background work, faults and crashes, and compared with a simple model.
//!
//! One seed is one schedule: clock, ids and storage are passed in, and background
//! work happens when the schedule says so. The core, DuckDB and tantivy are the
//! real ones; page files and journal lie in memory, so that a crash loses what
//! was not synced.
//!
//! `cargo test` runs some tens of short schedules. More and longer ones:
//! `ESCUREL_SIM_SEEDS=2000 ESCUREL_SIM_STEPS=120 cargo test --release -p escurel-sim`,
//! or a soak: `cargo run --release -p escurel-sim --example soak -- --seconds 600`.
//! `ESCUREL_SIM_BARE=1` leaves DuckDB and the files of the text index away, for many more schedules.
//! A failure names the seed and prints the shortest schedule found that still
//! fails; `--example soak -- --seed N --steps M` plays it again.

mod act;
mod check;
mod index;
mod links;
mod model;
mod rng;
mod run;
mod step;
mod text;
mod trap;
mod typing;
mod world;

pub use run::{Failure, fails, run_seed};
pub use typing::type_seed;
pub use world::Cast;
