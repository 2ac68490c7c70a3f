//! From a query to an answer: each lane ranks candidates, the lists are fused,
//! the best become hits. Today one lane ranks, by words; a lane by meaning adds
//! its lists in [`gather`] and nothing else changes.

mod limits;
mod plan;
mod pool;
mod rescore;

use hashbrown::HashMap;
use tantivy::DocAddress;

use crate::api::{Answer, Hit, Lane, LaneState, MAX_K, MAX_TEXTS, Query, SearchError};
use crate::query::{Parsed, parse};
use crate::schema::{Fields, Key};
use crate::snippet;
use crate::view::{Layer, View};

use plan::Plan;
use pool::Pool;

/// A unit that a lane has found.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Found {
    pub score: f32,
    pub key: Key,
    pub unit: u32,
    /// Which layer of the view, and where in it.
    pub layer: usize,
    pub address: DocAddress,
}

impl Found {
    /// Better first; ties by page and unit, so that answers are repeatable.
    fn order(&self, other: &Self) -> std::cmp::Ordering {
        let place = |found: &Self| (found.key.0, found.unit, found.key.1);
        other
            .score
            .total_cmp(&self.score)
            .then_with(|| place(self).cmp(&place(other)))
    }
}

/// The constant of reciprocal rank fusion.
const RRF: f32 = 60.0;
/// What a page's second best unit adds to its score, as a share of it.
const SECOND_UNIT: f32 = 0.1;
/// Units that compete for the exact score, beyond those asked for.
const MARGIN: usize = 60;

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
    let mut answer = Answer {
        lanes: lanes(),
        ..Answer::default()
    };
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
    let best = fuse(lists, query.by_page, k);
    answer.hits = hits(fields, view, &best, &weights)?;
    Ok(answer)
}

fn lanes() -> Vec<Lane> {
    let lane = |name, state, detail: &str| Lane {
        name,
        state,
        detail: detail.to_string(),
    };
    vec![
        lane("lexical", LaneState::Fresh, ""),
        lane("vector", LaneState::Off, "no embedding provider"),
    ]
}

/// Weights of the words to highlight.
type Weights = HashMap<String, f32>;

/// The ranked lists of every lane, one per text and lane.
fn gather(
    fields: &Fields,
    view: &View,
    query: &Query<'_>,
    parsed: &[Parsed],
    k: usize,
    notes: &mut Vec<String>,
) -> Result<(Vec<Vec<Found>>, Weights), SearchError> {
    let mut lists = Vec::new();
    let mut weights = Weights::new();
    for parsed in parsed {
        let plan = Plan::new(fields, view, parsed, query.only_page)?;
        if plan.shortened && !notes.iter().any(|note| note.starts_with("many words")) {
            notes.push("many words: the rarest were used".to_string());
        }
        weights.extend(plan.weights());
        lists.push(lexical(view, &plan, query, k)?);
    }
    Ok((lists, weights))
}

/// The `k` best units, or pages by their best unit, for one text. Looks deeper
/// until `k` are found or nothing is left.
fn lexical(
    view: &View,
    plan: &Plan,
    query: &Query<'_>,
    k: usize,
) -> Result<Vec<Found>, SearchError> {
    let mut depth = if query.by_page {
        3 * k + MARGIN
    } else {
        k + MARGIN
    };
    loop {
        let pool = Pool::fill(view, plan, query.candidates, depth)?;
        let exhausted = !pool.is_cut();
        let mut found = rescore::exact(view, plan, pool.into_found())?;
        found.sort_unstable_by(Found::order);
        if query.by_page {
            found = best_of_pages(found);
        }
        if found.len() >= k || exhausted {
            found.truncate(k.max(MARGIN));
            return Ok(found);
        }
        depth *= 4;
    }
}

/// One entry per page, from entries in order.
fn best_of_pages(found: Vec<Found>) -> Vec<Found> {
    let mut place: HashMap<u32, (usize, bool)> = HashMap::new();
    let mut pages: Vec<Found> = Vec::new();
    for found in found {
        match place.get_mut(&found.key.0) {
            None => {
                place.insert(found.key.0, (pages.len(), false));
                pages.push(found);
            }
            Some((index, seconded)) if !*seconded => {
                *seconded = true;
                pages[*index].score += SECOND_UNIT * found.score;
            }
            Some(_) => {}
        }
    }
    pages.sort_unstable_by(Found::order);
    pages
}

/// One list as it is; several by reciprocal rank.
fn fuse(mut lists: Vec<Vec<Found>>, by_page: bool, k: usize) -> Vec<Found> {
    let mut best = if lists.len() == 1 {
        lists.pop().unwrap_or_default()
    } else {
        by_rank(lists, by_page)
    };
    best.truncate(k);
    best
}

fn by_rank(lists: Vec<Vec<Found>>, by_page: bool) -> Vec<Found> {
    // Of one page or unit in several lists, the place where it ranked best.
    let mut merged: HashMap<(Key, u32), (usize, Found)> = HashMap::new();
    for list in lists {
        for (rank, mut found) in list.into_iter().enumerate() {
            found.score = 1.0 / (RRF + 1.0 + rank as f32);
            let unit = if by_page { 0 } else { found.unit };
            match merged.get_mut(&(found.key, unit)) {
                None => {
                    merged.insert((found.key, unit), (rank, found));
                }
                Some((best, kept)) => {
                    let score = kept.score + found.score;
                    if rank < *best {
                        (*best, *kept) = (rank, found);
                    }
                    kept.score = score;
                }
            }
        }
    }
    let mut fused: Vec<Found> = merged.into_values().map(|(_, found)| found).collect();
    fused.sort_unstable_by(Found::order);
    fused
}

fn hits(
    fields: &Fields,
    view: &View,
    best: &[Found],
    weights: &Weights,
) -> Result<Vec<Hit>, SearchError> {
    let layers: Vec<&Layer> = view.layers().collect();
    let mut hits = Vec::with_capacity(best.len());
    for found in best {
        let document = layers[found.layer].searcher.doc(found.address)?;
        let unit = fields
            .stored_unit(&document)
            .ok_or_else(|| SearchError::Damaged("a stored unit cannot be read".into()))?;
        let cut = snippet::cut(&unit, weights);
        hits.push(Hit {
            page: found.key.0,
            anchor: cut.anchor,
            snippet: cut.text,
            matches: cut.matches,
            score: found.score,
        });
    }
    Ok(hits)
}
