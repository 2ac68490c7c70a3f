//! The lane by meaning: the nearest units of those that the query and its
//! caller admit.

use hashbrown::HashSet;

use super::limits::Limits;
use super::plan::Plan;
use super::pool::is_dated;
use crate::api::{Candidates, Query, SearchError};
use crate::dates::Span;
use crate::embed::QueryVector;
use crate::schema::Key;
use crate::vectors::{Near, Snapshot};
use crate::view::View;

/// Units that are asked for again when the query excludes some.
const EXCLUDING: usize = 4;

/// What the words around the query's own, its operators, leave.
struct Ruled<'a> {
    inner: &'a dyn Candidates,
    only_page: Option<u32>,
    pages: Option<HashSet<u32>>,
    dated: Span,
}

impl Candidates for Ruled<'_> {
    fn admits(&self, page: u32, seq: u64) -> bool {
        self.only_page.is_none_or(|only| only == page)
            && self
                .pages
                .as_ref()
                .is_none_or(|pages| pages.contains(&page))
            && self.inner.admits(page, seq)
            && is_dated(self.dated, self.inner, page)
    }
}

pub(super) fn near(
    view: &View,
    plan: &Plan,
    query: &Query<'_>,
    vector: &QueryVector,
    snapshot: &Snapshot,
    wanted: usize,
) -> Result<Vec<Near>, SearchError> {
    let rules = rules(view, plan)?;
    let pages = rules
        .demanded
        .as_ref()
        .map(|units| units.iter().map(|(key, _)| key.0).collect());
    let ruled = Ruled {
        inner: query.candidates,
        only_page: query.only_page,
        pages,
        dated: plan.dated,
    };
    let asked = if rules.is_none() {
        wanted
    } else {
        wanted * EXCLUDING
    };
    let mut near = if query.by_page {
        snapshot.near_pages(&vector.vector, asked, &ruled)
    } else {
        snapshot.near(&vector.vector, asked, &ruled)
    };
    near.retain(|near| rules.allow(((near.page, near.seq), near.unit)));
    near.truncate(wanted);
    Ok(near)
}

type Unit = (Key, u32);

/// Units that must be, and must not be, in the answer.
#[derive(Default)]
struct Rules {
    demanded: Option<HashSet<Unit>>,
    excluded: HashSet<Unit>,
}

impl Rules {
    fn is_none(&self) -> bool {
        self.demanded.is_none() && self.excluded.is_empty()
    }

    fn allow(&self, unit: Unit) -> bool {
        self.demanded
            .as_ref()
            .is_none_or(|units| units.contains(&unit))
            && !self.excluded.contains(&unit)
    }
}

fn rules(view: &View, plan: &Plan) -> Result<Rules, SearchError> {
    let mut rules = Rules::default();
    if !plan.has_operators {
        return Ok(rules);
    }
    for layer in view.layers() {
        for (segment, columns) in layer.segments() {
            let limits = Limits::new(plan, &layer.searcher, segment)?;
            let unit = |doc| (columns.key(doc), columns.unit(doc));
            if let Some(docs) = &limits.demanded {
                let units = docs.iter().map(|doc| unit(*doc));
                rules.demanded.get_or_insert_default().extend(units);
            }
            if limits.excluded.is_some() {
                let docs = (0..segment.max_doc()).filter(|doc| limits.excludes(*doc));
                rules.excluded.extend(docs.map(unit));
            }
        }
    }
    Ok(rules)
}
