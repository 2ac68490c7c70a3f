//! The demo corpus that the binary carries.
//!
//! Invariant: it is written once; what its reader changes stays changed.

use std::path::{Path, PathBuf};
use std::{fs, io};

static FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/demo.rs"));

/// The data directory with the demo, written on first use.
pub fn data_dir(env: impl Fn(&str) -> Option<String>) -> io::Result<PathBuf> {
    let demo = place(env)?;
    unpack(&demo.join("tenants").join("demo"))?;
    Ok(demo)
}

/// Where the demo is or would be.
pub fn place(env: impl Fn(&str) -> Option<String>) -> io::Result<PathBuf> {
    let set = |name: &str| {
        env(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let base = set("XDG_DATA_HOME").or_else(|| set("HOME").map(|home| home.join(".local/share")));
    let base = base.ok_or_else(|| {
        io::Error::other("neither XDG_DATA_HOME nor HOME is set, so name a folder to serve")
    })?;
    Ok(base.join("escurel").join("demo"))
}

/// Into a folder beside, then in one step: half a demo is never served.
fn unpack(tenant: &Path) -> io::Result<()> {
    let markdown = tenant.join("markdown");
    if markdown.exists() {
        return Ok(());
    }
    let partial = tenant.join(format!(".demo-{}", std::process::id()));
    for (name, bytes) in FILES {
        let target = partial.join(name);
        fs::create_dir_all(target.parent().unwrap_or(&partial))?;
        fs::write(target, bytes)?;
    }
    let moved = fs::rename(&partial, &markdown);
    if moved.is_err() {
        fs::remove_dir_all(&partial)?;
    }
    // Somebody else may have been faster.
    if markdown.exists() { Ok(()) } else { moved }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_written_once() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().display().to_string();
        let demo = data_dir(|name| (name == "HOME").then(|| home.clone())).unwrap();
        let page = demo.join("tenants/demo/markdown").join(FILES[0].0);
        assert_eq!(fs::read(&page).unwrap(), FILES[0].1);
        fs::write(&page, "mine").unwrap();
        data_dir(|name| {
            (name == "XDG_DATA_HOME").then(|| dir.path().join(".local/share").display().to_string())
        })
        .unwrap();
        assert_eq!(fs::read(&page).unwrap(), b"mine");
        assert!(data_dir(|_| None).is_err());
    }
}
