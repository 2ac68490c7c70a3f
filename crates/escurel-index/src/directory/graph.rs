//! Links between pages, resolved when they are read.

use std::sync::Arc;

use escurel_md::LinkKind;
use hashbrown::HashMap;
use rayon::prelude::*;

use super::Directory;
use super::names::{Keys, folder, link_keys, page_keys};
use super::resolve::{Name, Place};
use super::types::{Edge, LinkCounts, Resolution, Scope};
use crate::{Entry, Facts, LinkFact, PageNo};

/// Kind, skill and id of a link, and the folder that it stands in.
type Target<'a> = (LinkKind, Option<&'a str>, Option<&'a str>, &'a str);

impl Directory {
    /// Every link of the page with where it leads, in the order of the page.
    pub fn outgoing<'a>(&'a self, e: &'a Entry, scope: &Scope<'_>) -> Vec<Edge<'a>> {
        self.outgoing_where(e, scope, &|_| true)
    }

    pub(super) fn outgoing_where<'a>(
        &'a self,
        e: &'a Entry,
        scope: &Scope<'_>,
        wanted: &dyn Fn(&LinkFact) -> bool,
    ) -> Vec<Edge<'a>> {
        let Some(src) = self.get(e.no) else {
            return Vec::new();
        };
        let links = e.facts.links.iter();
        links
            .filter(|l| l.kind != LinkKind::Asset && wanted(l))
            .map(|link| Edge {
                src,
                link,
                to: self.lookup(Name::from(link), Place::of(e), scope),
            })
            .collect()
    }

    /// Links that lead to the page, by path of their page, then position.
    pub fn incoming(&self, e: &Entry, scope: &Scope<'_>) -> Vec<Edge<'_>> {
        self.incoming_where(e, scope, &|_| true)
    }

    pub(super) fn incoming_where(
        &self,
        e: &Entry,
        scope: &Scope<'_>,
        wanted: &dyn Fn(&LinkFact) -> bool,
    ) -> Vec<Edge<'_>> {
        let keys = self.keys_with_twins(&e.facts, &e.path);
        let mut sources: Vec<PageNo> = keys
            .iter()
            .flat_map(|k| self.mentions.pages(*k))
            .copied()
            .collect();
        sources.push(e.no);
        let mut sources: Vec<&Arc<Entry>> = distinct(sources)
            .into_iter()
            .filter_map(|no| self.get(no))
            .collect();
        sources.retain(|src| self.seen(src, scope));
        sources.sort_by(|a, b| a.path.cmp(&b.path));
        let mut edges = Vec::new();
        let mut known = HashMap::new();
        for src in sources {
            let mentions = |l: &&LinkFact| {
                wanted(l)
                    && (mentions_any(l, &keys)
                        || (l.skill().is_none() && l.id().is_none_or(str::is_empty)))
            };
            for link in src.facts.links.iter().filter(mentions) {
                let to = self.lookup_once(link, src, scope, &mut known);
                if to.found().is_some_and(|page| page.no == e.no) {
                    edges.push(Edge { src, link, to });
                }
            }
        }
        edges
    }

    /// A link may mean a page that this one replaces or makes ambiguous, by any
    /// of its names.
    fn keys_with_twins(&self, facts: &Facts, path: &str) -> Keys {
        let mut keys = page_keys(facts, path);
        for twin in self.twins(facts).iter().filter_map(|no| self.get(*no)) {
            keys.extend(page_keys(&twin.facts, &twin.path));
        }
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    /// A link leads where any equal one in its folder leads, except one that
    /// means its own page.
    fn lookup_once<'a>(
        &self,
        link: &'a LinkFact,
        src: &'a Entry,
        scope: &Scope<'_>,
        known: &mut HashMap<Target<'a>, Resolution>,
    ) -> Resolution {
        let lookup = || self.lookup(Name::from(link), Place::of(src), scope);
        if link.skill().is_none() && link.id().is_none_or(str::is_empty) {
            return lookup();
        }
        let key = (link.kind, link.skill(), link.id(), folder(&src.path));
        known.entry(key).or_insert_with(lookup).clone()
    }

    /// Pages whose links may lead elsewhere because a page with these facts at
    /// this path came or went, ascending.
    pub fn referrers(&self, names_of: &Facts, path: &str) -> Vec<PageNo> {
        let keys = self.keys_with_twins(names_of, path);
        distinct(
            keys.iter()
                .flat_map(|k| self.mentions.pages(*k))
                .copied()
                .collect(),
        )
    }

    /// Over the whole corpus; links of a scenario's pages are read in that scenario.
    pub fn link_counts(&self) -> LinkCounts {
        let pages: Vec<&Arc<Entry>> = self.iter().collect();
        let count = |e: &&Arc<Entry>| self.counts_of(e);
        pages
            .par_iter()
            .with_min_len(256)
            .map(count)
            .reduce(LinkCounts::default, |a, b| LinkCounts {
                links: a.links + b.links,
                broken: a.broken + b.broken,
                ambiguous: a.ambiguous + b.ambiguous,
            })
    }

    fn counts_of(&self, e: &Entry) -> LinkCounts {
        let scope = Scope {
            scenario: e.facts.scenario.as_deref(),
            visible: &|_| true,
        };
        let mut counts = LinkCounts::default();
        for edge in self.outgoing(e, &scope) {
            counts.links += 1;
            match edge.to {
                Resolution::Found(_) => {}
                Resolution::Ambiguous(_) => counts.ambiguous += 1,
                Resolution::Missing => counts.broken += 1,
            }
        }
        counts
    }
}

fn mentions_any(link: &LinkFact, keys: &[u64]) -> bool {
    link_keys(link)
        .iter()
        .any(|k| keys.binary_search(k).is_ok())
}

fn distinct(mut pages: Vec<PageNo>) -> Vec<PageNo> {
    pages.sort_unstable();
    pages.dedup();
    pages
}
