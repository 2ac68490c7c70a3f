//! A parsed query against one view: its terms with their statistics over all
//! layers, so that scores from files and memory compare.

use hashbrown::HashMap;
use tantivy::query::{
    Bm25StatisticsProvider, Bm25Weight, BooleanQuery, BoostQuery, EnableScoring, Occur, Query,
    TermQuery, Weight,
};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{Score, Term};

use super::spelling;
use crate::audience::Scope;
use crate::dates::Span;
use crate::query::{End, Parsed, Phrase, Term as Asked};
use crate::schema::Fields;
use crate::view::{Layer, Totals};

/// Terms beyond these, the most frequent ones, do not take part.
const MAX_TERMS: usize = 32;

/// Where a term is looked for and what a match there counts.
pub(super) const BODY: usize = 0;
const WEIGHTS: [Score; 4] = [1.0, 0.3, 0.3, 0.2];
/// Title and names are in the body too: only body and frontmatter find.
const FINDS: [bool; 4] = [true, true, false, false];

/// What a word that goes on, and one that is only like it, count beside it.
const BEGUN: Score = 0.8;
const SIMILAR: Score = 0.5;
/// What a word counts as present by another that stands for it.
pub(super) const REPLACED: Score = 0.5;
/// What stands below something, as a share of it.
const BELOW: Score = 0.99;
/// The id of the greatest length that is told apart.
const LONGEST: u8 = 255;
/// The words of a query that others may stand for.
const MAX_LOOSE: usize = 8;

pub(super) struct PlanTerm {
    /// As it is written, and what may stand for it.
    pub words: Vec<String>,
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
    /// The word itself, not one that stands for it.
    pub exact: bool,
    /// Documents with it per layer, also those that do not count.
    counts: Vec<u64>,
}

pub(super) struct Plan {
    pub terms: Vec<PlanTerm>,
    pub pairs: Vec<(usize, usize, Bm25Weight)>,
    /// Groups of alternatives, all of which must hold.
    pub required: Vec<Vec<Condition>>,
    pub excluded: Vec<Condition>,
    pub dated: Span,
    /// It demands or excludes something by itself.
    pub has_operators: bool,
    /// The text could not be read as anything to look for.
    pub nothing: bool,
    shortened: bool,
    /// Words as typed that no text has and others stand for.
    replaced: Vec<String>,
    statistics: Statistics,
}

/// What a lexical score is made of.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Parts {
    pub words: Score,
    pub coverage: Score,
}

