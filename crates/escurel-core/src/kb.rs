use std::path::PathBuf;
use std::sync::Arc;

use escurel_access::{Caller, Policy};
use escurel_md::Issue;

use crate::api::*;
use crate::{Code, Refusal, Result};

/// How to open a knowledge base.
pub struct OpenOptions {
    pub policy: Arc<dyn Policy>,
}

/// One tenant's knowledge base. All methods block; none needs an async runtime.
pub struct Kb {}

fn later<T>() -> Result<T> {
    Err(Refusal::new(Code::NotSupported, "Not built yet."))
}

impl Kb {
    /// A knowledge base that lives in memory, for tests: `files` are (path, text).
    pub fn in_memory(_files: &[(&str, &str)]) -> Arc<Kb> {
        Arc::new(Kb {})
    }
    pub fn search(&self, _: &Caller, _: &SearchRequest) -> Result<SearchAnswer> {
        later()
    }
    pub fn resolve(&self, _: &Caller, _wikilink: &str, _scenario: Option<&str>) -> Result<Resolved> {
        later()
    }
    /// `None`: no such page, or not for this caller.
    pub fn expand(&self, _: &Caller, _: &ExpandRequest) -> Result<Option<Expanded>> {
        later()
    }
    pub fn neighbours(&self, _: &Caller, _: &NeighboursRequest) -> Result<Neighbours> {
        later()
    }
    pub fn list_skills(&self, _: &Caller) -> Result<Vec<SkillRow>> {
        later()
    }
    pub fn list_instances(&self, _: &Caller, _: &InstancesRequest) -> Result<Instances> {
        later()
    }
    pub fn validate(&self, _: &Caller, _content: &str, _as_page_id: Option<&str>) -> Result<Vec<Issue>> {
        later()
    }
    pub fn provenance_ancestry(&self, _: &Caller, _: &AncestryRequest) -> Result<Ancestry> {
        later()
    }
    pub fn provenance_report(&self, _: &Caller, _: ReportKind, _skill: Option<&str>) -> Result<Report> {
        later()
    }
    /// RFC 3339 validity starts of the page's versions, oldest first; empty for an unknown or hidden page.
    pub fn list_snapshots(&self, _: &Caller, _page_id: &str) -> Result<Vec<String>> {
        later()
    }
    /// Pages for `resources/list`, by path; `after` is the path of the last page seen.
    pub fn list_pages(&self, _: &Caller, _after: Option<&str>, _limit: usize) -> Result<Vec<PageRef>> {
        later()
    }
    /// The whole text of a page's file (frontmatter included), for `resources/read`.
    pub fn page_text(&self, _: &Caller, _page_id: &str) -> Result<Option<(PageRef, String)>> {
        later()
    }
    pub fn status(&self) -> Status {
        Status::default()
    }
    /// Waits until every page on disk can be found; `progress` gets (done, total) about ten times a second. False: interrupted by `close`.
    pub fn wait_ready(&self, _progress: &mut dyn FnMut(&Status)) -> bool {
        true
    }
    /// Compares files, journal and index.
    pub fn verify(&self, _: &Caller) -> Result<VerifyReport> {
        later()
    }
    /// Derives the whole index again.
    pub fn rebuild(&self, _: &Caller, _progress: &mut dyn FnMut(&Status)) -> Result<Status> {
        later()
    }
    /// Lets held deletions happen; returns how many.
    pub fn confirm_deletions(&self, _: &Caller) -> Result<u64> {
        later()
    }
    /// The journal as JSON lines that independent verifiers accept.
    pub fn export_journal(&self, _: &Caller, _out: &mut dyn std::io::Write) -> Result<u64> {
        later()
    }
    /// Stops background work, flushes and saves. Safe to call twice.
    pub fn close(&self) {}
    /// Folder that is served.
    pub fn root(&self) -> PathBuf {
        PathBuf::new()
    }
}
