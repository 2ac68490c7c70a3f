//! The one decoder and checker of page paths and ids that come from outside.
//!
//! Refuses whatever could leave the folder, in any spelling. Invariant: the
//! result, checked again, is returned unchanged.

use unicode_normalization::UnicodeNormalization;

/// Longest path in bytes; file systems end near here.
const MAX_LEN: usize = 4096;
const MAX_DECODINGS: usize = 3;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct PathError {
    /// Always `page_id_invalid`.
    pub code: &'static str,
    pub message: String,
}

/// Decodes percent escapes and checks every stage of the decoding.
pub fn check_page_path(s: &str) -> Result<String, PathError> {
    let mut current = s.to_owned();
    for _ in 0..=MAX_DECODINGS {
        check(&current)?;
        let decoded = decode_once(&current)?;
        if decoded == current {
            return Ok(current);
        }
        current = decoded;
    }
    Err(invalid("percent escapes are nested too deeply"))
}

fn check(s: &str) -> Result<(), PathError> {
    if s.is_empty() {
        return Err(invalid("the path is empty"));
    }
    if s.len() > MAX_LEN {
        return Err(invalid("the path is too long"));
    }
    if s.chars().any(char::is_control) {
        return Err(invalid("the path holds a control character"));
    }
    check_shape(s)?;
    // Compatibility forms of dots and slashes, as some file systems and
    // browsers fold them.
    if s.is_ascii() {
        Ok(())
    } else {
        check_shape(&s.nfkc().collect::<String>())
    }
}

fn check_shape(s: &str) -> Result<(), PathError> {
    if s.contains('\\') {
        return Err(invalid("the path holds a backslash"));
    }
    let b = s.as_bytes();
    if b.len() >= 2
        && b.first().is_some_and(u8::is_ascii_alphabetic)
        && b.get(1) == Some(&b':')
        && b.get(2) != Some(&b':')
    {
        return Err(invalid("the path names a drive"));
    }
    for segment in s.split("::").flat_map(|part| part.split('/')) {
        match segment.trim() {
            "" => return Err(invalid("the path has an empty segment")),
            "." | ".." => return Err(invalid("the path has a `.` or `..` segment")),
            _ => {}
        }
    }
    Ok(())
}

/// One round of `%XX`; a percent sign that begins no escape stays as it is.
fn decode_once(s: &str) -> Result<String, PathError> {
    if !s.contains('%') {
        return Ok(s.to_owned());
    }
    let bytes = percent_decode(s);
    String::from_utf8(bytes).map_err(|_| invalid("the decoded path is not UTF-8"))
}

pub(crate) fn percent_decode(s: &str) -> Vec<u8> {
    let b = s.as_bytes();
    let mut out = Vec::with_capacity(b.len());
    let mut i = 0;
    while let Some(&c) = b.get(i) {
        let hex = |at: usize| b.get(at).and_then(|c| (*c as char).to_digit(16));
        match (c, hex(i + 1), hex(i + 2)) {
            (b'%', Some(high), Some(low)) => {
                out.push((high * 16 + low) as u8);
                i += 3;
            }
            _ => {
                out.push(c);
                i += 1;
            }
        }
    }
    out
}

fn invalid(why: &str) -> PathError {
    PathError {
        code: "page_id_invalid",
        message: format!("{why}; give a path relative to the page root with `/` between names"),
    }
}
