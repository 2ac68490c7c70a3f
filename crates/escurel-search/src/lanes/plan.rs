//! A parsed query against one view: its terms with their statistics over all
//! layers, so that scores from files and memory compare.

use hashbrown::HashMap;
use tantivy::query::{
    Bm25StatisticsProvider, Bm25Weight, BooleanQuery, BoostQuery, EnableScoring, Occur, Query,
    TermQuery, Weight,
};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{Score, Term};

use crate::query::{Parsed, Phrase};
use crate::schema::Fields;
use crate::view::{Layer, Totals, View};

/// Terms beyond these, the most frequent ones, do not take part.
const MAX_TERMS: usize = 32;

/// Where a term is looked for and what a match there counts.
pub(super) const BODY: usize = 0;
const WEIGHTS: [Score; 4] = [1.0, 0.3, 0.3, 0.2];
/// Title and names are in the body too: only body and frontmatter find.
const FINDS: [bool; 4] = [true, true, false, false];

pub(super) struct PlanTerm {
    pub text: String,
    pub count: Score,
    pub idf: Score,
    pub places: Vec<Place>,
}

/// A term in one field.
pub(super) struct Place {
    pub field: usize,
    pub term: Term,
    pub weight: Score,
    pub bm25: Bm25Weight,
    /// Documents with it per layer, also those that do not count.
    counts: Vec<u64>,
}

pub(super) struct Plan {
    pub terms: Vec<PlanTerm>,
    pub pairs: Vec<(usize, usize, Bm25Weight)>,
    /// Groups of alternatives, all of which must hold.
    pub required: Vec<Vec<Condition>>,
    pub excluded: Vec<Condition>,
    /// It demands or excludes something by itself.
    pub has_operators: bool,
    /// The text could not be read as anything to look for.
    pub nothing: bool,
    pub shortened: bool,
    statistics: Statistics,
}

/// Something a unit has or has not.
pub(super) enum Condition {
    Term(Term),
    Phrase(Vec<(usize, Term)>),
}

struct Statistics {
    totals: Totals,
    counts: HashMap<Term, u64>,
}

impl Bm25StatisticsProvider for Statistics {
    fn total_num_tokens(&self, field: Field) -> tantivy::Result<u64> {
        Ok(self.totals.tokens(field))
    }

    fn total_num_docs(&self) -> tantivy::Result<u64> {
        Ok(self.totals.docs)
    }

    fn doc_freq(&self, term: &Term) -> tantivy::Result<u64> {
        Ok(self.counts.get(term).copied().unwrap_or(0))
    }
}

impl Plan {
    pub fn new(
        fields: &Fields,
        view: &View,
        parsed: &Parsed,
        only_page: Option<u32>,
    ) -> tantivy::Result<Plan> {
        let statistics = Statistics {
            totals: view.totals.clone(),
            counts: HashMap::new(),
        };
        let mut plan = Plan {
            terms: Vec::new(),
            pairs: Vec::new(),
            required: required(fields, parsed, only_page),
            excluded: excluded(fields, parsed),
            has_operators: parsed.filters()
                || !parsed.excluded.is_empty()
                || !parsed.excluded_facets.is_empty(),
            nothing: parsed.terms.is_empty() && !parsed.filters(),
            shortened: false,
            statistics,
        };
        for (text, count) in &parsed.terms {
            let term = plan.term(fields, view, text, *count)?;
            plan.terms.push(term);
        }
        let keep = plan.rarest();
        plan.add_pairs(view, fields, parsed, &keep);
        let mut index = 0;
        plan.terms.retain(|_| {
            index += 1;
            keep[index - 1].is_some()
        });
        Ok(plan)
    }

    fn term(
        &mut self,
        fields: &Fields,
        view: &View,
        text: &str,
        count: u32,
    ) -> tantivy::Result<PlanTerm> {
        let all = [fields.body, fields.fields, fields.title, fields.names];
        let mut places = Vec::new();
        let mut most = 0;
        for (number, field) in all.into_iter().enumerate() {
            let term = Term::from_field_text(field, text);
            let mut counts = Vec::new();
            let mut total = 0;
            for layer in view.layers() {
                let (written, living) = layer.count(&term)?;
                counts.push(written);
                total += living;
            }
            if total == 0 {
                continue;
            }
            most = most.max(total);
            self.statistics.counts.insert(term.clone(), total);
            let bm25 = self.bm25(field, total);
            let weight = WEIGHTS[number] * count as Score;
            places.push(Place {
                field: number,
                term,
                weight,
                bm25,
                counts,
            });
        }
        let idf = idf(most, self.statistics.totals.docs);
        Ok(PlanTerm {
            text: text.to_string(),
            count: count as Score,
            idf,
            places,
        })
    }

    fn bm25(&self, field: Field, count: u64) -> Bm25Weight {
        let totals = &self.statistics.totals;
        let average = totals.tokens(field) as Score / totals.docs.max(1) as Score;
        Bm25Weight::for_one_term_without_explain(count, totals.docs, average)
    }

