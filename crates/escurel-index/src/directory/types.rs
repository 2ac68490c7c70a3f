//! Questions to the directory and what it answers with.

use std::sync::Arc;

use escurel_md::When;
use serde::{Deserialize, Serialize};

use crate::{Entry, LinkFact, PageNo};

/// Through whose eyes names are resolved.
#[derive(Clone, Copy)]
pub struct Scope<'a> {
    /// The what-if overlay that is read; none reads the base.
    pub scenario: Option<&'a str>,
    /// Pages for which this is false do not exist.
    pub visible: &'a dyn Fn(&Entry) -> bool,
}

impl Scope<'static> {
    /// The base, every page visible.
    pub const ALL: Scope<'static> = Scope {
        scenario: None,
        visible: &|_| true,
    };
}

#[derive(Clone, Debug)]
pub enum Resolution {
    Found(Arc<Entry>),
    /// Candidates, by path.
    Ambiguous(Vec<Arc<Entry>>),
    Missing,
}

impl Resolution {
    pub fn found(&self) -> Option<&Arc<Entry>> {
        match self {
            Resolution::Found(entry) => Some(entry),
            _ => None,
        }
    }
}

#[derive(Clone, Debug)]
pub struct Edge<'a> {
    pub src: &'a Arc<Entry>,
    pub link: &'a LinkFact,
    pub to: Resolution,
}

/// What [`crate::Directory::upsert`] did.
#[derive(Clone, Debug)]
pub struct Upserted {
    pub no: PageNo,
    /// The page is new, or its names changed: links may resolve differently.
    pub relink: bool,
    /// What the page was before.
    pub before: Option<Arc<Entry>>,
}

/// Links of all pages; links to assets are not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounts {
    pub links: usize,
    pub broken: usize,
    pub ambiguous: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Order {
    Path,
    /// By `at`, then path; pages without `at` last, by path.
    AtAsc,
    /// The dated part of `AtAsc` backwards; pages without `at` last, by path.
    AtDesc,
}

/// Place in an ordered list: the key of the last page that was taken.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Cursor {
    pub at: Option<i64>,
    pub path: String,
}

impl Cursor {
    pub fn of(entry: &Entry) -> Cursor {
        Cursor {
            at: entry.facts.at.map(|w: When| w.first),
            path: entry.path.to_string(),
        }
    }
}
