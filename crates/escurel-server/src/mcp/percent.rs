//! Percent-encoding of page paths in URIs: one encoder, one decoder.
//!
//! Decoding happens exactly once; what comes out is checked by the core like
//! any other page id.

/// Encodes all but unreserved characters and the slash.
pub fn encode(path: &str) -> String {
    let mut out = String::with_capacity(path.len() + 8);
    for &b in path.as_bytes() {
        if b.is_ascii_alphanumeric() || b"-._~/".contains(&b) {
            out.push(char::from(b));
        } else {
            out.push('%');
            out.push(hex(b >> 4));
            out.push(hex(b & 15));
        }
    }
    out
}

/// `None` for a broken escape or text that is not UTF-8.
pub fn decode(text: &str) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        if *first == b'%' {
            let [high, low, tail @ ..] = tail else {
                return None;
            };
            out.push(digit(*high)? << 4 | digit(*low)?);
            rest = tail;
        } else {
            out.push(*first);
            rest = tail;
        }
    }
    String::from_utf8(out).ok()
}

fn hex(nibble: u8) -> char {
    char::from(b"0123456789ABCDEF"[usize::from(nibble & 15)])
}

fn digit(b: u8) -> Option<u8> {
    char::from(b)
        .to_digit(16)
        .and_then(|d| u8::try_from(d).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip() {
        for path in [
            "markdown/a.md",
            "a b/ü#?.md",
            "100%/x",
            "名前.md",
            "%2e%2e/x",
        ] {
            assert_eq!(decode(&encode(path)).as_deref(), Some(path));
        }
        assert_eq!(encode("a b/ü"), "a%20b/%C3%BC");
    }

    #[test]
    fn decodes_once_and_strictly() {
        assert_eq!(decode("%252e").as_deref(), Some("%2e"));
        for broken in ["%", "%2", "%zz", "%ff", "%+1"] {
            assert_eq!(decode(broken), None, "{broken}");
        }
    }
}
