//! The stable page id.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use ulid::Ulid;

use crate::StoreError;

/// Stable page id, a ULID: sorts by time of creation, written as 26 characters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uid(pub u128);

impl Uid {
    /// Millisecond time in the upper 48 bits, the low 80 bits of `random` below.
    pub fn from_parts(now_micros: i64, random: u128) -> Uid {
        let millis = u64::try_from(now_micros / 1000).unwrap_or(0);
        Uid(Ulid::from_parts(millis, random).0)
    }
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut buffer = [0; ulid::ULID_LEN];
        f.pad(Ulid(self.0).array_to_str(&mut buffer))
    }
}

impl fmt::Debug for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Uid {
    type Err = StoreError;

    fn from_str(text: &str) -> Result<Uid, StoreError> {
        Ulid::from_string(text)
            .map(|ulid| Uid(ulid.0))
            .map_err(|_| StoreError::BadUid {
                text: text.chars().take(64).collect(),
            })
    }
}

impl Serialize for Uid {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Uid {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Uid, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}
