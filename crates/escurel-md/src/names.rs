//! How names compare and how headings become anchors.

use std::borrow::Cow;

pub fn nfc(s: &str) -> Cow<'_, str> {
    Cow::Borrowed(s)
}

pub fn name_key(s: &str) -> String {
    s.to_lowercase()
}

pub fn slug(s: &str) -> String {
    s.to_lowercase()
}
