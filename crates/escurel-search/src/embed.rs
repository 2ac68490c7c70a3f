//! What turns text into vectors: the seam that every provider fills.

mod embedding_gemma;
mod gemini;
mod local;
mod openai;
mod remote;

use std::sync::Arc;
use std::time::Duration;

use crate::vectors::Code;

pub use embedding_gemma::EmbeddingGemma;
pub use gemini::Gemini;
pub use local::Local;
pub use openai::OpenAi;
pub use remote::{Patience, RemoteSettings, SettingsError};

/// A model that texts are embedded with. Vectors have unit length.
pub trait Embedder: Send + Sync + 'static {
    /// Names provider, model and dimensions: vectors of different ids never meet.
    fn id(&self) -> &str;

    fn dimensions(&self) -> usize;

    /// One vector of [`Embedder::dimensions`] per text, in order.
    ///
    /// # Errors
    /// [`EmbedError`]; nothing is embedded then.
    fn embed(&self, texts: &[&str], purpose: Purpose) -> Result<Vec<Vec<f32>>, EmbedError>;

    /// How far the model understands a query, 0 to 1.
    fn trust(&self, _query: &str) -> f32 {
        1.0
    }

    /// So many texts are embedded in one call at best.
    fn batch(&self) -> usize {
        16
    }
}

/// What an embedder answered to so many texts, as it is kept.
///
/// # Errors
/// [`EmbedError::Refused`]: it is not what the embedder says of itself.
pub fn quantised(
    embedder: &dyn Embedder,
    texts: usize,
    vectors: &[Vec<f32>],
) -> Result<Vec<Code>, EmbedError> {
    let shaped = |vector: &Vec<f32>| vector.len() == embedder.dimensions();
    if vectors.len() != texts || !vectors.iter().all(shaped) {
        let told = format!("{} answered vectors of another shape", embedder.id());
        return Err(EmbedError::Refused(told));
    }
    Ok(vectors.iter().map(|vector| Code::of(vector)).collect())
}

/// Some models embed questions and texts differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Purpose {
    Document,
    Query,
}

/// Why texts have no vectors.
#[derive(Debug, Clone, thiserror::Error)]
pub enum EmbedError {
    /// Worth another try later: network, rate limit, a server that starts.
    #[error("{why}")]
    Retry {
        why: String,
        /// Not before so long.
        after: Option<Duration>,
    },
    /// Will fail again until somebody changes the settings.
    #[error("{0}")]
    Refused(String),
}

impl EmbedError {
    pub fn retry(why: impl Into<String>) -> EmbedError {
        let why = why.into();
        EmbedError::Retry { why, after: None }
    }

    /// How long the provider wants to be left alone.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            EmbedError::Retry { after, .. } => *after,
            EmbedError::Refused(_) => None,
        }
    }
}

/// The vectors of one query's phrasings, and the index that they are looked up in.
#[derive(Clone)]
pub struct QueryVectors {
    pub snapshot: Arc<crate::vectors::Snapshot>,
    /// One per text of the query; absent where the model is not trusted.
    pub vectors: Vec<Option<QueryVector>>,
}

#[derive(Clone)]
pub struct QueryVector {
    pub vector: Arc<[f32]>,
    /// 0 to 1: what the model's opinion counts.
    pub trust: f32,
}
