//! One hop in the link graph.

use std::cmp::Ordering;
use std::sync::Arc;

use escurel_access::Caller;
use escurel_index::{Edge, EdgeRow, Entry, LinkFact};
use escurel_md::LinkKind;
use serde_json::Value;

use super::expand::entry_of;
use super::{Reading, excerpt, instant};
use crate::api::{Direction, NeighbourEdge, Neighbours, NeighboursRequest};
use crate::kb::Core;
use crate::{Code, Refusal, Result};

/// Edges of a hub are cut here unless the caller says otherwise.
const LIMIT: usize = 500;

/// An edge with both ends known, and which end is the other page.
struct Found {
    edge: NeighbourEdge,
    other: Arc<Entry>,
}

impl Core {
    /// Touches memory only, unless `as_of` is given.
    ///
    /// # Errors
    /// `page_not_found`, `ambiguous`, `invalid_argument` (`order_by`), `time_invalid`, `index_behind`.
    pub fn neighbours(&self, caller: &Caller, request: &NeighboursRequest) -> Result<Neighbours> {
        let reading = self.reading(caller, request.scenario.as_deref());
        let order = request.order_by.as_deref().map(order).transpose()?;
        let entry = reading.demand(&request.page_id, "page_id")?;
        let mut found = match &request.as_of {
            Some(time) => self.edges_at(&reading, &entry, request.direction, instant(time)?)?,
            None => edges_now(&reading, &entry, request.direction),
        };
        if let Some(skills) = wanted_skills(request) {
            let wanted = |f: &Found| {
                skills
                    .iter()
                    .any(|s| **s == f.edge.link_skill || s.as_str() == &*f.other.facts.skill)
            };
            found.retain(wanted);
        }
        if let Some((key, descending)) = &order {
            found.sort_by_cached_key(|f| SortKey {
                value: f.other.facts.frontmatter_value(key),
                descending: *descending,
            });
            for f in &mut found {
                f.edge.target_frontmatter_excerpt = excerpt(&f.other, [key.as_str()].into_iter());
            }
        }
        let limit = request.limit.unwrap_or(LIMIT);
        let truncated = found.len() > limit;
        found.truncate(limit);
        Ok(Neighbours {
            edges: found.into_iter().map(|f| f.edge).collect(),
            truncated,
        })
    }

    fn edges_at(
        &self,
        reading: &Reading<'_>,
        entry: &Entry,
        direction: Direction,
        time: i64,
    ) -> Result<Vec<Found>> {
        let direction = match direction {
            Direction::In => escurel_index::Direction::In,
            Direction::Out => escurel_index::Direction::Out,
            Direction::Both => escurel_index::Direction::Both,
        };
        let rows = self
            .sql
            .at(reading.view.seq)?
            .edges_at(entry.no, direction, time)?;
        Ok(rows
            .into_iter()
            .filter_map(|row| past_edge(reading, entry, row))
            .collect())
    }
}

fn wanted_skills(request: &NeighboursRequest) -> Option<Vec<&String>> {
    let one = request.link_skill.iter();
    let several = request.link_skill_in.iter().flatten();
    let skills: Vec<&String> = one.chain(several).collect();
    (request.link_skill.is_some() || request.link_skill_in.is_some()).then_some(skills)
}

fn edges_now(reading: &Reading<'_>, entry: &Arc<Entry>, direction: Direction) -> Vec<Found> {
    let dir = &reading.view.dir;
    let mut found = Vec::new();
    if direction != Direction::In {
        let edges = reading.scoped(|scope| dir.outgoing(entry, scope));
        found.extend(
            edges
                .iter()
                .filter(|e| e.link.kind != LinkKind::Asset)
                .filter_map(outgoing),
        );
    }
    if direction != Direction::Out {
        let edges = reading.scoped(|scope| dir.incoming(entry, scope));
        // A page's link to itself is already there as an outgoing edge.
        let twice = |e: &Edge<'_>| direction == Direction::Both && e.src.no == entry.no;
        found.extend(
            edges
                .iter()
                .filter(|e| !twice(e))
                .map(|e| incoming(e, entry)),
        );
    }
    found
}

fn outgoing(edge: &Edge<'_>) -> Option<Found> {
    let target = edge.to.found()?;
    Some(Found {
        edge: neighbour(edge.src, target, edge.link, target),
        other: target.clone(),
    })
}

fn incoming(edge: &Edge<'_>, target: &Entry) -> Found {
    Found {
        edge: neighbour(edge.src, target, edge.link, edge.src),
        other: edge.src.clone(),
    }
}

fn neighbour(src: &Entry, dst: &Entry, link: &LinkFact, other: &Entry) -> NeighbourEdge {
    NeighbourEdge {
        src_page: src.path.to_string(),
        dst_page: dst.path.to_string(),
        link_skill: dst.facts.skill.to_string(),
        relation: link.relation.as_deref().map(str::to_owned),
        link_version: link.version().map(str::to_owned),
        dst_anchor: link.anchor().map(str::to_owned),
        src_anchor: link.src_anchor().map(str::to_owned),
        target_frontmatter_excerpt: excerpt(other, std::iter::empty()),
    }
}

/// An edge of the past between two pages that still exist and may be seen.
fn past_edge(reading: &Reading<'_>, entry: &Entry, row: EdgeRow) -> Option<Found> {
    let src = entry_of(reading, row.src)?.clone();
    let dst = entry_of(reading, row.dst?)?.clone();
    let other = if src.no == entry.no {
        dst.clone()
    } else {
        src.clone()
    };
    let edge = NeighbourEdge {
        src_page: src.path.to_string(),
        dst_page: dst.path.to_string(),
        link_skill: dst.facts.skill.to_string(),
        relation: row.relation,
        link_version: row.version,
        dst_anchor: row.anchor,
        src_anchor: row.src_anchor,
        target_frontmatter_excerpt: excerpt(&other, std::iter::empty()),
    };
    Some(Found { edge, other })
}

/// `<field> <asc|desc>` as (field, descending).
fn order(text: &str) -> Result<(String, bool)> {
    let bad = || {
        Refusal::new(
            Code::InvalidArgument,
            format!("`{text}` is not `<field> asc` or `<field> desc`."),
        )
        .at("order_by")
    };
    let mut words = text.split_whitespace();
    let field = words.next().ok_or_else(bad)?;
    let descending = match words.next().map(str::to_ascii_lowercase).as_deref() {
        None | Some("asc") => false,
        Some("desc") => true,
        Some(_) => return Err(bad()),
    };
    if words.next().is_some() {
        Err(bad())
    } else {
        Ok((field.to_owned(), descending))
    }
}

/// Instants and numbers by value, text by text; pages without the key come last either way.
#[derive(PartialEq)]
struct SortKey {
    value: Option<Value>,
    descending: bool,
}

impl Eq for SortKey {}

impl PartialOrd for SortKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for SortKey {
    fn cmp(&self, other: &Self) -> Ordering {
        let (Some(a), Some(b)) = (&self.value, &other.value) else {
            return other.value.is_some().cmp(&self.value.is_some());
        };
        let order = compare(a, b);
        if self.descending {
            order.reverse()
        } else {
            order
        }
    }
}

fn compare(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a
            .as_f64()
            .unwrap_or(0.0)
            .total_cmp(&b.as_f64().unwrap_or(0.0)),
        (Value::String(a), Value::String(b)) => {
            match (escurel_md::When::parse(a), escurel_md::When::parse(b)) {
                (Some(a), Some(b)) => a.first.cmp(&b.first),
                _ => a.cmp(b),
            }
        }
        (a, b) => a.to_string().cmp(&b.to_string()),
    }
}
