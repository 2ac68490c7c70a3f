//! The candidates of one text: the best units by a first, cheap score, of those
//! that the caller admits. Who is not admitted never takes a place.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use tantivy::{BitSet, DocAddress, DocId, Score, SegmentReader};

use super::Found;
use super::limits::Limits;
use super::plan::{Finder, Plan};
use crate::api::Candidates;
use crate::dates::Span;
use crate::view::{Columns, Layer, View};

/// Up to this many demanded units of a segment are scored without a search.
const FEW: usize = 4096;
/// Sums of one unit differ by rounding with the order of their terms; scores
/// this close to the worst kept one still compete.
const SLACK: Score = 1.0 - 1e-5;

pub(super) struct Pool {
    depth: usize,
    /// The worst on top.
    heap: BinaryHeap<Worst>,
    /// Those scored without a search.
    direct: Vec<Found>,
    cut: bool,
}

struct Worst(Found);

impl Ord for Worst {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.order(&other.0)
    }
}

impl PartialOrd for Worst {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Worst {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Worst {}

/// One segment and what decides there who competes.
struct Gate<'a> {
    layer: &'a Layer,
    segment: &'a SegmentReader,
    columns: &'a Columns,
    limits: &'a Limits,
    demanded: Option<BitSet>,
    candidates: &'a dyn Candidates,
    dated: Span,
    at: (usize, u32),
}

/// Pages without a day are from no day that is asked for.
pub(super) fn is_dated(span: Span, candidates: &dyn Candidates, page: u32) -> bool {
    span.is_all() || candidates.day(page).is_some_and(|day| span.contains(day))
}

impl Gate<'_> {
    fn admits(&self, doc: DocId, score: Score) -> Option<Found> {
        if self.segment.is_deleted(doc)
            || self.limits.excludes(doc)
            || self.demanded.as_ref().is_some_and(|set| !set.contains(doc))
        {
            return None;
        }
        let key = self.columns.key(doc);
        if (!self.layer.masked.is_empty() && self.layer.masked.contains(&key))
            || !self.candidates.admits(key.0, key.1)
            || !is_dated(self.dated, self.candidates, key.0)
        {
            return None;
        }
        let address = DocAddress::new(self.at.1, doc);
        Some(Found {
            score,
            coverage: 0.0,
            exact: true,
            key,
            unit: self.columns.unit(doc),
            layer: self.at.0,
            address,
        })
    }
}

impl Pool {
    /// The best `depth` units of all layers, by first score; of the words as they
    /// are written alone, if `exact`.
    pub fn fill(
        view: &View,
        plan: &Plan,
        candidates: &dyn Candidates,
        depth: usize,
        exact: bool,
    ) -> tantivy::Result<Pool> {
        let mut pool = Pool {
            depth,
            heap: BinaryHeap::new(),
            direct: Vec::new(),
            cut: false,
        };
        if plan.nothing {
            return Ok(pool);
        }
        for (number, layer) in view.layers().enumerate() {
            let finder = plan.finder(number, layer, exact)?;
            if finder.is_none() && !plan.terms.is_empty() {
                continue;
            }
            for (ordinal, (segment, columns)) in layer.segments().enumerate() {
                let limits = Limits::new(plan, &layer.searcher, segment)?;
                let gate = Gate {
                    layer,
                    segment,
                    columns,
                    limits: &limits,
                    demanded: None,
                    candidates,
                    dated: plan.dated,
                    at: (number, ordinal as u32),
                };
                pool.add_segment(gate, finder.as_ref())?;
            }
        }
        Ok(pool)
    }

    fn add_segment(&mut self, mut gate: Gate<'_>, finder: Option<&Finder>) -> tantivy::Result<()> {
        let limits = gate.limits;
        match (finder, &limits.demanded) {
            (None, None) => {}
            (None, Some(docs)) => docs.iter().for_each(|doc| self.offer(&gate, *doc, 0.0)),
            (Some(_), Some(docs)) if docs.len() <= FEW => {
                self.direct
                    .extend(docs.iter().filter_map(|doc| gate.admits(*doc, 0.0)));
            }
            (Some(finder), demanded) => {
                if let Some(docs) = demanded {
                    let mut set = BitSet::with_max_value(gate.segment.max_doc());
                    docs.iter().for_each(|doc| {
                        set.insert(*doc);
                    });
                    gate.demanded = Some(set);
                }
                let start = self.threshold() / finder.scale;
                finder
                    .weight
                    .for_each_pruning(start, gate.segment, &mut |doc, score| {
                        self.offer(&gate, doc, score * finder.scale);
                        self.threshold() / finder.scale
                    })?;
            }
        }
        Ok(())
    }

    fn threshold(&self) -> Score {
        if self.heap.len() < self.depth {
            return Score::MIN;
        }
        self.heap
            .peek()
            .map_or(Score::MIN, |worst| worst.0.score * SLACK)
    }

    fn offer(&mut self, gate: &Gate<'_>, doc: DocId, score: Score) {
        let full = self.heap.len() >= self.depth;
        if full && self.heap.peek().is_some_and(|worst| score < worst.0.score) {
            self.cut = true;
            return;
        }
        let Some(found) = gate.admits(doc, score) else {
            return;
        };
        self.heap.push(Worst(found));
        if full {
            self.heap.pop();
            self.cut = true;
        }
    }

    /// Whether units may exist that are not in the pool.
    pub fn is_cut(&self) -> bool {
        self.cut || self.heap.len() >= self.depth
    }

    pub fn into_found(self) -> Vec<Found> {
        let mut found = self.direct;
        found.extend(self.heap.into_iter().map(|worst| worst.0));
        found
    }
}
