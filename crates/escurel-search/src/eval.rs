//! How good the ranking is, on a labelled collection.
//!
//! Owns the reading of collections, the metrics, and the lanes as they are
//! measured: each alone, and fused as a search fuses them. Changes nothing in
//! how a search ranks. Invariant: what is not judged, or judged at or below
//! zero, is not relevant and keeps its place in the ranking.

mod collection;
mod lanes;
mod metrics;

use std::path::{Path, PathBuf};

pub use collection::{Collection, Document, Question, SetAside};
pub use lanes::{Embedding, Lane, Lanes};
pub use metrics::{CUT, Grades, Latency, Scores, scores};

use crate::api::SearchError;
use crate::embed::EmbedError;

/// Is told what is worked on, how far it is, and of how much. Answers whether
/// to go on.
pub type Watch<'a> = &'a (dyn Fn(&'static str, usize, usize) -> bool + Sync);

/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
pub enum EvalError {
    #[error("eval_missing: {}: {reason}", path.display())]
    Missing { path: PathBuf, reason: String },
    #[error("eval_invalid: {}, line {line}: {reason}", path.display())]
    Invalid {
        path: PathBuf,
        line: usize,
        reason: String,
    },
    #[error("eval_empty: {}: {reason}", path.display())]
    Empty { path: PathBuf, reason: String },
    #[error("eval_stopped: Stopped before everything was measured.")]
    Stopped,
    #[error(transparent)]
    Search(#[from] SearchError),
    #[error("eval_embedding: {0}")]
    Embed(#[from] EmbedError),
}

impl EvalError {
    fn missing(path: &Path, reason: impl Into<String>) -> EvalError {
        EvalError::Missing {
            path: path.to_owned(),
            reason: reason.into(),
        }
    }
}

/// One way of searching, measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    pub lane: &'static str,
    pub scores: Scores,
    pub latency: Latency,
}

/// Questions that are asked once more, before the clock runs.
const WARM: usize = 5;

/// Asks every question of the collection. `ask` answers numbers of documents,
/// best first, at most `k` of them.
///
/// # Errors
/// Those of `ask`, and [`EvalError::Stopped`].
pub fn measure<E: From<EvalError>>(
    lane: &'static str,
    collection: &Collection,
    k: usize,
    watch: Watch<'_>,
    mut ask: impl FnMut(&str) -> Result<Vec<u32>, E>,
) -> Result<Row, E> {
    let questions = &collection.questions;
    for question in questions.iter().take(WARM) {
        ask(&question.text)?;
    }
    let mut took = Vec::with_capacity(questions.len());
    let mut all = Vec::with_capacity(questions.len());
    for (done, question) in questions.iter().enumerate() {
        if !watch(lane, done, questions.len()) {
            return Err(EvalError::Stopped.into());
        }
        let began = std::time::Instant::now();
        let ranking = ask(&question.text)?;
        took.push(began.elapsed());
        all.push(scores(&ranking, &question.grades, k));
    }
    Ok(Row {
        lane,
        scores: Scores::mean(&all),
        latency: Latency::of(took),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_question_is_asked_until_somebody_stops_it() {
        let question = |n: u32| Question {
            id: n.to_string(),
            text: n.to_string(),
            grades: Grades::from([(n, 1.0)]),
        };
        let collection = Collection {
            questions: (0..8).map(question).collect(),
            ..Collection::default()
        };
        let ask = |text: &str| Ok::<_, EvalError>(vec![9, text.parse().unwrap()]);
        let row = measure("words", &collection, 10, &|_, _, _| true, ask).unwrap();
        assert_eq!((row.lane, row.scores.reciprocal_rank), ("words", 0.5));
        assert_eq!(row.scores.recall, 1.0);
        let stopped = measure("words", &collection, 10, &|_, done, _| done < 3, ask);
        assert!(matches!(stopped, Err(EvalError::Stopped)));
    }
}
