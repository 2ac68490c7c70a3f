//! From a query to an answer: each lane ranks candidates, the lists are fused,
//! the best become hits.

mod fuse;
mod limits;
mod meaning;
mod plan;
mod pool;
mod rescore;
mod spelling;
mod words;

use std::cmp::Ordering;
use std::sync::Arc;

use hashbrown::HashMap;
use tantivy::DocAddress;

use crate::api::{Answer, DocUnit, Hit, MAX_K, MAX_TEXTS, Query, SearchError};
use crate::audience::Scope;
use crate::query::{Parsed, parse};
use crate::rerank::{self, JUDGED};
use crate::schema::{Fields, Key};
use crate::snippet;
use crate::view::{Layer, View, docs_with};

use fuse::Ranked;
pub use fuse::Why;
use plan::Plan;

/// A unit that the lexical lane has found.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Found {
    pub score: f32,
    /// The rarities of the query's words that are there, summed.
    pub coverage: f32,
    /// It has words as they are written, not only others that stand for them.
    pub exact: bool,
    pub key: Key,
    pub unit: u32,
    /// Which layer of the view, and where in it.
    pub layer: usize,
    pub address: DocAddress,
}

impl Found {
    /// What the words count without their mere presence.
    fn words(&self) -> f32 {
        self.score - rescore::COVERAGE * self.coverage
    }

    fn order(&self, other: &Self) -> Ordering {
        let rank = |found: &Self| (found.score, found.key, found.unit);
        better_first(rank(self), rank(other))
    }
}

/// Score, version and unit: better first; ties by page and unit, so that answers are repeatable.
fn better_first(a: (f32, Key, u32), b: (f32, Key, u32)) -> Ordering {
    let place = |(_, key, unit): (f32, Key, u32)| (key.0, unit, key.1);
    b.0.total_cmp(&a.0).then_with(|| place(a).cmp(&place(b)))
}

/// Units of each lane that are fused, at least.
const FUSED: usize = 100;

pub(crate) fn search(
    fields: &Fields,
    view: &Arc<View>,
    query: &Query<'_>,
) -> Result<Answer, SearchError> {
    if query.texts.len() > MAX_TEXTS {
        return Err(SearchError::InvalidQuery(format!(
            "more than {MAX_TEXTS} query texts"
        )));
    }
    let mut answer = Answer::default();
    let k = query.k.min(MAX_K);
    if query.k > MAX_K {
        answer.notes.push(format!("k was reduced to {MAX_K}"));
    }
    let parsed: Vec<Parsed> = query.texts.iter().map(|text| parse(text)).collect();
    let notes = parsed
        .iter()
        .flat_map(|parsed| parsed.notes.iter().cloned());
    for note in notes {
        if !answer.notes.contains(&note) {
            answer.notes.push(note);
        }
    }
    if query.texts.is_empty() {
        answer.notes.push("no query text".to_string());
    }
    if k == 0 {
        return Ok(answer);
    }
    let scope = Scope::of(fields, view, query.audience.as_ref())?;
    let (lists, weights) = gather(fields, &scope, query, &parsed, k, &mut answer.notes)?;
    let ranking = fuse::join(lists, query.by_page);
    let judged = query.reranker.map_or(0, |_| JUDGED);
    let best = texts_of(fields, view, ranking, k.max(judged))?;
    let best = second_opinion(query, best, &mut answer.notes);
    answer.hits = best
        .into_iter()
        .take(k)
        .map(|(ranked, unit)| hit(ranked, &unit, &weights))
        .collect();
    if answer.hits.is_empty() {
        answer.notes.extend(parsed.iter().filter_map(narrowed));
    }
    Ok(answer)
}

/// What somebody may have mistyped when nothing was found.
fn narrowed(parsed: &Parsed) -> Option<String> {
    let skills = parsed.skills.iter().map(|skill| format!("skill:{skill}"));
    let tags = parsed.tags.iter().map(|tag| format!("tag:{tag}"));
    let operators: Vec<String> = skills.chain(tags).collect();
    (!operators.is_empty()).then(|| {
        let operators = operators.join(" ");
        format!("nothing was found with {operators}: check the name, list_skills knows the skills")
    })
}

/// Weights of the words to highlight.
type Weights = HashMap<String, f32>;

