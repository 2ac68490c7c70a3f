//! A panic on purpose, to prove that a fuzz run would find one.
//!
//! Compiled only with the feature `planted-panic`. Compares byte by byte, so
//! that coverage leads to the token.

pub fn check(text: &str, token: [u8; 3]) {
    for window in text.as_bytes().windows(3) {
        let [a, b, c] = window else { continue };
        if *a == token[0] && *b == token[1] {
            assert!(*c != token[2], "planted");
        }
    }
}
