//! Where links lead, worked out afresh over all pages.

use escurel_md::Layout;

use crate::text::{self, Read};

pub(crate) struct Page {
    pub path: String,
    pub uid: String,
    pub version: u64,
    pub text: String,
    pub held: bool,
    pub read: Read,
    pub id: String,
    title: String,
}

impl Page {
    pub fn new(
        path: String,
        uid: String,
        version: u64,
        text: String,
        held: bool,
        layout: Layout,
    ) -> Page {
        let read = text::read(&text);
        let plain = path.trim_end_matches(".md");
        let stem = plain.rsplit('/').next().unwrap_or(plain);
        let default = match layout {
            Layout::Vault => plain,
            Layout::Tenant => stem,
        };
        Page {
            id: read.id.clone().unwrap_or_else(|| default.to_owned()),
            title: read.title.clone().unwrap_or_else(|| stem.to_owned()),
            uid,
            version,
            held,
            read,
            text,
            path,
        }
    }

    fn folder(&self) -> &str {
        self.path.rsplit_once('/').map_or("", |(folder, _)| folder)
    }

    /// How well the page answers to a name that stands in `folder`; the least is the best.
    fn rank(&self, name: &str, folder: Option<&str>) -> Option<u8> {
        let (skill, id) = match name.split_once("::") {
            Some((skill, id)) => (Some(skill), id),
            None => (None, name),
        };
        if skill.is_some_and(|skill| skill != self.read.skill) {
            return None;
        }
        let bare = skill.is_none();
        let file = format!("{id}.md");
        let near = folder.map(|folder| match folder {
            "" => file.clone(),
            folder => format!("{folder}/{file}"),
        });
        if self.id == id {
            Some(0)
        } else if bare && near.as_ref() == Some(&self.path) {
            Some(1)
        } else if bare && self.path == file {
            Some(2)
        } else if self.path == file || self.path.ends_with(&format!("/{file}")) {
            Some(3)
        } else if self.title == id {
            Some(5)
        } else {
            None
        }
    }

    fn is_twin_of(&self, other: &Page) -> bool {
        self.read.skill == other.read.skill && self.id == other.id
    }
}

/// Paths of all pages that the name fits equally well.
pub(crate) fn resolve(pages: &[Page], name: &str, from: Option<&Page>) -> Vec<String> {
    let folder = from.map(Page::folder);
    let ranked: Vec<_> = pages
        .iter()
        .filter_map(|page| Some((page.rank(name, folder)?, page)))
        .collect();
    let Some(best) = ranked.iter().map(|(rank, _)| *rank).min() else {
        return Vec::new();
    };
    let found: Vec<_> = ranked
        .iter()
        .filter(|(rank, _)| *rank == best)
        .map(|(_, page)| *page)
        .collect();
    let by_path = best == 1 || best == 2;
    let fits = |page: &&Page| {
        found.iter().any(|f| match by_path {
            true => f.path == page.path,
            false => f.is_twin_of(page),
        })
    };
    pages
        .iter()
        .filter(fits)
        .map(|page| page.path.clone())
        .collect()
}

/// Source, destination and relation.
pub(crate) type Edge = (String, String, Option<String>);

pub(crate) fn edges(pages: &[Page]) -> Vec<Edge> {
    let mut edges = Vec::new();
    for page in pages {
        for (relation, name) in &page.read.links {
            if let [target] = &resolve(pages, name, Some(page))[..] {
                edges.push((page.path.clone(), target.clone(), relation.clone()));
            }
        }
    }
    edges.sort();
    edges.dedup();
    edges
}
