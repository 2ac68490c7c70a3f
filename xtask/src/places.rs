//! Where things are: the checkout, the target folder, the user's cache.
//!
//! Owns no files. Invariant: every path it hands out is absolute.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

pub struct Places {
    /// The checkout.
    pub root: PathBuf,
    /// Cargo's target folder, wherever it was configured.
    pub target: PathBuf,
    /// What may be fetched again: libraries, tools, client installations.
    pub cache: PathBuf,
}

impl Places {
    pub fn find() -> Result<Self> {
        // Set by `cargo run`: right also when two checkouts share a target folder.
        let manifest = std::env::var_os("CARGO_MANIFEST_DIR")
            .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
        let root = manifest
            .parent()
            .context("the xtask folder has no parent")?
            .to_path_buf();
        let target = target_dir(&root)?;
        Ok(Self {
            root,
            target,
            cache: cache_dir()?,
        })
    }

    /// A file of the release profile.
    pub fn release(&self, name: &str) -> PathBuf {
        self.target
            .join("release")
            .join(format!("{name}{}", std::env::consts::EXE_SUFFIX))
    }

    pub fn binary(&self) -> PathBuf {
        self.release("escurel")
    }
}

/// The cargo that started this program.
pub fn cargo() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

fn target_dir(root: &Path) -> Result<PathBuf> {
    let output = Command::new(cargo())
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .current_dir(root)
        .output()
        .context("cargo metadata could not be started")?;
    anyhow::ensure!(
        output.status.success(),
        "cargo metadata failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let dir = metadata["target_directory"]
        .as_str()
        .context("cargo names no target folder")?;
    Ok(PathBuf::from(dir))
}

fn cache_dir() -> Result<PathBuf> {
    let base = match std::env::var_os("XDG_CACHE_HOME").filter(|v| !v.is_empty()) {
        Some(dir) => PathBuf::from(dir),
        None => std::env::home_dir()
            .context("no home folder: set XDG_CACHE_HOME")?
            .join(".cache"),
    };
    Ok(std::path::absolute(base)?.join("escurel"))
}
