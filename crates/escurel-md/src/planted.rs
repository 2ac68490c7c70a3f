//! A panic on purpose, to prove that a fuzz run would find one.
//!
//! Compiled only with the feature `planted-panic`.

use std::hint::black_box;

/// Byte by byte, each behind a branch that the compiler must not join with the
/// next, so that coverage leads to the token.
///
/// # Panics
/// When `text` contains `token`.
pub fn check(text: &str, token: [u8; 3]) {
    for window in text.as_bytes().windows(3) {
        let [a, b, c] = window else { continue };
        if black_box(*a) == token[0] && black_box(*b) == token[1] {
            assert!(black_box(*c) != token[2], "planted");
        }
    }
}
