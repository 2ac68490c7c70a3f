//! The prebuilt DuckDB library: fetched once per user, checked, laid out.
//!
//! Owns `.duckdb/` in the checkout and the copy beside the release binaries.
//! Refuses an archive whose checksum is not the pinned one. Invariant: a
//! library file is complete whenever it can be seen, since it arrives by rename.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use sha2::{Digest, Sha512};

use crate::cmd;
use crate::places::Places;

/// The version of DuckDB that the `duckdb` crate in Cargo.lock binds.
pub const VERSION: &str = "1.5.5";
/// The release of the npm packages that carry that library.
const PACKAGE_VERSION: &str = "1.5.5-r.5";

#[cfg(target_os = "windows")]
const LIBRARY: &str = "duckdb.dll";
#[cfg(target_os = "macos")]
const LIBRARY: &str = "libduckdb.dylib";
#[cfg(not(any(target_os = "windows", target_os = "macos")))]
const LIBRARY: &str = "libduckdb.so";

/// One published archive.
struct Archive {
    os: &'static str,
    arch: &'static str,
    package: &'static str,
    sha512: &'static str,
}

const ARCHIVES: &[Archive] = &[
    Archive {
        os: "linux",
        arch: "x86_64",
        package: "@duckdb/node-bindings-linux-x64",
        sha512: "902caae815e19fa4177f017cc957552ab8924873feadf556709e7a706f2a6739\
                 4e669c72bd3e561a6ea332c871838762b4b94eb07b0837f0f8ed162b7235ee1d",
    },
    Archive {
        os: "linux",
        arch: "aarch64",
        package: "@duckdb/node-bindings-linux-arm64",
        sha512: "09a7c7d8022f5eda700f29c6dca07fe2e10e1d11a516807b6ae091308c07dc12\
                 8d2286ec00d5792d2a43277b5fc9108522c2ba7bc013d5eb1e5959eed83bf773",
    },
    Archive {
        os: "macos",
        arch: "aarch64",
        package: "@duckdb/node-bindings-darwin-arm64",
        sha512: "58975e2d3172e29460eb4ae46e9f6c9ad94fd62210f04aed2099314bed8b42d3\
                 35659312072c96fb758fa4da0a7bb2303ed565d9f2e53f0eed0e6416e19f7be2",
    },
    Archive {
        os: "macos",
        arch: "x86_64",
        package: "@duckdb/node-bindings-darwin-x64",
        sha512: "acdd0a8d7d77330550e55e6e7f292896dcbfb5fe1269a7cea4659c500d427a07\
                 fdf233de45db09b0413520c5e7f27deee96bcc4991152661c9de66b81ebed5ce",
    },
    Archive {
        os: "windows",
        arch: "x86_64",
        package: "@duckdb/node-bindings-win32-x64",
        sha512: "9811859fc9deb53fc00212b84ce1ba170e3bf836faf02c4256d43da9fc597359\
                 1902376cf9a62b875ec577fbb909b4c377120bb2b732b85f2af5c51c9b9e2440",
    },
    Archive {
        os: "windows",
        arch: "aarch64",
        package: "@duckdb/node-bindings-win32-arm64",
        sha512: "2f732ba1cdb7c61a8ea305951259e2f0b8049ac9b97bd0dd1b5cb6a4b91aff5b\
                 a0dcf976be940c9753e1c70cf8504305f033816cc80de4104dad8c06d81168fa",
    },
];

const OTHER_WAYS: &str = "Other ways: point DUCKDB_LIB_DIR at a folder with your own copy of \
     DuckDB 1.5.5, or build with `--features bundled` (compiles all of DuckDB, needs a C++ \
     compiler and patience)";

/// Makes the library present for the linker and beside the binaries.
pub fn setup(places: &Places) -> Result<()> {
    let linked = places.root.join(".duckdb");
    let beside = places.target.join("release");
    let source = match own_copy(&linked) {
        Some(own) => {
            let library = own.join(LIBRARY);
            ensure!(
                library.is_file(),
                "DUCKDB_LIB_DIR has no {LIBRARY}: {}",
                own.display()
            );
            library
        }
        None => {
            let library = cached(places)?;
            lay(&library, &linked)?;
            library
        }
    };
    lay(&source, &beside)
}

/// The folder that the user named, unless it is the one that cargo's
/// configuration names for everybody.
fn own_copy(linked: &Path) -> Option<PathBuf> {
    let named = PathBuf::from(std::env::var_os("DUCKDB_LIB_DIR").filter(|v| !v.is_empty())?);
    let same = match (named.canonicalize(), linked.canonicalize()) {
        (Ok(a), Ok(b)) => a == b,
        _ => named == linked,
    };
    (!same).then_some(named)
}

