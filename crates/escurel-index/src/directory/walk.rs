//! Walks over the present graph, breadth first.

use hashbrown::{HashMap, HashSet};

use super::Directory;
use super::types::Scope;
use crate::walk::{Hop, Walk};
use crate::{Entry, LinkFact, PageNo};

/// The best way to a page that was found so far: relation, then where from.
type Way<'a> = (&'a str, &'a str, PageNo);

impl Directory {
    /// Every page that can be reached, each once at its least depth, by depth
    /// and path. The start is not among them.
    pub fn walk(&self, walk: &Walk<'_>, scope: &Scope<'_>) -> Vec<Hop> {
        let start = self.get(walk.start).filter(|e| self.seen(e, scope));
        let mut level: Vec<&Entry> = start.map(|e| &**e).into_iter().collect();
        let mut met: HashSet<PageNo> = level.iter().map(|e| e.no).collect();
        let mut hops = Vec::new();
        for depth in 1..=walk.hops() {
            let mut ways: HashMap<PageNo, Way<'_>> = HashMap::new();
            for entry in &level {
                self.steps(entry, walk, scope, &mut |page, way| {
                    if !met.contains(&page) {
                        ways.entry(page)
                            .and_modify(|best| *best = way.min(*best))
                            .or_insert(way);
                    }
                });
            }
            level = ways
                .keys()
                .filter_map(|no| self.get(*no))
                .map(|e| &**e)
                .collect();
            level.sort_unstable_by(|a, b| (&a.path, a.no).cmp(&(&b.path, b.no)));
            for entry in &level {
                met.insert(entry.no);
                let (relation, _, before) = ways[&entry.no];
                hops.push(Hop {
                    page: entry.no,
                    relation: relation.to_owned(),
                    depth,
                    before,
                });
            }
        }
        hops
    }

    fn steps<'a>(
        &'a self,
        entry: &'a Entry,
        walk: &Walk<'_>,
        scope: &Scope<'_>,
        take: &mut dyn FnMut(PageNo, Way<'a>),
    ) {
        let counts = |link: &LinkFact| {
            link.relation.as_deref().is_some_and(|relation| {
                walk.relations.is_empty() || walk.relations.iter().any(|r| r == relation)
            })
        };
        let edges = if walk.up {
            self.outgoing_where(entry, scope, &counts)
        } else {
            self.incoming_where(entry, scope, &counts)
        };
        for edge in edges {
            let other = if walk.up {
                edge.to.found().map(|e| e.no)
            } else {
                Some(edge.src.no)
            };
            if let (Some(other), Some(relation)) = (other, edge.link.relation.as_deref()) {
                take(other, (relation, &entry.path, entry.no));
            }
        }
    }
}
