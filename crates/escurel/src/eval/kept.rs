//! Vectors that are kept from run to run, in the user's cache folder.
//!
//! Invariant: one process writes them at a time; others do without.

use std::fs::File;
use std::path::{Path, PathBuf};

use escurel_core::default_cache_home;
use escurel_search::Embedder;
use escurel_search::vectors::Cache;
use escurel_server::config::Config;

pub struct Kept {
    dir: PathBuf,
    _lock: File,
}

impl Kept {
    /// `None`, with a note that says why, when there can be none.
    pub fn open(config: &Config, notes: &mut Vec<String>) -> Option<Kept> {
        let home = config.cache_dir.clone().unwrap_or_else(default_cache_home);
        let dir = home.join("eval");
        match lock(&dir) {
            Ok(lock) => Some(Kept { dir, _lock: lock }),
            Err(why) => {
                notes.push(format!("vectors are not kept in {}: {why}", dir.display()));
                None
            }
        }
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    pub fn cache(&self, model: &dyn Embedder, notes: &mut Vec<String>) -> Option<Cache> {
        let cache = Cache::open(&self.dir, model.id(), model.dimensions());
        cache.map_err(|error| notes.push(error.to_string())).ok()
    }
}

fn lock(dir: &Path) -> Result<File, String> {
    let opened = std::fs::create_dir_all(dir).and_then(|()| File::create(dir.join("lock")));
    let file = opened.map_err(|error| error.to_string())?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(_) => Err("another process uses them".to_owned()),
    }
}
