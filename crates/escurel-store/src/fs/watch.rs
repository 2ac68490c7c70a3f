//! Tells of outside changes.

use std::path::Path;

use crossbeam_channel::Sender;

use crate::StoreError;

/// What may have changed on disk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Changed {
    /// Pages that were written, removed or renamed (both names), deduplicated.
    Paths(Vec<String>),
    /// Something was missed: look at everything.
    Rescan,
}

/// Dropping it stops the watching.
pub struct Watch {}

impl Watch {
    pub(crate) fn start(_root: &Path, _pages: &Path, _tx: Sender<Changed>) -> Result<Watch, StoreError> {
        Ok(Watch {})
    }
}
