//! The append-only, hash-chained history and its objects.

mod report;

pub use report::{Finding, JournalReport};
