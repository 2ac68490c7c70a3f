//! Instants and whole days as ranges of UTC microseconds.

use serde::{Deserialize, Serialize};

/// Both ends inclusive, in microseconds since 1970 UTC.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct When {
    pub first: i64,
    pub last: i64,
}

impl When {
    pub fn parse(s: &str) -> Option<When> {
        let _ = s;
        None
    }

    pub fn to_rfc3339(micros: i64) -> String {
        micros.to_string()
    }
}
