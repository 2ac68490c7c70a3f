//! Who counts: the statistics of one segment without the entries that are
//! deleted, replaced by a later layer, or forgotten.
//!
//! Scores must not tell how often a page was rewritten. Invariant: for every
//! term and field the numbers are those of an index of the living entries alone.

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use parking_lot::Mutex;
use tantivy::fieldnorm::FieldNormReader;
use tantivy::index::SegmentId;
use tantivy::postings::SegmentPostings;
use tantivy::schema::IndexRecordOption;
use tantivy::{DocId, DocSet, SegmentReader, TERMINATED, Term};

use crate::schema::{Fields, TEXTS};

/// From this many entries gone, what was counted for a term is remembered.
const WORTH_KEEPING: usize = 64;
/// Terms remembered per segment.
const KEPT_TERMS: usize = 2_000;

/// Tokens per text field. They are sums of field norms, which are rounded, but
/// per entry: so the sum over the same entries is the same in any segment.
type Lengths = [u64; TEXTS];

#[derive(Clone)]
pub(crate) struct Census {
    all: Arc<All>,
    gone: Arc<Gone>,
}

/// A segment as it was written.
struct All {
    segment: SegmentId,
    lengths: Lengths,
    /// How many of the first so many entries in `Gone::order` have a term.
    counted: Mutex<HashMap<Term, (usize, u64)>>,
}

/// Entries that do not count. It only grows, and in one order.
#[derive(Clone, Default)]
struct Gone {
    order: Vec<DocId>,
    set: HashSet<DocId>,
    lengths: Lengths,
    /// How many the files say are deleted.
    deleted: u32,
}

impl Census {
    /// `before` is what was known of the same segment.
    pub fn new(
        fields: &Fields,
        segment: &SegmentReader,
        before: Option<&Census>,
    ) -> tantivy::Result<Census> {
        let mut census = match before {
            Some(before) => before.clone(),
            None => Census {
                all: Arc::new(All::new(fields, segment)?),
                gone: Arc::default(),
            },
        };
        if census.gone.deleted != segment.num_deleted_docs() {
            let deleted = (0..segment.max_doc()).filter(|doc| segment.is_deleted(*doc));
            census.remove(fields, segment, deleted)?;
            Arc::make_mut(&mut census.gone).deleted = segment.num_deleted_docs();
        }
        Ok(census)
    }

    pub fn segment(&self) -> SegmentId {
        self.all.segment
    }

    pub fn remove(
        &mut self,
        fields: &Fields,
        segment: &SegmentReader,
        docs: impl Iterator<Item = DocId>,
    ) -> tantivy::Result<()> {
        let mut docs = docs.filter(|doc| !self.gone.set.contains(doc)).peekable();
        if docs.peek().is_none() {
            return Ok(());
        }
        let mut gone = Gone::clone(&self.gone);
        let norms = norms(fields, segment)?;
        for doc in docs {
            if gone.set.insert(doc) {
                gone.order.push(doc);
                for (sum, norms) in gone.lengths.iter_mut().zip(&norms) {
                    *sum += norms
                        .as_ref()
                        .map_or(0, |norms| u64::from(norms.fieldnorm(doc)));
                }
            }
        }
        self.gone = Arc::new(gone);
        Ok(())
    }

    pub fn docs(&self, segment: &SegmentReader) -> u64 {
        u64::from(segment.max_doc()).saturating_sub(self.gone.order.len() as u64)
    }

    /// Tokens per text field.
    pub fn lengths(&self) -> Lengths {
        let mut lengths = self.all.lengths;
        for (sum, gone) in lengths.iter_mut().zip(self.gone.lengths) {
            *sum = sum.saturating_sub(gone);
        }
        lengths
    }

    pub fn counts(&self, doc: DocId) -> bool {
        self.gone.set.is_empty() || !self.gone.set.contains(&doc)
    }

    /// The entries with a term: as the segment has it, and those that count.
    pub fn count(&self, segment: &SegmentReader, term: &Term) -> tantivy::Result<(u64, u64)> {
        let index = segment.inverted_index(term.field())?;
        let Some(info) = index.get_term_info(term)? else {
            return Ok((0, 0));
        };
        let written = u64::from(info.doc_freq);
        let total = self.gone.order.len();
        if total == 0 {
            return Ok((written, written));
        }
        let known = self.all.counted.lock().get(term).copied();
        let (from, mut count) = known.filter(|(upto, _)| *upto <= total).unwrap_or((0, 0));
        if from < total {
            let postings = index.read_postings_from_terminfo(&info, IndexRecordOption::Basic)?;
            count += self.count_gone(postings, from);
            self.keep(term, total, count);
        }
        Ok((written, written.saturating_sub(count)))
    }

    /// How many of the entries gone since `from` are in the postings: the
    /// shorter list is looked up in the longer.
    fn count_gone(&self, mut postings: SegmentPostings, from: usize) -> u64 {
        let mut count = 0;
        if from == 0 && (postings.doc_freq() as usize) < self.gone.order.len() {
            while postings.doc() != TERMINATED {
                count += u64::from(self.gone.set.contains(&postings.doc()));
                postings.advance();
            }
            return count;
        }
        let mut docs = self.gone.order[from..].to_vec();
        docs.sort_unstable();
        for doc in docs {
            if postings.doc() < doc {
                postings.seek(doc);
            }
            count += u64::from(postings.doc() == doc);
        }
        count
    }

    fn keep(&self, term: &Term, upto: usize, count: u64) {
        if upto < WORTH_KEEPING {
            return;
        }
        let mut counted = self.all.counted.lock();
        if counted.len() >= KEPT_TERMS {
            counted.clear();
        }
        counted.insert(term.clone(), (upto, count));
    }
}

impl All {
    fn new(fields: &Fields, segment: &SegmentReader) -> tantivy::Result<All> {
        let mut lengths = Lengths::default();
        for (sum, norms) in lengths.iter_mut().zip(norms(fields, segment)?) {
            let Some(norms) = norms else { continue };
            *sum = (0..segment.max_doc())
                .map(|doc| u64::from(norms.fieldnorm(doc)))
                .sum();
        }
        Ok(All {
            segment: segment.segment_id(),
            lengths,
            counted: Mutex::default(),
        })
    }
}

/// Absent where no entry of the segment has the field.
pub(crate) fn norms(
    fields: &Fields,
    segment: &SegmentReader,
) -> tantivy::Result<[Option<FieldNormReader>; TEXTS]> {
    let mut readers = [const { None }; TEXTS];
    for (reader, field) in readers.iter_mut().zip(fields.texts()) {
        *reader = segment.fieldnorms_readers().get_field(field)?;
        if reader
            .as_ref()
            .is_some_and(|norms| norms.num_docs() < segment.max_doc())
        {
            let what = "field norms do not cover their segment".to_string();
            return Err(tantivy::TantivyError::InternalError(what));
        }
    }
    Ok(readers)
}
