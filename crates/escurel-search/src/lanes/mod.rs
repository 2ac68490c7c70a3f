//! From a query to an answer: each lane ranks candidates, the lists are fused,
//! the best become hits.

mod fuse;
mod limits;
mod meaning;
mod plan;
mod pool;
mod rescore;

use std::cmp::Ordering;

use hashbrown::{HashMap, HashSet};
use tantivy::DocAddress;

use crate::api::{Answer, Hit, MAX_K, MAX_TEXTS, Query, SearchError};
use crate::query::{Parsed, parse};
use crate::schema::{Fields, Key};
use crate::snippet;
use crate::view::{Layer, View, docs_with};

use fuse::Ranked;
pub use fuse::Why;
use plan::Plan;
use pool::Pool;

/// A unit that the lexical lane has found.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Found {
    pub score: f32,
    /// The rarities of the query's words that are there, summed.
    pub coverage: f32,
    pub key: Key,
    pub unit: u32,
    /// Which layer of the view, and where in it.
    pub layer: usize,
    pub address: DocAddress,
}

impl Found {
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

/// Units that compete for the exact score, beyond those asked for.
const MARGIN: usize = 60;
/// Units of each lane that are fused, at least.
const FUSED: usize = 100;

pub(crate) fn search(
    fields: &Fields,
    view: &View,
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
    let (lists, weights) = gather(fields, view, query, &parsed, k, &mut answer.notes)?;
    let ranking = fuse::join(lists, query.by_page);
    answer.hits = hits(fields, view, ranking, k, &weights)?;
    Ok(answer)
}

/// Weights of the words to highlight.
type Weights = HashMap<String, f32>;

/// One ranking per text, from every lane.
fn gather(
    fields: &Fields,
    view: &View,
    query: &Query<'_>,
    parsed: &[Parsed],
    k: usize,
    notes: &mut Vec<String>,
) -> Result<(Vec<Vec<Ranked>>, Weights), SearchError> {
    let mut lists = Vec::new();
    let mut weights = Weights::new();
    for (number, parsed) in parsed.iter().enumerate() {
        let plan = Plan::new(fields, view, parsed, query.only_page)?;
        if plan.shortened && !notes.iter().any(|note| note.starts_with("many words")) {
            notes.push("many words: the rarest were used".to_string());
        }
        weights.extend(plan.weights());
        lists.push(rank(view, &plan, query, number, k)?);
    }
    Ok((lists, weights))
}

/// The ranking of one text: by words, and by meaning where there is a vector.
fn rank(
    view: &View,
    plan: &Plan,
    query: &Query<'_>,
    number: usize,
    k: usize,
) -> Result<Vec<Ranked>, SearchError> {
    let mut ranked = fuse::lexical(lexical(view, plan, query, k)?, plan.rarity());
    let vectors = query.vectors.as_ref();
    if let Some(vectors) = vectors
        && let Some(Some(vector)) = vectors.vectors.get(number)
        && !plan.nothing
    {
        let wanted = k.max(FUSED);
        let near = meaning::near(view, plan, query, vector, &vectors.snapshot, wanted)?;
        ranked = fuse::blend(ranked, &near, vector, &vectors.snapshot);
    }
    if query.by_page {
        ranked = fuse::best_of_pages(ranked);
    }
    ranked.truncate(k.max(FUSED));
    Ok(ranked)
}

/// The best units by words, deep enough for `k` hits if so many exist.
fn lexical(
    view: &View,
    plan: &Plan,
    query: &Query<'_>,
    k: usize,
) -> Result<Vec<Found>, SearchError> {
    let fused = if query.vectors.is_some() { FUSED } else { 0 };
    let mut depth = if query.by_page {
        3 * k + MARGIN.max(fused)
    } else {
        k + MARGIN.max(fused)
    };
    loop {
        let pool = Pool::fill(view, plan, query.candidates, depth)?;
        let exhausted = !pool.is_cut();
        let mut found = rescore::exact(view, plan, pool.into_found())?;
        found.sort_unstable_by(Found::order);
        let hits = match query.by_page {
            true => found
                .iter()
                .map(|found| found.key.0)
                .collect::<HashSet<_>>()
                .len(),
            false => found.len(),
        };
        if hits >= k || exhausted {
            return Ok(found);
        }
        depth *= 4;
    }
}

fn hits(
    fields: &Fields,
    view: &View,
    ranking: Vec<Ranked>,
    k: usize,
    weights: &Weights,
) -> Result<Vec<Hit>, SearchError> {
    let layers: Vec<&Layer> = view.layers().collect();
    let mut hits = Vec::with_capacity(k.min(ranking.len()));
    for ranked in ranking {
        if hits.len() == k {
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
        let cut = snippet::cut(&unit, weights);
        hits.push(Hit {
            page: ranked.key.0,
            anchor: cut.anchor,
            snippet: cut.text,
            matches: cut.matches,
            score: ranked.score,
            why: ranked.why,
        });
    }
    Ok(hits)
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
