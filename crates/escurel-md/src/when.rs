//! Instants and whole days as ranges of UTC microseconds.
//!
//! Refuses months, years, times without a date and zone names: a range that
//! the author did not write is never invented.

use jiff::civil::{Date, DateTime};
use jiff::{Timestamp, tz::TimeZone};
use serde::{Deserialize, Serialize};

const DAY_MICROS: i64 = 86_400_000_000;

/// Both ends inclusive, in microseconds since 1970 UTC.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct When {
    pub first: i64,
    pub last: i64,
}

impl When {
    /// RFC 3339, a date with a time (read as UTC), or a date (its whole UTC day).
    pub fn parse(s: &str) -> Option<When> {
        let s = s.trim();
        if !starts_with_date(s) || s.len() > 40 {
            return None;
        }
        if s.len() == 10 {
            return Some(When::day(midnight(s.parse::<Date>().ok()?)?));
        }
        if !matches!(s.as_bytes().get(10), Some(b'T' | b't' | b' ')) || s.contains(['[', ',']) {
            return None;
        }
        let micros = match s.parse::<Timestamp>() {
            Ok(instant) => instant.as_microsecond(),
            Err(_) if has_offset(s) => return None,
            Err(_) => utc(s.parse::<DateTime>().ok()?)?,
        };
        Some(When {
            first: micros,
            last: micros,
        })
    }

    /// `2026-04-12T08:00:00Z`; a fraction only if there is one.
    pub fn to_rfc3339(micros: i64) -> String {
        match Timestamp::from_microsecond(micros) {
            Ok(instant) => instant.to_string(),
            // Outside the years that RFC 3339 can write.
            Err(_) => if micros < 0 {
                "-009999-01-02T01:59:59Z"
            } else {
                "9999-12-30T22:00:00Z"
            }
            .to_owned(),
        }
    }

    fn day(first: i64) -> When {
        When {
            first,
            last: first + DAY_MICROS - 1,
        }
    }
}

fn midnight(date: Date) -> Option<i64> {
    utc(date.at(0, 0, 0, 0))
}

fn utc(at: DateTime) -> Option<i64> {
    Some(TimeZone::UTC.to_timestamp(at).ok()?.as_microsecond())
}

fn starts_with_date(s: &str) -> bool {
    let b = s.as_bytes();
    b.len() >= 10
        && b.iter().take(10).enumerate().all(|(i, c)| {
            if i == 4 || i == 7 {
                *c == b'-'
            } else {
                c.is_ascii_digit()
            }
        })
}

fn has_offset(s: &str) -> bool {
    let time = s.get(11..).unwrap_or("");
    time.ends_with(['Z', 'z']) || time.contains(['+', '-'])
}
