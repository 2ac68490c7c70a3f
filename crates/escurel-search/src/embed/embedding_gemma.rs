//! EmbeddingGemma on a server of one's own, such as Ollama.
//!
//! The model was trained with words before each text that say what it is, and
//! so that the first components of a vector are a good shorter one.

use super::openai::Wire;
use super::remote::{RemoteSettings, SettingsError, batched};
use super::{EmbedError, Embedder, Purpose};

const DEFAULT_URL: &str = "http://127.0.0.1:11434/v1";
const DEFAULT_MODEL: &str = "embeddinggemma";
/// What the model makes, then what that may be cut to.
const DIMENSIONS: [usize; 4] = [768, 512, 256, 128];
/// Texts of one request: it runs on a small machine, too.
const BATCH: usize = 16;

pub struct EmbeddingGemma {
    wire: Wire,
    id: String,
    dimensions: usize,
}

impl EmbeddingGemma {
    /// # Errors
    /// [`SettingsError`]. Whether the server answers shows later.
    pub fn new(settings: &RemoteSettings) -> Result<EmbeddingGemma, SettingsError> {
        let wire = Wire::new("embedding-gemma", settings, DEFAULT_URL, DEFAULT_MODEL)?;
        let dimensions = settings.dimensions.unwrap_or(DIMENSIONS[0]);
        if !DIMENSIONS.contains(&dimensions) {
            let told = "is 768, 512, 256 or 128 for EmbeddingGemma.";
            return Err(SettingsError::new("embedding_dimensions", told));
        }
        Ok(EmbeddingGemma {
            id: format!("embedding-gemma:{}@{dimensions}", wire.model),
            wire,
            dimensions,
        })
    }

    /// The first components of a whole vector. Anything else stays as it is, and is refused.
    fn cut(&self, mut vector: Vec<f32>) -> Vec<f32> {
        if vector.len() == DIMENSIONS[0] {
            vector.truncate(self.dimensions);
        }
        vector
    }
}

/// A text as the model knows it.
fn prompt(text: &str, purpose: Purpose) -> String {
    match purpose {
        Purpose::Query => format!("task: search result | query: {text}"),
        Purpose::Document => format!("title: none | text: {text}"),
    }
}

impl Embedder for EmbeddingGemma {
    fn id(&self) -> &str {
        &self.id
    }

    fn dimensions(&self) -> usize {
        self.dimensions
    }

    fn embed(&self, texts: &[&str], purpose: Purpose) -> Result<Vec<Vec<f32>>, EmbedError> {
        batched(texts, BATCH, |texts| {
            let prompts: Vec<String> = texts.iter().map(|text| prompt(text, purpose)).collect();
            let prompts: Vec<&str> = prompts.iter().map(String::as_str).collect();
            let vectors = self.wire.embed(&prompts, None, purpose)?;
            let vectors = vectors.into_iter().map(|vector| self.cut(vector)).collect();
            self.wire.remote.unit(vectors, texts.len(), self.dimensions)
        })
    }

    fn batch(&self) -> usize {
        BATCH
    }
}