    /// Where each term goes when only the rarest stay.
    fn rarest(&mut self) -> Vec<Option<usize>> {
        let mut order: Vec<usize> = (0..self.terms.len()).collect();
        order.sort_by(|a, b| self.terms[*b].idf.total_cmp(&self.terms[*a].idf));
        self.shortened = order.len() > MAX_TERMS;
        let mut kept = vec![false; order.len()];
        for index in order.into_iter().take(MAX_TERMS) {
            kept[index] = true;
        }
        let mut next = 0..;
        kept.into_iter()
            .map(|kept| if kept { next.next() } else { None })
            .collect()
    }

    /// A pair scores like one term whose rarity is that of both.
    fn add_pairs(&mut self, view: &View, fields: &Fields, parsed: &Parsed, keep: &[Option<usize>]) {
        let totals = &view.totals;
        let average = totals.tokens(fields.body) as Score / totals.docs.max(1) as Score;
        let one = Bm25Weight::for_one_term_without_explain(1, totals.docs.max(1), average);
        let unit = idf(1, totals.docs.max(1));
        for (left, right) in &parsed.pairs {
            let both = |index: &usize| {
                let term = &self.terms[*index];
                term.places
                    .iter()
                    .any(|place| place.field == BODY)
                    .then_some(term.idf)
            };
            let (Some(first), Some(second)) = (keep[*left], keep[*right]) else {
                continue;
            };
            if let (Some(a), Some(b)) = (both(left), both(right)) {
                self.pairs
                    .push((first, second, one.boost_by((a + b) / unit)));
            }
        }
    }

    /// The query that finds candidates in a layer; `None` if nothing is there.
    pub fn finder(&self, number: usize, layer: &Layer) -> tantivy::Result<Option<Finder>> {
        let mut clauses: Vec<(Box<dyn Query>, Score)> = Vec::new();
        for place in self.terms.iter().flat_map(|term| &term.places) {
            if FINDS[place.field] && place.counts.get(number).is_some_and(|count| *count > 0) {
                let query = TermQuery::new(place.term.clone(), IndexRecordOption::WithFreqs);
                clauses.push((Box::new(query), place.weight));
            }
        }
        let scoring =
            EnableScoring::enabled_from_statistics_provider(&self.statistics, &layer.searcher);
        // A single clause prunes by blocks only when nothing wraps it.
        if clauses.len() <= 1 {
            let Some((query, scale)) = clauses.pop() else {
                return Ok(None);
            };
            return Ok(Some(Finder {
                weight: query.weight(scoring)?,
                scale,
            }));
        }
        let boosted = clauses.into_iter().map(|(query, weight)| match weight {
            1.0 => (Occur::Should, query),
            _ => (
                Occur::Should,
                Box::new(BoostQuery::new(query, weight)) as Box<dyn Query>,
            ),
        });
        let query = BooleanQuery::new(boosted.collect());
        Ok(Some(Finder {
            weight: query.weight(scoring)?,
            scale: 1.0,
        }))
    }

    /// The rarities of all words, summed.
    pub fn rarity(&self) -> Score {
        self.terms.iter().map(|term| term.idf * term.count).sum()
    }

    /// Words to highlight with what they are worth.
    pub fn weights(&self) -> impl Iterator<Item = (String, f32)> {
        self.terms.iter().map(|term| (term.text.clone(), term.idf))
    }
}

/// Scores a layer's units, up to `scale`.
pub(super) struct Finder {
    pub weight: Box<dyn Weight>,
    pub scale: Score,
}

fn idf(count: u64, docs: u64) -> Score {
    let (count, docs) = (count as Score, docs.max(count) as Score);
    (1.0 + (docs - count + 0.5) / (count + 0.5)).ln()
}

fn required(fields: &Fields, parsed: &Parsed, only_page: Option<u32>) -> Vec<Vec<Condition>> {
    let mut groups: Vec<Vec<Condition>> = Vec::new();
    if let Some(page) = only_page {
        groups.push(vec![Condition::Term(fields.page_term(page))]);
    }
    let facet = |kind, value: &String| Condition::Term(fields.facet_term(kind, value));
    if !parsed.skills.is_empty() {
        groups.push(
            parsed
                .skills
                .iter()
                .map(|skill| facet("skill", skill))
                .collect(),
        );
    }
    groups.extend(parsed.tags.iter().map(|tag| vec![facet("tag", tag)]));
    groups.extend(
        parsed
            .required
            .iter()
            .map(|phrase| vec![condition(fields, phrase)]),
    );
    groups
}

fn excluded(fields: &Fields, parsed: &Parsed) -> Vec<Condition> {
    let phrases = parsed
        .excluded
        .iter()
        .map(|phrase| condition(fields, phrase));
    let facets = parsed.excluded_facets.iter();
    phrases
        .chain(facets.map(|(kind, value)| Condition::Term(fields.facet_term(kind, value))))
        .collect()
}

fn condition(fields: &Fields, phrase: &Phrase) -> Condition {
    let term = |text: &String| Term::from_field_text(fields.body, text);
    match &phrase[..] {
        [(_, text)] => Condition::Term(term(text)),
        several => Condition::Phrase(
            several
                .iter()
                .map(|(offset, text)| (*offset as usize, term(text)))
                .collect(),
        ),
    }
}
