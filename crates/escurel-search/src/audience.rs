//! Whose texts count: statistics of the entries that one audience can see.
//!
//! Scores must not tell what somebody else can see. Invariant: every number that
//! a score is made of is that of an index of the audience's living entries alone.

use std::sync::Arc;

use hashbrown::HashMap;
use parking_lot::Mutex;
use tantivy::schema::IndexRecordOption;
use tantivy::{BitSet, DocSet, SegmentReader, TERMINATED, Term};

use crate::census::norms;
use crate::schema::{Fields, TEXTS};
use crate::view::{Layer, Totals, View};

/// The versions that somebody can see at all, whatever is asked.
pub trait Audience: Send + Sync {
    fn hears(&self, page: u32, seq: u64) -> bool;

    /// Tells audiences of one index apart for as long as this one lives.
    fn id(&self) -> usize;
}

/// Audiences that are remembered per published state.
const KEPT: usize = 16;
/// Terms that are remembered per audience.
const KEPT_TERMS: usize = 2_000;

/// How often a term is in a layer, as its files say, and in all that counts.
#[derive(Clone, Default)]
pub(crate) struct Frequency {
    pub written: Vec<u64>,
    pub living: u64,
}

/// The part of a view that counts.
#[derive(Clone)]
pub(crate) enum Scope {
    Everyone(Arc<View>),
    Some(Arc<View>, Arc<Hearing>),
}

impl Scope {
    pub fn of(
        fields: &Fields,
        view: &Arc<View>,
        audience: Option<&Arc<dyn Audience>>,
    ) -> tantivy::Result<Scope> {
        let Some(audience) = audience else {
            return Ok(Scope::Everyone(view.clone()));
        };
        if let Some(known) = view.hearings.find(audience.id()) {
            return Ok(Scope::Some(view.clone(), known));
        }
        let hearing = Arc::new(Hearing::new(fields, view, audience)?);
        view.hearings.keep(hearing.clone());
        Ok(Scope::Some(view.clone(), hearing))
    }

    pub fn view(&self) -> &View {
        match self {
            Scope::Everyone(view) | Scope::Some(view, _) => view,
        }
    }

    pub fn totals(&self) -> &Totals {
        match self {
            Scope::Everyone(view) => &view.totals,
            Scope::Some(_, hearing) => &hearing.totals,
        }
    }

    pub fn count(&self, term: &Term) -> tantivy::Result<Frequency> {
        match self {
            Scope::Everyone(view) => {
                let mut sum = Frequency::default();
                for layer in view.layers() {
                    let (written, living) = layer.count(term)?;
                    sum.written.push(written);
                    sum.living += living;
                }
                Ok(sum)
            }
            Scope::Some(view, hearing) => hearing.count(view, term),
        }
    }
}

/// What one audience hears of one view.
pub(crate) struct Hearing {
    /// Keeps its id taken.
    audience: Arc<dyn Audience>,
    /// Per layer and segment.
    entries: Vec<Vec<BitSet>>,
    totals: Totals,
    counts: Mutex<HashMap<Term, Frequency>>,
}

impl Hearing {
    fn new(fields: &Fields, view: &View, audience: &Arc<dyn Audience>) -> tantivy::Result<Hearing> {
        let mut totals = Totals::none(fields);
        let mut entries = Vec::new();
        for layer in view.layers() {
            let mut segments = Vec::new();
            for number in 0..layer.searcher.segment_readers().len() {
                let heard = heard(layer, number, audience.as_ref());
                let segment = layer.searcher.segment_reader(number as u32);
                totals.add(heard.len() as u64, lengths(fields, segment, &heard)?);
                segments.push(heard);
            }
            entries.push(segments);
        }
        Ok(Hearing {
            audience: audience.clone(),
            entries,
            totals,
            counts: Mutex::default(),
        })
    }

    fn count(&self, view: &View, term: &Term) -> tantivy::Result<Frequency> {
        if let Some(known) = self.counts.lock().get(term) {
            return Ok(known.clone());
        }
        let mut sum = Frequency::default();
        for (layer, entries) in view.layers().zip(&self.entries) {
            let mut written = 0;
            for (segment, heard) in layer.searcher.segment_readers().iter().zip(entries) {
                let (all, living) = count(segment, term, heard)?;
                written += all;
                sum.living += living;
            }
            sum.written.push(written);
        }
        let mut counts = self.counts.lock();
        if counts.len() >= KEPT_TERMS {
            counts.clear();
        }
        counts.insert(term.clone(), sum.clone());
        Ok(sum)
    }
}

fn heard(layer: &Layer, number: usize, audience: &dyn Audience) -> BitSet {
    let entries = layer.searcher.segment_reader(number as u32).max_doc();
    let mut heard = BitSet::with_max_value(entries);
    for doc in 0..entries {
        if let Some((page, seq)) = layer.living(number, doc)
            && audience.hears(page, seq)
        {
            heard.insert(doc);
        }
    }
    heard
}

fn lengths(
    fields: &Fields,
    segment: &SegmentReader,
    heard: &BitSet,
) -> tantivy::Result<[u64; TEXTS]> {
    let mut lengths = [0; TEXTS];
    for (sum, norms) in lengths.iter_mut().zip(norms(fields, segment)?) {
        let Some(norms) = norms else { continue };
        *sum = (0..segment.max_doc())
            .filter(|doc| heard.contains(*doc))
            .map(|doc| u64::from(norms.fieldnorm(doc)))
            .sum();
    }
    Ok(lengths)
}

fn count(segment: &SegmentReader, term: &Term, heard: &BitSet) -> tantivy::Result<(u64, u64)> {
    let index = segment.inverted_index(term.field())?;
    let Some(mut postings) = index.read_postings(term, IndexRecordOption::Basic)? else {
        return Ok((0, 0));
    };
    let (mut all, mut living) = (0, 0);
    while postings.doc() != TERMINATED {
        all += 1;
        living += u64::from(heard.contains(postings.doc()));
        postings.advance();
    }
    Ok((all, living))
}

/// The audiences of one view, the latest last.
#[derive(Default)]
pub(crate) struct Hearings(Mutex<Vec<Arc<Hearing>>>);

impl Hearings {
    fn find(&self, id: usize) -> Option<Arc<Hearing>> {
        let kept = self.0.lock();
        kept.iter().find(|h| h.audience.id() == id).cloned()
    }

    fn keep(&self, hearing: Arc<Hearing>) {
        let mut kept = self.0.lock();
        if kept.len() >= KEPT {
            kept.remove(0);
        }
        kept.push(hearing);
    }
}
