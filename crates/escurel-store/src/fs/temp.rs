//! Names of the temporary files beside pages, and what to do with those that a
//! crash left.
//!
//! The name carries the hashes of what was planned on and of what is new, so
//! that a leftover holding anything else (a save that came in between) is
//! recognised and kept.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use sha2::{Digest, Sha256};

use crate::hex;

const PREFIX: &str = ".escurel-";
const SUFFIX: &str = ".tmp";
/// Stands for "nothing".
const NONE: &str = "0000000000000000";

/// Makes the names of one opened store.
pub(crate) struct Names {
    token: String,
    next: AtomicU64,
}

impl Names {
    pub(crate) fn new(random: [u8; 32]) -> Names {
        Names {
            token: hex::encode(&random[..4]),
            next: AtomicU64::new(0),
        }
    }

    pub(crate) fn name(&self, planned: Option<&[u8]>, new: Option<&[u8]>) -> String {
        let hash = |bytes: Option<&[u8]>| bytes.map_or_else(|| NONE.into(), short_hash);
        let count = self.next.fetch_add(1, Ordering::Relaxed);
        format!(
            "{PREFIX}{}-{}-{}-{count}{SUFFIX}",
            hash(planned),
            hash(new),
            self.token
        )
    }

    /// A temporary file of an earlier process.
    pub(crate) fn is_leftover(&self, name: &str) -> bool {
        parse(name).is_some_and(|(_, _, token)| token != self.token)
    }
}

fn short_hash(bytes: &[u8]) -> String {
    hex::encode(&Sha256::digest(bytes)[..8])
}

/// Planned, new and token of one of our names.
fn parse(name: &str) -> Option<(&str, &str, &str)> {
    let mut parts = name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?.split('-');
    let (planned, new, token) = (parts.next()?, parts.next()?, parts.next()?);
    let count = parts.next()?;
    let is_hex = |text: &str| text.bytes().all(|b| b.is_ascii_hexdigit());
    let good = planned.len() == 16
        && new.len() == 16
        && token.len() == 8
        && [planned, new, token].into_iter().all(is_hex)
        && count.bytes().all(|b| b.is_ascii_digit())
        && parts.next().is_none();
    good.then_some((planned, new, token))
}

/// Removes a leftover; answers where its bytes were kept if nobody else has them.
pub(crate) fn clean(leftover: &Path, rescue: &Path) -> io::Result<Option<PathBuf>> {
    let name = leftover
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default();
    let Some((planned, new, _)) = parse(name) else {
        return Ok(None);
    };
    if !fs::symlink_metadata(leftover)?.is_file() {
        return Ok(None);
    }
    let bytes = fs::read(leftover)?;
    let hash = short_hash(&bytes);
    let kept = match bytes.is_empty() || hash == planned || hash == new {
        true => None,
        false => Some(keep(rescue, &hash, &bytes)?),
    };
    fs::remove_file(leftover)?;
    Ok(kept)
}

fn keep(rescue: &Path, hash: &str, bytes: &[u8]) -> io::Result<PathBuf> {
    fs::create_dir_all(rescue)?;
    let path = rescue.join(format!("{hash}.md"));
    fs::write(&path, bytes)?;
    fs::File::open(&path)?.sync_all()?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_nobody_else_has_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let names = Names::new([1; 32]);
        let later = Names::new([2; 32]);
        let rescue = dir.path().join("rescued");
        let check = |content: &[u8], kept: bool| {
            let name = names.name(Some(b"old"), Some(b"new"));
            assert!(later.is_leftover(&name) && !names.is_leftover(&name));
            let path = dir.path().join(&name);
            fs::write(&path, content).unwrap();
            let rescued = clean(&path, &rescue).unwrap();
            assert_eq!(
                rescued.map(|path| fs::read(path).unwrap()),
                kept.then(|| content.to_vec())
            );
            assert!(!path.exists());
        };
        check(b"old", false);
        check(b"new", false);
        check(b"", false);
        check(b"somebody's save", true);
    }

    #[test]
    fn other_names_are_not_ours() {
        let names = Names::new([1; 32]);
        for name in [
            ".escurel-x.tmp",
            ".escurel",
            ".a.md.tmp",
            ".escurel-0-0-0-0.tmp",
            "a.tmp",
        ] {
            assert!(!names.is_leftover(name), "{name}");
        }
    }
}
