//! Vectors of queries: made once each, and not asked for while the provider
//! is known to be unwell, so that words answer without waiting for it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use escurel_search::{EmbedError, Embedder, Purpose, QueryVector};
use parking_lot::Mutex;
use quick_cache::sync::Cache as Recent;

/// Vectors of recent queries that are kept.
const KEPT: usize = 1_000;
/// After a failure nobody asks for so long.
const REST: Duration = Duration::from_secs(10);

pub(super) struct Questions {
    recent: Recent<String, Arc<[f32]>>,
    /// Until when, and why.
    resting: Mutex<Option<(Instant, EmbedError)>>,
}

impl Default for Questions {
    fn default() -> Questions {
        Questions {
            recent: Recent::new(KEPT),
            resting: Mutex::default(),
        }
    }
}

impl Questions {
    /// `None`: the model is not trusted with it.
    pub fn vector(
        &self,
        embedder: &dyn Embedder,
        text: &str,
    ) -> Result<Option<QueryVector>, EmbedError> {
        let trust = embedder.trust(text);
        if trust <= 0.0 || text.trim().is_empty() {
            return Ok(None);
        }
        let vector = match self.recent.get(text) {
            Some(vector) => vector,
            None => self.make(embedder, text)?,
        };
        Ok(Some(QueryVector { vector, trust }))
    }

    fn make(&self, embedder: &dyn Embedder, text: &str) -> Result<Arc<[f32]>, EmbedError> {
        if let Some(error) = self.resting() {
            return Err(error);
        }
        match embedder.embed(&[text], Purpose::Query) {
            Ok(made) => {
                let vector: Arc<[f32]> = made.into_iter().next().unwrap_or_default().into();
                self.recent.insert(text.to_owned(), vector.clone());
                Ok(vector)
            }
            Err(error) => {
                self.rest(&error);
                Err(error)
            }
        }
    }

    /// Why queries are not embedded at this moment.
    pub fn resting(&self) -> Option<EmbedError> {
        let resting = self.resting.lock();
        let (until, error) = resting.as_ref()?;
        (Instant::now() < *until).then(|| error.clone())
    }

    /// What is refused may be the fault of one query alone.
    fn rest(&self, error: &EmbedError) {
        if let EmbedError::Retry { after, .. } = error {
            let until = Instant::now() + after.unwrap_or(REST);
            *self.resting.lock() = Some((until, error.clone()));
        }
    }

    /// The provider answered meanwhile.
    pub fn rested(&self) {
        *self.resting.lock() = None;
    }
}
