//! How names compare and how headings become anchors.
//!
//! Refuses compatibility folding: full-width and half-width forms stay two
//! names. Invariant: every function here is idempotent.

use std::borrow::Cow;

use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

/// The text in normal form C; borrowed when it already is.
pub fn nfc(s: &str) -> Cow<'_, str> {
    if s.is_ascii() || is_nfc_quick(s.chars()) == IsNormalized::Yes {
        return Cow::Borrowed(s);
    }
    Cow::Owned(s.nfc().collect())
}

/// The key under which names compare: NFC and case folding.
pub fn name_key(s: &str) -> String {
    if s.is_ascii() {
        return s.to_ascii_lowercase();
    }
    let mut folded = String::with_capacity(s.len());
    for c in nfc(s).chars() {
        fold_into(c, &mut folded);
    }
    nfc(&folded).into_owned()
}

/// Lower case one character at a time, so that no position in a word matters;
/// the letters whose full folding is not their lower case are named.
fn fold_into(c: char, out: &mut String) {
    match c {
        'ß' | 'ẞ' => out.push_str("ss"),
        'ς' => out.push('σ'),
        _ => out.extend(c.to_lowercase()),
    }
}

/// The anchor of a heading: lower case, spaces as `-`, punctuation dropped,
/// letters, marks and digits of every script kept.
pub fn slug(s: &str) -> String {
    let composed = nfc(s.trim());
    let mut out = String::with_capacity(composed.len());
    for c in composed.chars() {
        match c {
            '-' | '_' => out.push(c),
            c if c.is_ascii() => {
                if c.is_ascii_alphanumeric() {
                    out.push(c.to_ascii_lowercase());
                } else if c == ' ' || c == '\t' {
                    out.push('-');
                }
            }
            c if c.is_whitespace() => out.push('-'),
            c if c.is_alphanumeric() || is_mark(c) => out.extend(c.to_lowercase()),
            _ => {}
        }
    }
    match nfc(&out) {
        Cow::Borrowed(_) => out,
        Cow::Owned(composed) => composed,
    }
}

fn is_mark(c: char) -> bool {
    unicode_normalization::char::is_combining_mark(c)
}
