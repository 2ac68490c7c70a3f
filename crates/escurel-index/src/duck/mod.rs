//! The DuckDB file.
mod rows;

use std::path::Path;
use std::time::Duration;

use escurel_store::Uid;

pub use rows::*;

use crate::{Bitmap, Directory, IndexError, PageNo};

pub struct Duck {}

#[allow(unused_variables, clippy::too_many_arguments)]
impl Duck {
    pub fn open(dir: &Path, generation: u128) -> Result<(Duck, DuckState), IndexError> { Ok((Duck {}, DuckState::Created)) }
    pub fn seq(&self) -> u64 { 0 }
    pub fn apply(&self, changes: &[VersionChange], relink: &[PageNo], dir: &Directory, seq: u64) -> Result<(), IndexError> { Ok(()) }
    pub fn wait_for(&self, seq: u64, timeout: Duration) -> bool { true }
    pub fn versions(&self, uid: Uid) -> Result<Vec<VersionRow>, IndexError> { Ok(Vec::new()) }
    pub fn version_at(&self, uid: Uid, t: i64) -> Result<Option<VersionRow>, IndexError> { Ok(None) }
    pub fn uid_at_path(&self, path: &str) -> Result<Option<Uid>, IndexError> { Ok(None) }
    pub fn page_at(&self, no: PageNo, t: i64) -> Result<Option<PageRow>, IndexError> { Ok(None) }
    pub fn edges_at(&self, no: PageNo, direction: Direction, t: i64) -> Result<Vec<EdgeRow>, IndexError> { Ok(Vec::new()) }
    pub fn instances_at(&self, skill: &str, t: i64) -> Result<Vec<(PageNo, VersionRow)>, IndexError> { Ok(Vec::new()) }
    pub fn ancestry(&self, start: PageNo, up: bool, relations: &[String], max_hops: u32, as_of: Option<i64>, hidden: &Bitmap) -> Result<Vec<Hop>, IndexError> { Ok(Vec::new()) }
    pub fn path(&self, start: PageNo, to: PageNo, up: bool, relations: &[String], max_hops: u32, as_of: Option<i64>, hidden: &Bitmap) -> Result<Option<Vec<PageNo>>, IndexError> { Ok(None) }
    pub fn drift(&self, skill: Option<&str>, hidden: &Bitmap) -> Result<Vec<DriftRow>, IndexError> { Ok(Vec::new()) }
    pub fn abandoned(&self, skill: Option<&str>, hidden: &Bitmap) -> Result<Vec<AbandonedRow>, IndexError> { Ok(Vec::new()) }
    pub fn heads(&self) -> Result<Vec<HeadRow>, IndexError> { Ok(Vec::new()) }
    pub fn checkpoint(&self) -> Result<(), IndexError> { Ok(()) }
    /// Live pages whose rows are not what the directory says they must be, with the reason.
    pub fn differences(&self, dir: &Directory) -> Result<Vec<(PageNo, String)>, IndexError> { Ok(Vec::new()) }
}
