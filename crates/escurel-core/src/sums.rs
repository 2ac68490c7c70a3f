//! What the journal looked like when the index was saved: the next start reads
//! only what came after, so it has to know that the rest is as it was.

use std::path::{Path, PathBuf};

use escurel_store::{FileSum, FsStore};

use crate::Result;
use crate::kb::Core;
use crate::progress::Progress;

fn file(index: &Path) -> PathBuf {
    index.join("journal.json")
}

/// Empty when nothing was saved, or nothing that can be read.
pub(crate) fn load(index: &Path) -> Vec<FileSum> {
    let bytes = std::fs::read(file(index)).unwrap_or_default();
    serde_json::from_slice(&bytes).unwrap_or_default()
}

/// Earlier versions stand in packs only, and nobody would miss one before asking for it.
pub(crate) fn tell_missing(files: &FsStore, sums: &[FileSum], progress: &Progress) {
    for pack in files.missing_packs(sums) {
        progress.warn(format!(
            "journal/{pack} is gone: earlier versions that it held cannot be read. Restore it from a backup; `escurel \
             verify` lists what is missing."
        ));
    }
}

impl Core {
    pub(crate) fn save_sums(&self) -> Result<()> {
        let Some(files) = &self.files else {
            return Ok(());
        };
        let sums = files.journal_sums(&load(&self.index))?;
        let text = serde_json::to_vec(&sums).map_err(std::io::Error::other)?;
        Ok(replace_file(&file(&self.index), &text)?)
    }
}

/// In one step, so that a crash leaves the old file or the new one.
pub(crate) fn replace_file(target: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let partial = target.with_extension("part");
    std::fs::write(&partial, bytes)?;
    std::fs::rename(partial, target)
}
