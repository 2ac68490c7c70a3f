//! The lane by words: units that have the words as they are written come first,
//! then those that only have words like them.

use hashbrown::HashSet;

use super::plan::{Parts, Plan};
use super::pool::Pool;
use super::{FUSED, Found, rescore};
use crate::api::{Query, SearchError};
use crate::view::View;

/// Units that compete for the exact score, beyond those asked for.
const MARGIN: usize = 60;

/// The best units, deep enough for `k` hits if so many exist.
pub(super) fn best(
    view: &View,
    plan: &Plan,
    query: &Query<'_>,
    k: usize,
) -> Result<Vec<Found>, SearchError> {
    let fused = if query.vectors.is_some() { FUSED } else { 0 };
    let margin = MARGIN.max(fused);
    let mut depth = if query.by_page {
        3 * k + margin
    } else {
        k + margin
    };
    loop {
        let pool = Pool::fill(view, plan, query.candidates, depth, true)?;
        let mut exhausted = !pool.is_cut();
        let mut found = pool.into_found();
        if plan.is_loose() {
            // Beside, not instead: what stands for a word takes no place of the word.
            let pool = Pool::fill(view, plan, query.candidates, depth, false)?;
            exhausted &= !pool.is_cut();
            let known: HashSet<_> = found.iter().map(|f| (f.layer, f.address)).collect();
            let more = pool.into_found().into_iter();
            found.extend(more.filter(|f| !known.contains(&(f.layer, f.address))));
        }
        let mut found = rescore::exact(view, plan, found)?;
        let (mut exact, mut like): (Vec<Found>, Vec<Found>) =
            found.drain(..).partition(|found| found.exact);
        if !like.is_empty() {
            put_below(plan.least(), plan.most_like(), &mut like);
        }
        exact.sort_unstable_by(Found::order);
        like.sort_unstable_by(Found::order);
        exact.append(&mut like);
        if count(&exact, query.by_page) >= k || exhausted {
            return Ok(exact);
        }
        depth *= 4;
    }
}

fn count(found: &[Found], by_page: bool) -> usize {
    match by_page {
        true => {
            let pages: HashSet<u32> = found.iter().map(|found| found.key.0).collect();
            pages.len()
        }
        false => found.len(),
    }
}

/// Scales what is at `most` that high, so that each part of its scores is below
/// `floor`. What there is to be below depends on the plan alone: an answer that a
/// filter narrows has the scores of the whole.
fn put_below(floor: Option<Parts>, most: Parts, rest: &mut [Found]) {
    let Some(floor) = floor else { return };
    let scale = floor.scale(most);
    for found in rest {
        found.score *= scale;
        found.coverage *= scale;
    }
}
