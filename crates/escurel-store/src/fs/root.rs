//! Whether the folder of pages is still the one that was opened.
//!
//! Device numbers change with a restart of the machine, so what is remembered
//! is whether pages and state are on one device: a tenant's pages on a mount of
//! their own that is not there shows as pages on the state's device.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Paths, sys};
use crate::{RootState, StoreError};

pub(crate) struct Root {
    pages: PathBuf,
    /// Device at open; unknown when the folder was already another.
    dev: Option<u64>,
    memo: PathBuf,
    own_device: bool,
}

#[derive(Serialize, Deserialize)]
struct Memo {
    /// Pages are on another device than the state folder.
    own_device: bool,
}

impl Root {
    pub(crate) fn open(paths: &Paths, writable: bool) -> Result<Root, StoreError> {
        let fail = |path: &Path, error| StoreError::from_io(path, error);
        let pages = device(&paths.pages).map_err(|error| fail(&paths.pages, error))?;
        let state = device(&paths.state).map_err(|error| fail(&paths.state, error))?;
        let memo = paths.state.join("root.json");
        let own_device = pages != state;
        let known = fs::read(&memo)
            .ok()
            .and_then(|text| serde_json::from_slice::<Memo>(&text).ok());
        let mut root = Root {
            pages: paths.pages.clone(),
            dev: Some(pages),
            memo,
            own_device,
        };
        match known {
            Some(known) if known.own_device != own_device => root.dev = None,
            Some(_) => {}
            None if writable => root.remember().map_err(|error| fail(&root.memo, error))?,
            None => {}
        }
        Ok(root)
    }

    fn remember(&self) -> io::Result<()> {
        fs::write(
            &self.memo,
            serde_json::to_vec(&Memo {
                own_device: self.own_device,
            })?,
        )
    }

    pub(crate) fn state(&self) -> RootState {
        match sys::look(&self.pages) {
            Ok(found) if !found.is_dir() => RootState::Missing,
            Ok(found) if Some(sys::stat_of(&found).dev) != self.dev => RootState::OtherDevice,
            Ok(_) => RootState::Ok,
            Err(error) if sys::is_absent(&error) => RootState::Missing,
            Err(error) => RootState::Unreadable(error.to_string()),
        }
    }
}

fn device(folder: &Path) -> io::Result<u64> {
    Ok(sys::stat_of(&fs::metadata(folder)?).dev)
}

/// A person says that the folder's move to another device was meant; takes
/// effect at the next open.
pub(crate) fn forget(paths: &Paths) -> io::Result<()> {
    match fs::remove_file(paths.state.join("root.json")) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
