//! Days as somebody types them, in microseconds since 1970 UTC.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

/// From the first instant on, up to the second, which is not in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub from: i64,
    pub to: i64,
}

impl Default for Span {
    fn default() -> Span {
        Span {
            from: i64::MIN,
            to: i64::MAX,
        }
    }
}

impl Span {
    pub fn is_all(&self) -> bool {
        *self == Span::default()
    }

    pub fn contains(&self, instant: i64) -> bool {
        (self.from..self.to).contains(&instant)
    }
}

/// The start of a year, a month, a day, or an instant in RFC 3339.
pub(crate) fn start_of(text: &str) -> Option<i64> {
    let digits = |n: usize| {
        text.get(..n)
            .is_some_and(|t| t.bytes().all(|b| b.is_ascii_digit()))
    };
    if !digits(4) {
        return None;
    }
    let day = match text.len() {
        4 => format!("{text}-01-01"),
        7 => format!("{text}-01"),
        10 => text.to_string(),
        _ => return Some(text.parse::<Timestamp>().ok()?.as_microsecond()),
    };
    let day: Date = day.parse().ok()?;
    let midnight = TimeZone::UTC.to_timestamp(day.at(0, 0, 0, 0)).ok()?;
    Some(midnight.as_microsecond())
}