impl Parts {
    /// By what scores up to `most` have to be multiplied to stay below these.
    pub fn scale(self, most: Parts) -> Score {
        let scale = (self.words / most.words).min(self.coverage / most.coverage);
        (BELOW * scale).min(1.0)
    }
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
        scope: &Scope,
        parsed: &Parsed,
        only_page: Option<u32>,
    ) -> tantivy::Result<Plan> {
        let statistics = Statistics {
            totals: scope.totals().clone(),
            counts: HashMap::new(),
        };
        let mut plan = Plan {
            terms: Vec::new(),
            pairs: Vec::new(),
            required: required(fields, parsed, only_page),
            excluded: excluded(fields, parsed),
            dated: parsed.dated,
            has_operators: parsed.filters()
                || !parsed.excluded.is_empty()
                || !parsed.excluded_facets.is_empty(),
            nothing: parsed.terms.is_empty() && !parsed.filters(),
            shortened: false,
            replaced: Vec::new(),
            statistics,
        };
        let mut loose = 0;
        for asked in &parsed.terms {
            let mut term = plan.term(fields, scope, asked)?;
            let unknown = term.places.is_empty();
            let may = (asked.edits > 0 || asked.end != End::Closed) && loose < MAX_LOOSE;
            if may && (unknown || asked.end == End::Asked) {
                loose += 1;
                plan.loosen(fields, scope, asked, &mut term)?;
            }
            plan.terms.push(term);
        }
        let keep = plan.rarest();
        plan.add_pairs(fields, parsed, &keep);
        let mut index = 0;
        plan.terms.retain(|_| {
            index += 1;
            keep[index - 1].is_some()
        });
        Ok(plan)
    }

    fn term(&mut self, fields: &Fields, scope: &Scope, asked: &Asked) -> tantivy::Result<PlanTerm> {
        let mut term = PlanTerm {
            words: vec![asked.text.clone()],
            count: asked.count as Score,
            idf: 0.0,
            places: Vec::new(),
        };
        let most = self.add_places(
            fields,
            scope,
            &mut term,
            std::slice::from_ref(&asked.text),
            1.0,
            true,
        )?;
        term.idf = idf(most, self.statistics.totals.docs);
        Ok(term)
    }

    /// Adds the words that may stand for the one that was asked for.
    fn loosen(
        &mut self,
        fields: &Fields,
        scope: &Scope,
        asked: &Asked,
        term: &mut PlanTerm,
    ) -> tantivy::Result<()> {
        let unknown = term.places.is_empty();
        let mut most = 0;
        let mut begun = Vec::new();
        if asked.end != End::Closed {
            begun = spelling::begun(fields, scope, &asked.typed)?;
            let meant = asked.end == End::Asked;
            let weight = if meant { 1.0 } else { BEGUN };
            most = self.add_places(fields, scope, term, &begun, weight, meant)?;
        }
        if begun.is_empty() && unknown {
            let similar = spelling::similar(fields, scope, asked)?;
            most = most.max(self.add_places(fields, scope, term, &similar, SIMILAR, false)?);
        }
        if unknown && !term.places.is_empty() {
            term.idf = idf(most, self.statistics.totals.docs);
            if asked.end != End::Asked {
                self.replaced.push(asked.typed.clone());
            }
        }
        Ok(())
    }

    /// Where words that count as one are; the most entries that a field has them in.
    fn add_places(
        &mut self,
        fields: &Fields,
        scope: &Scope,
        term: &mut PlanTerm,
        words: &[String],
        share: Score,
        exact: bool,
    ) -> tantivy::Result<u64> {
        let all = [fields.body, fields.fields, fields.title, fields.names];
        let mut most = 0;
        for (number, field) in all.into_iter().enumerate() {
            let mut found = Vec::new();
            let mut total = 0;
            for word in words {
                let place = Term::from_field_text(field, word);
                let frequency = scope.count(&place)?;
                if frequency.living > 0 {
                    total += frequency.living;
                    found.push((place, frequency));
                }
            }
            let total = total.min(self.statistics.totals.docs);
            most = most.max(total);
            for (place, frequency) in found {
                self.statistics.counts.insert(place.clone(), total);
                term.places.push(Place {
                    field: number,
                    term: place,
                    weight: WEIGHTS[number] * term.count * share,
                    bm25: self.bm25(field, total),
                    exact,
                    counts: frequency.written,
                });
            }
        }
        let new = words.iter().filter(|word| !term.words.contains(*word));
        let new: Vec<String> = new.cloned().collect();
        term.words.extend(new);
        Ok(most)
    }

    fn bm25(&self, field: Field, count: u64) -> Bm25Weight {
        let totals = &self.statistics.totals;
        let average = totals.tokens(field) as Score / totals.docs.max(1) as Score;
        Bm25Weight::for_one_term_without_explain(count, totals.docs, average)
    }

    /// What the reader should know about how the words were taken.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.shortened {
            notes.push("many words: the rarest were used".to_string());
        }
        if !self.replaced.is_empty() {
            let words = self.replaced.join(", ");
            notes.push(format!(
                "no text has {words}; similar words were looked for"
            ));
        }
        notes
    }

    /// Whether words stand for others, that must not crowd them out.
    pub fn is_loose(&self) -> bool {
        let mut places = self.terms.iter().flat_map(|term| &term.places);
        places.any(|place| !place.exact)
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
    fn add_pairs(&mut self, fields: &Fields, parsed: &Parsed, keep: &[Option<usize>]) {
        let totals = &self.statistics.totals;
        let average = totals.tokens(fields.body) as Score / totals.docs.max(1) as Score;
        let one = Bm25Weight::for_one_term_without_explain(1, totals.docs.max(1), average);
        let unit = idf(1, totals.docs.max(1));
        for (left, right) in &parsed.pairs {
            let both = |index: &usize| {
                let term = &self.terms[*index];
                term.places
                    .iter()
                    .any(|place| place.field == BODY && place.exact)
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

    /// The query that finds candidates in a layer, by the words as they are written
    /// or by all; `None` if nothing is there.
    pub fn finder(
        &self,
        number: usize,
        layer: &Layer,
        exact: bool,
    ) -> tantivy::Result<Option<Finder>> {
        let mut clauses: Vec<(Box<dyn Query>, Score)> = Vec::new();
        let places = self.terms.iter().flat_map(|term| &term.places);
        for place in places.filter(|place| place.exact || !exact) {
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

    /// The least that a unit with one of the words as written can score.
    pub fn least(&self) -> Option<Parts> {
        let mut least: Option<Parts> = None;
        for term in &self.terms {
            for place in term.places.iter().filter(|place| place.exact) {
                let words = place.weight * place.bm25.score(LONGEST, 1);
                let coverage = term.idf * term.count;
                least = Some(match least {
                    None => Parts { words, coverage },
                    Some(least) => Parts {
                        words: least.words.min(words),
                        coverage: least.coverage.min(coverage),
                    },
                });
            }
        }
        least
    }

    /// More than a unit can score that only has words like them.
    pub fn most_like(&self) -> Parts {
        let mut most = Parts::default();
        for term in &self.terms {
            most.coverage += REPLACED * term.idf * term.count;
            let like = term.places.iter().filter(|place| !place.exact);
            most.words += like.map(|p| p.weight * p.bm25.max_score()).sum::<Score>();
        }
        most
    }

    /// The rarities of all words, summed.
    pub fn rarity(&self) -> Score {
        self.terms.iter().map(|term| term.idf * term.count).sum()
    }

    /// Words to highlight with what they are worth.
    pub fn weights(&self) -> impl Iterator<Item = (String, f32)> {
        let words = |term: &PlanTerm| {
            let idf = term.idf;
            term.words.clone().into_iter().map(move |word| (word, idf))
        };
        self.terms.iter().flat_map(words)
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
