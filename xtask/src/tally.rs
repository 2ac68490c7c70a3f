//! Counting what passed, and the summary that a run ends with.
//!
//! Invariant: the last line printed is `N passed, N failed, N skipped`, and the
//! run succeeded exactly when nothing failed.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Result;

/// What one step found.
#[derive(Default, Clone, Copy, Debug, PartialEq)]
pub struct Count {
    pub passed: u64,
    pub failed: u64,
    pub skipped: u64,
}

impl Count {
    pub fn one(passed: bool) -> Self {
        if passed {
            Self {
                passed: 1,
                ..Self::default()
            }
        } else {
            Self {
                failed: 1,
                ..Self::default()
            }
        }
    }

    /// Adds the numbers of a closing line: cargo's `test result: …` or, of one of
    /// our own, `clients: N passed, N failed, N skipped`. Any other line adds nothing.
    pub fn add_line(&mut self, line: &str) {
        let numbers = match line.strip_prefix("test result: ") {
            Some(rest) => rest.split_once(". ").map_or("", |(_, numbers)| numbers),
            None => ["clients: ", "live: "]
                .iter()
                .find_map(|name| line.strip_prefix(name))
                .unwrap_or(""),
        };
        for part in numbers.split([';', ',']) {
            let Some((number, what)) = part.trim().split_once(' ') else {
                continue;
            };
            let Ok(number) = number.parse::<u64>() else {
                continue;
            };
            match what {
                "passed" => self.passed += number,
                "failed" => self.failed += number,
                "skipped" | "ignored" => self.skipped += number,
                _ => {}
            }
        }
    }

    /// A program that ended badly without naming a failure is one failure.
    pub fn with_exit(mut self, success: bool) -> Self {
        if !success && self.failed == 0 {
            self.failed = 1;
        }
        self
    }
}

pub enum Outcome {
    Counted(Count),
    /// Not run, and why.
    Skipped(String),
}

struct Step {
    name: &'static str,
    took: Duration,
    count: Count,
    note: String,
}

#[derive(Default)]
pub struct Tally {
    steps: Vec<Step>,
}

impl Tally {
    /// Runs one step; an error is a failed step, and the run goes on.
    pub fn step(&mut self, name: &'static str, run: impl FnOnce() -> Result<Outcome>) -> bool {
        println!("\n== {name}");
        let begun = Instant::now();
        let (count, note) = match run() {
            Ok(Outcome::Counted(count)) => (count, String::new()),
            Ok(Outcome::Skipped(why)) => (
                Count {
                    skipped: 1,
                    ..Count::default()
                },
                why,
            ),
            Err(error) => (Count::one(false), format!("{error:#}")),
        };
        if !note.is_empty() {
            println!("{name}: {note}");
        }
        let good = count.failed == 0;
        self.steps.push(Step {
            name,
            took: begun.elapsed(),
            count,
            note,
        });
        good
    }

    /// Prints the summary and says how the process should end.
    pub fn finish(self) -> ExitCode {
        println!("\n== summary");
        let mut all = Count::default();
        for step in &self.steps {
            println!("{}", step.line());
            all.passed += step.count.passed;
            all.failed += step.count.failed;
            all.skipped += step.count.skipped;
        }
        println!(
            "{} passed, {} failed, {} skipped",
            all.passed, all.failed, all.skipped
        );
        if all.failed == 0 {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        }
    }
}

impl Step {
    fn line(&self) -> String {
        let Count {
            passed,
            failed,
            skipped,
        } = self.count;
        let word = match (failed, passed) {
            (0, 0) => "skipped",
            (0, _) => "ok",
            _ => "FAILED",
        };
        let mut line = format!(
            "{:<10} {word:<8} {:>7.1} s  {passed} passed, {failed} failed, {skipped} skipped",
            self.name,
            self.took.as_secs_f64()
        );
        if !self.note.is_empty() {
            line.push_str("  (");
            line.push_str(&self.note);
            line.push(')');
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, passed: u64, failed: u64, skipped: u64) {
        let mut count = Count::default();
        count.add_line(line);
        assert_eq!(
            count,
            Count {
                passed,
                failed,
                skipped
            },
            "{line}"
        );
    }

    #[test]
    fn closing_lines_are_counted() {
        check(
            "test result: ok. 5 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out",
            5,
            0,
            1,
        );
        check(
            "test result: FAILED. 4 passed; 2 failed; 0 ignored; 0 measured",
            4,
            2,
            0,
        );
        check("clients: 9 passed, 1 failed, 2 skipped", 9, 1, 2);
        check("live: 4 passed, 0 failed, 0 skipped", 4, 0, 0);
    }

    #[test]
    fn other_lines_are_not() {
        check("test store::it_holds_5 passed ... ok", 0, 0, 0);
        check("3 passed, 1 failed", 0, 0, 0);
        check("", 0, 0, 0);
    }

    #[test]
    fn a_bad_exit_is_a_failure() {
        assert_eq!(Count::default().with_exit(false).failed, 1);
        assert_eq!(Count::one(false).with_exit(false).failed, 1);
        assert_eq!(Count::one(true).with_exit(true).failed, 0);
    }
}