/// One ranking per text, from every lane.
fn gather(
    fields: &Fields,
    scope: &Scope,
    query: &Query<'_>,
    parsed: &[Parsed],
    k: usize,
    notes: &mut Vec<String>,
) -> Result<(Vec<Vec<Ranked>>, Weights), SearchError> {
    let mut lists = Vec::new();
    let mut weights = Weights::new();
    for (number, parsed) in parsed.iter().enumerate() {
        let plan = Plan::new(fields, scope, parsed, query.only_page)?;
        for note in plan.notes() {
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
        weights.extend(plan.weights());
        let found = words::best(scope.view(), &plan, query, k)?;
        let ranked = fuse::lexical(found, plan.rarity());
        lists.push(rank(scope.view(), &plan, query, number, ranked, k)?);
    }
    Ok((lists, weights))
}

/// The ranking of one text: by words, and by meaning where there is a vector.
fn rank(
    view: &View,
    plan: &Plan,
    query: &Query<'_>,
    number: usize,
    mut ranked: Vec<Ranked>,
    k: usize,
) -> Result<Vec<Ranked>, SearchError> {
    let vectors = query.vectors.as_ref();
    if let Some(vectors) = vectors
        && let Some(Some(vector)) = vectors.vectors.get(number)
        && !plan.nothing
    {
        let wanted = k.max(FUSED);
        let near = meaning::near(view, plan, query, vector, &vectors.snapshot, wanted)?;
        ranked = fuse::blend(ranked, &near, vector, &vectors.snapshot, query.by_page);
    }
    if query.by_page {
        ranked = fuse::best_of_pages(ranked);
    }
    ranked.truncate(k.max(FUSED));
    Ok(ranked)
}

/// The first `k` of the ranking with their texts.
fn texts_of(
    fields: &Fields,
    view: &View,
    ranking: Vec<Ranked>,
    k: usize,
) -> Result<Vec<(Ranked, DocUnit)>, SearchError> {
    let layers: Vec<&Layer> = view.layers().collect();
    let mut found = Vec::with_capacity(k.min(ranking.len()));
    for ranked in ranking {
        if found.len() == k {
            break;
        }
        let at = match ranked.at {
            Some(at) => Some(at),
            None => locate(fields, &layers, ranked.key, ranked.unit)?,
        };
        // A vector whose text is not in this view belongs to no answer of it.
        let Some((layer, address)) = at else { continue };
        let document = layers[layer].searcher.doc(address)?;
        let unit = fields
            .stored_unit(&document)
            .ok_or_else(|| SearchError::Damaged("a stored unit cannot be read".into()))?;
        found.push((ranked, unit));
    }
    Ok(found)
}

/// In the order of the reranker, if there is one and it answers.
fn second_opinion(
    query: &Query<'_>,
    mut best: Vec<(Ranked, DocUnit)>,
    notes: &mut Vec<String>,
) -> Vec<(Ranked, DocUnit)> {
    let (Some(reranker), Some(text)) = (query.reranker, query.texts.first()) else {
        return best;
    };
    if best.is_empty() {
        return best;
    }
    let texts: Vec<&str> = best.iter().map(|(_, unit)| unit.text.as_str()).collect();
    match rerank::order(reranker, text, &texts) {
        Ok(order) => {
            let mut taken: Vec<Option<(Ranked, DocUnit)>> = best.drain(..).map(Some).collect();
            let judged = order.into_iter().filter_map(|(n, score)| {
                let (mut ranked, unit) = taken.get_mut(n)?.take()?;
                ranked.score = score;
                Some((ranked, unit))
            });
            judged.collect()
        }
        Err(error) => {
            notes.push(format!("the reranker did not answer: {error}"));
            best
        }
    }
}

fn hit(ranked: Ranked, unit: &DocUnit, weights: &Weights) -> Hit {
    let cut = snippet::cut(unit, weights);
    Hit {
        page: ranked.key.0,
        anchor: cut.anchor,
        snippet: cut.text,
        matches: cut.matches,
        score: ranked.score,
        why: ranked.why,
    }
}

/// Where the view has a unit.
fn locate(
    fields: &Fields,
    layers: &[&Layer],
    key: Key,
    unit: u32,
) -> Result<Option<(usize, DocAddress)>, SearchError> {
    let term = fields.key_term(key);
    for (number, layer) in layers.iter().enumerate().rev() {
        if layer.masked.contains(&key) {
            continue;
        }
        for (ordinal, (segment, columns)) in layer.segments().enumerate() {
            let mut docs = docs_with(segment, &term)?.into_iter();
            let found = docs.find(|doc| columns.unit(*doc) == unit && !segment.is_deleted(*doc));
            if let Some(doc) = found {
                return Ok(Some((number, DocAddress::new(ordinal as u32, doc))));
            }
        }
    }
    Ok(None)
}
