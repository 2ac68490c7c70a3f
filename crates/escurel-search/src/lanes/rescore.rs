//! The exact score of a pool: every field, how many of the words are there, and
//! which stand together. Each unit's sum is taken in the order of the query, so
//! that it does not depend on which file or layer the unit is in.

use tantivy::postings::Postings;
use tantivy::schema::IndexRecordOption;
use tantivy::{DocSet, Score, SegmentReader};

use super::Found;
use super::plan::{BODY, Place, Plan, REPLACED};
use crate::view::View;

/// What a pair of neighbours counts beside its words.
const PAIR: Score = 0.1;
/// What the mere presence of a word counts, times its rarity.
pub(super) const COVERAGE: Score = 0.6;
/// How far from neighbours two words may be, either way.
const SLOP: i64 = 2;

pub(super) fn exact(
    view: &View,
    plan: &Plan,
    mut found: Vec<Found>,
) -> tantivy::Result<Vec<Found>> {
    if plan.terms.is_empty() {
        return Ok(found);
    }
    let group = |found: &Found| (found.layer, found.address.segment_ord);
    found.sort_unstable_by_key(|found| (group(found), found.address.doc_id));
    let layers: Vec<_> = view.layers().collect();
    for units in found.chunk_by_mut(|a, b| group(a) == group(b)) {
        let Some((layer, segment)) = units.first().map(group) else {
            continue;
        };
        let segment = layers[layer].searcher.segment_reader(segment);
        Scores::new(plan, units.len()).run(plan, segment, units)?;
    }
    found.retain(|found| found.score > 0.0);
    Ok(found)
}

/// Working memory for the units of one segment.
struct Scores {
    sums: Vec<Score>,
    /// One bit per term, per unit: it is there as written, or another for it.
    present: Vec<u32>,
    replaced: Vec<u32>,
    /// Positions of paired terms: range in `positions` per unit and term.
    ranges: Vec<(u32, u32)>,
    positions: Vec<u32>,
    paired: u32,
    terms: usize,
}

impl Scores {
    fn new(plan: &Plan, units: usize) -> Self {
        let paired = plan
            .pairs
            .iter()
            .fold(0, |bits, (a, b, _)| bits | 1 << a | 1 << b);
        Scores {
            sums: vec![0.0; units],
            present: vec![0; units],
            replaced: vec![0; units],
            ranges: vec![(0, 0); units * plan.terms.len()],
            positions: Vec::new(),
            paired,
            terms: plan.terms.len(),
        }
    }

    fn run(
        mut self,
        plan: &Plan,
        segment: &SegmentReader,
        units: &mut [Found],
    ) -> tantivy::Result<()> {
        for (number, term) in plan.terms.iter().enumerate() {
            for place in &term.places {
                self.add_place(number, place, segment, units)?;
            }
        }
        for (index, unit) in units.iter_mut().enumerate() {
            unit.coverage = self.coverage(plan, index);
            unit.score = self.sums[index] + COVERAGE * unit.coverage;
            unit.exact = self.present[index] != 0;
        }
        if plan.pairs.is_empty() {
            return Ok(());
        }
        let norms = plan
            .terms
            .iter()
            .flat_map(|term| &term.places)
            .find(|p| p.field == BODY);
        let Some(body) = norms.map(|place| place.term.field()) else {
            return Ok(());
        };
        let norms = segment.get_fieldnorms_reader(body)?;
        for (index, unit) in units.iter_mut().enumerate() {
            for (left, right, bm25) in &plan.pairs {
                let count = together(self.at(index, *left), self.at(index, *right));
                if count > 0 {
                    unit.score += PAIR * bm25.score(norms.fieldnorm_id(unit.address.doc_id), count);
                }
            }
        }
        Ok(())
    }

    fn add_place(
        &mut self,
        number: usize,
        place: &Place,
        segment: &SegmentReader,
        units: &[Found],
    ) -> tantivy::Result<()> {
        let field = place.term.field();
        let with_positions = place.field == BODY && place.exact && self.paired & 1 << number != 0;
        let option = match with_positions {
            true => IndexRecordOption::WithFreqsAndPositions,
            false => IndexRecordOption::WithFreqs,
        };
        let index = segment.inverted_index(field)?;
        let Some(mut postings) = index.read_postings(&place.term, option)? else {
            return Ok(());
        };
        let norms = segment.get_fieldnorms_reader(field)?;
        for (index, unit) in units.iter().enumerate() {
            let doc = unit.address.doc_id;
            if postings.doc() < doc {
                postings.seek(doc);
            }
            if postings.doc() != doc {
                continue;
            }
            let score = place
                .bm25
                .score(norms.fieldnorm_id(doc), postings.term_freq());
            self.sums[index] += place.weight * score;
            let bits = match place.exact {
                true => &mut self.present,
                false => &mut self.replaced,
            };
            bits[index] |= 1 << number;
            if with_positions {
                let from = self.positions.len() as u32;
                postings.append_positions_with_offset(0, &mut self.positions);
                self.ranges[index * self.terms + number] = (from, self.positions.len() as u32);
            }
        }
        Ok(())
    }

    fn coverage(&self, plan: &Plan, unit: usize) -> Score {
        let (present, replaced) = (self.present[unit], self.replaced[unit]);
        let share = |number: usize| match 1 << number {
            bit if present & bit != 0 => 1.0,
            bit if replaced & bit != 0 => REPLACED,
            _ => 0.0,
        };
        let terms = plan.terms.iter().enumerate();
        terms
            .map(|(number, term)| share(number) * term.idf * term.count)
            .sum()
    }

    fn at(&self, unit: usize, term: usize) -> &[u32] {
        let (from, to) = self.ranges[unit * self.terms + term];
        &self.positions[from as usize..to as usize]
    }
}

/// How often a word of `left` has one of `right` where its neighbour would be.
fn together(left: &[u32], right: &[u32]) -> u32 {
    let mut count = 0;
    let mut from = 0;
    for position in left {
        let next = i64::from(*position) + 1;
        while right
            .get(from)
            .is_some_and(|at| i64::from(*at) < next - SLOP)
        {
            from += 1;
        }
        count += u32::from(
            right
                .get(from)
                .is_some_and(|at| i64::from(*at) <= next + SLOP),
        );
    }
    count
}

#[cfg(test)]
mod tests {
    use super::together;

    #[test]
    fn neighbours() {
        assert_eq!(together(&[1, 10], &[2, 13]), 2);
        assert_eq!(together(&[1], &[4]), 1);
        assert_eq!(together(&[1], &[5]), 0);
        assert_eq!(together(&[5], &[4]), 1);
        assert_eq!(together(&[], &[4]), 0);
    }
}
