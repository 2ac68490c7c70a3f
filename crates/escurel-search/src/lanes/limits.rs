//! What a query demands and excludes, as sets of a segment's documents.

use tantivy::query::{EnableScoring, PhraseQuery, Query};
use tantivy::schema::IndexRecordOption;
use tantivy::{BitSet, DocId, DocSet, Searcher, SegmentReader, TERMINATED};

use super::plan::{Condition, Plan};

pub(super) struct Limits {
    /// Sorted; `None` when nothing is demanded.
    pub demanded: Option<Vec<DocId>>,
    pub excluded: Option<BitSet>,
}

impl Limits {
    pub fn new(
        plan: &Plan,
        searcher: &Searcher,
        segment: &SegmentReader,
    ) -> tantivy::Result<Limits> {
        let mut demanded: Option<Vec<DocId>> = None;
        for group in &plan.required {
            let mut docs = Vec::new();
            for condition in group {
                docs.extend(matching(condition, searcher, segment)?);
            }
            if group.len() > 1 {
                docs.sort_unstable();
                docs.dedup();
            }
            demanded = Some(match demanded {
                None => docs,
                Some(before) => intersect(&before, &docs),
            });
        }
        let mut excluded: Option<BitSet> = None;
        for condition in &plan.excluded {
            let set = excluded.get_or_insert_with(|| BitSet::with_max_value(segment.max_doc()));
            for doc in matching(condition, searcher, segment)? {
                set.insert(doc);
            }
        }
        Ok(Limits { demanded, excluded })
    }

    pub fn excludes(&self, doc: DocId) -> bool {
        self.excluded.as_ref().is_some_and(|set| set.contains(doc))
    }
}

fn matching(
    condition: &Condition,
    searcher: &Searcher,
    segment: &SegmentReader,
) -> tantivy::Result<Vec<DocId>> {
    match condition {
        Condition::Term(term) => {
            let index = segment.inverted_index(term.field())?;
            let postings = index.read_postings(term, IndexRecordOption::Basic)?;
            Ok(postings.map(collect).unwrap_or_default())
        }
        Condition::Phrase(terms) => {
            let query = PhraseQuery::new_with_offset(terms.clone());
            let weight = query.weight(EnableScoring::disabled_from_searcher(searcher))?;
            Ok(collect(weight.scorer(segment, 1.0)?))
        }
    }
}

fn collect(mut docs: impl DocSet) -> Vec<DocId> {
    let mut out = Vec::new();
    let mut doc = docs.doc();
    while doc != TERMINATED {
        out.push(doc);
        doc = docs.advance();
    }
    out
}

fn intersect(left: &[DocId], right: &[DocId]) -> Vec<DocId> {
    let (small, large) = if left.len() <= right.len() {
        (left, right)
    } else {
        (right, left)
    };
    small
        .iter()
        .copied()
        .filter(|doc| large.binary_search(doc).is_ok())
        .collect()
}
