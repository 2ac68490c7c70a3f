//! Page paths on the wire and file names on disk.
//!
//! Invariant: what [`decode`] accepts stays below the folder it is joined to,
//! and `decode(encode(path)) == path`.

use std::path::{Component, Path, PathBuf};

use crate::StoreError;

/// Wire form of a relative path: `/` between names, bytes outside UTF-8 and
/// the backslash itself as `\xHH`.
pub(crate) fn encode(relative: &Path) -> String {
    let mut out = String::new();
    for component in relative.components() {
        if !out.is_empty() {
            out.push('/');
        }
        encode_name(component.as_os_str(), &mut out);
    }
    out
}

#[cfg(unix)]
fn encode_name(name: &std::ffi::OsStr, out: &mut String) {
    use std::os::unix::ffi::OsStrExt;
    for chunk in name.as_bytes().utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '\\' => out.push_str("\\x5C"),
                other => out.push(other),
            }
        }
        for byte in chunk.invalid() {
            out.push_str(&format!("\\x{byte:02X}"));
        }
    }
}

#[cfg(not(unix))]
fn encode_name(name: &std::ffi::OsStr, out: &mut String) {
    out.push_str(&name.to_string_lossy());
}

/// Relative path on disk of a wire path.
pub(crate) fn decode(wire: &str) -> Result<PathBuf, StoreError> {
    let refuse = |why| StoreError::BadPath {
        path: wire.chars().take(256).collect(),
        why,
    };
    if wire.is_empty() {
        return Err(refuse("it is empty"));
    }
    let mut path = PathBuf::new();
    for name in wire.split('/') {
        let name = decode_name(name).map_err(refuse)?;
        path.push(name);
    }
    if !path
        .components()
        .all(|component| matches!(component, Component::Normal(_)))
    {
        return Err(refuse("it leaves its folder"));
    }
    // One file has one spelling: `\\x41` for `A` would be a second one.
    match encode(&path) == wire {
        true => Ok(path),
        false => Err(refuse(ESCAPE)),
    }
}

fn decode_name(name: &str) -> Result<std::ffi::OsString, &'static str> {
    match name {
        "" => return Err("it has an empty part; use single slashes and no leading one"),
        "." | ".." => return Err("`.` and `..` are not allowed"),
        _ => {}
    }
    if name.starts_with('.') {
        return Err("names that begin with a dot are not pages");
    }
    if name.contains('\0') {
        return Err("it holds a NUL character");
    }
    let decoded = unescape(name)?;
    if decoded.starts_with(b".") || decoded.iter().any(|byte| matches!(byte, 0 | b'/')) {
        return Err("an escaped byte stands for a dot, slash or NUL");
    }
    to_os(decoded)
}

const ESCAPE: &str = "a backslash stands only before xHH, two hex digits of a byte outside UTF-8";

fn unescape(name: &str) -> Result<Vec<u8>, &'static str> {
    let mut out = Vec::with_capacity(name.len());
    let mut rest = name.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        if byte != b'\\' {
            out.push(byte);
            rest = tail;
            continue;
        }
        let Some(([b'x', high, low], tail)) = tail.split_first_chunk() else {
            return Err(ESCAPE);
        };
        let digit = |d: u8| (d as char).to_digit(16).ok_or(ESCAPE);
        out.push((digit(*high)? << 4 | digit(*low)?) as u8);
        rest = tail;
    }
    Ok(out)
}

#[cfg(unix)]
fn to_os(bytes: Vec<u8>) -> Result<std::ffi::OsString, &'static str> {
    use std::os::unix::ffi::OsStringExt;
    Ok(std::ffi::OsString::from_vec(bytes))
}

#[cfg(not(unix))]
fn to_os(bytes: Vec<u8>) -> Result<std::ffi::OsString, &'static str> {
    let text = String::from_utf8(bytes).map_err(|_| "it is not UTF-8")?;
    match text.contains(|c: char| c.is_control() || r#"<>:"|?*\"#.contains(c)) {
        true => Err("it holds a character that file names cannot hold here"),
        false => Ok(text.into()),
    }
}

/// Names that are never pages nor folders of pages.
pub(crate) fn skipped(name: &str) -> bool {
    name.starts_with('.')
        || name == "node_modules"
        || name == "4913"
        || name.ends_with('~')
        || (name.starts_with('#') && name.ends_with('#'))
        || has_extension(name, &["tmp", "swp", "swo", "swx", "part", "crdownload"])
}

/// Whether a file of that name is a page; a path's folders do not matter.
pub fn is_page(name: &str) -> bool {
    has_extension(name, &["md", "markdown"])
}

fn has_extension(name: &str, wanted: &[&str]) -> bool {
    match name.rsplit_once('.') {
        Some((_, extension)) => wanted.iter().any(|w| extension.eq_ignore_ascii_case(w)),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(wire: &str) {
        assert_eq!(
            decode(wire).map_err(|e| e.code()),
            Err("bad_path"),
            "{wire}"
        );
    }

    #[test]
    fn paths_stay_below_their_folder() {
        for wire in [
            "",
            "/",
            "/etc/passwd.md",
            "../x.md",
            "a/../x.md",
            "a//b.md",
            "a/",
            "./a.md",
            ".escurel/x.md",
            "a/.git/x.md",
            "\\x2E\\x2E/x.md",
            "a\\x2Fb.md",
            "a\\x00.md",
            "a\0.md",
            "a\\b.md",
            "a\\x4",
            "a\\",
            "a\\x+1.md",
            "..",
            "\\x41.md",
            "caf\\xe9.md",
        ] {
            refused(wire);
        }
        for wire in ["a.md", "notes/ä b.md", "a\\x5Cb.md", "caf\\xE9.md"] {
            assert_eq!(encode(&decode(wire).unwrap()), wire);
        }
    }

    #[cfg(unix)]
    #[test]
    fn bytes_outside_utf8_come_back() {
        use std::os::unix::ffi::OsStrExt;
        let name = std::ffi::OsStr::from_bytes(b"caf\xe9\\x41.md");
        let wire = encode(Path::new(name));
        assert_eq!(wire, "caf\\xE9\\x5Cx41.md");
        assert_eq!(decode(&wire).unwrap(), Path::new(name));
    }

    #[test]
    fn editors_leftovers_are_skipped() {
        for name in [
            ".a.md.swp",
            "a.md~",
            ".#a.md",
            "4913",
            "a.md.tmp",
            "a.SWP",
            "#a.md#",
            "node_modules",
        ] {
            assert!(skipped(name), "{name}");
        }
        for name in ["a.md", "49130.md", "tmp", "notes~old.md", "#1.md"] {
            assert!(!skipped(name), "{name}");
        }
        assert!(is_page("A.MD") && is_page("b.Markdown") && !is_page("md") && !is_page("a.mdx"));
    }
}