/// The library in the user's cache, fetched if it is not there yet.
fn cached(places: &Places) -> Result<PathBuf> {
    let home = places.cache.join(format!("duckdb-{VERSION}"));
    let library = home.join(PACKAGE_VERSION).join(LIBRARY);
    if library.is_file() {
        return Ok(library);
    }
    let archive = ARCHIVES
        .iter()
        .find(|a| a.os == std::env::consts::OS && a.arch == std::env::consts::ARCH)
        .with_context(|| {
            let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
            format!("no prebuilt DuckDB for {os} on {arch}. {OTHER_WAYS}")
        })?;
    let scratch = home.join(format!(".fetch-{}", std::process::id()));
    fs::create_dir_all(&scratch)?;
    let result = fetch(archive, &scratch).and_then(|found| place(&found, &library));
    // What is left of a fetch is of no use; the result is what counts.
    let _ = fs::remove_dir_all(&scratch);
    result.map(|()| library)
}

fn fetch(archive: &Archive, scratch: &Path) -> Result<PathBuf> {
    let npm = if cfg!(windows) { "npm.cmd" } else { "npm" };
    ensure!(
        cmd::exists(npm),
        "npm is needed once, to fetch the DuckDB library: install Node.js (20 or newer; Debian: \
         `apt-get install nodejs npm`, macOS: `brew install node`). {OTHER_WAYS}"
    );
    let wanted = format!("{}@{PACKAGE_VERSION}", archive.package);
    eprintln!("Fetching {wanted} (about 24 MB) ...");
    cmd::run(
        Command::new(npm)
            .stdout(Stdio::null())
            .args(["pack", "--silent", &wanted])
            .current_dir(scratch),
    )
    .with_context(|| format!("{wanted} could not be fetched. {OTHER_WAYS}"))?;
    let tarball = sole_tarball(scratch)?;
    check(&fs::read(&tarball)?, archive.sha512)?;
    let inside = format!("package/{LIBRARY}");
    cmd::run(
        Command::new("tar")
            .arg("-xzf")
            .arg(&tarball)
            .arg(&inside)
            .current_dir(scratch),
    )
    .context("the archive could not be unpacked")?;
    Ok(scratch.join(inside))
}

fn sole_tarball(dir: &Path) -> Result<PathBuf> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == "tgz") {
            return Ok(path);
        }
    }
    bail!("npm pack left no archive in {}", dir.display())
}

fn check(archive: &[u8], wanted: &str) -> Result<()> {
    let found: String = Sha512::digest(archive)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    ensure!(
        found == wanted,
        "checksum mismatch, nothing was installed: the archive has sha512 {found}, wanted {wanted}"
    );
    Ok(())
}

/// Puts the library into a folder, doing nothing if it is already there.
fn lay(library: &Path, folder: &Path) -> Result<()> {
    let to = folder.join(LIBRARY);
    if same_file(library, &to) {
        return Ok(());
    }
    place(library, &to).with_context(|| format!("{} could not be written", to.display()))
}

/// A hard link is the same file; a copy is told by its length and age.
fn same_file(from: &Path, to: &Path) -> bool {
    let (Ok(a), Ok(b)) = (fs::metadata(from), fs::metadata(to)) else {
        return false;
    };
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        if (a.dev(), a.ino()) == (b.dev(), b.ino()) {
            return true;
        }
    }
    let newer = matches!((a.modified(), b.modified()), (Ok(a), Ok(b)) if b >= a);
    a.len() == b.len() && newer
}

fn place(from: &Path, to: &Path) -> Result<()> {
    let folder = to.parent().context("a library needs a folder")?;
    fs::create_dir_all(folder)?;
    let temp = folder.join(format!(".{LIBRARY}.{}", std::process::id()));
    // Left by a process of the same id that was killed.
    let _ = fs::remove_file(&temp);
    if fs::hard_link(from, &temp).is_err() {
        fs::copy(from, &temp)?;
    }
    fs::rename(&temp, to)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_pinned_archive_is_taken() {
        let empty = "cf83e1357eefb8bdf1542850d66d8007d620e4050b5715dc83f4a921d36ce9ce\
                     47d0d13c5d85f2b0ff8318d2877eec2f63b931bd47417a81a538327af927da3e";
        assert!(check(b"", empty).is_ok());
        assert!(check(b"x", empty).is_err());
    }

    #[test]
    fn every_pin_is_a_checksum() {
        for archive in ARCHIVES {
            let hex = archive.sha512.bytes().all(|b| b.is_ascii_hexdigit());
            assert!(hex && archive.sha512.len() == 128, "{}", archive.package);
        }
    }
}
