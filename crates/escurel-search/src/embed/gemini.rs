//! Google's Gemini.

use serde::Deserialize;
use serde_json::{Value, json};

use super::remote::{Auth, Remote, RemoteSettings, SettingsError, batched};
use super::{EmbedError, Embedder, Purpose};

const DEFAULT_URL: &str = "https://generativelanguage.googleapis.com/v1beta";
const DEFAULT_MODEL: &str = "gemini-embedding-001";
/// Of the 3072 that it can make, so many are nearly as good at a quarter of the memory.
const DEFAULT_DIMENSIONS: usize = 768;
const MOST_DIMENSIONS: usize = 3072;
/// Texts of one request; the service takes 100.
const BATCH: usize = 64;

pub struct Gemini {
    remote: Remote,
    model: String,
    id: String,
    dimensions: usize,
}

#[derive(Deserialize)]
struct Batch {
    embeddings: Vec<Embedding>,
}

#[derive(Deserialize)]
struct Embedding {
    values: Vec<f32>,
}

impl Gemini {
    /// # Errors
    /// [`SettingsError`]. Whether the service answers shows later.
    pub fn new(settings: &RemoteSettings) -> Result<Gemini, SettingsError> {
        if settings.api_key.is_none() {
            let told = "is needed by the provider gemini; set ESCUREL_EMBEDDING_API_KEY.";
            return Err(SettingsError::new("embedding_api_key", told));
        }
        let dimensions = settings.dimensions.unwrap_or(DEFAULT_DIMENSIONS);
        if dimensions > MOST_DIMENSIONS {
            let told = "is at most 3072 for Gemini.";
            return Err(SettingsError::new("embedding_dimensions", told));
        }
        let named = settings.model.as_deref().unwrap_or(DEFAULT_MODEL);
        let model = named.strip_prefix("models/").unwrap_or(named).to_owned();
        if !is_segment(&model) {
            let told = "is not the name of a model such as gemini-embedding-001.";
            return Err(SettingsError::new("embedding_model", told));
        }
        let auth = Auth {
            header: "x-goog-api-key",
            scheme: "",
        };
        let path = format!("models/{model}:batchEmbedContents");
        Ok(Gemini {
            remote: Remote::new("gemini", settings, DEFAULT_URL, &path, auth)?,
            id: format!("gemini:{model}@{dimensions}"),
            model: format!("models/{model}"),
            dimensions,
        })
    }

    fn request(&self, text: &str, purpose: Purpose) -> Value {
        json!({
            "model": self.model,
            "content": {"parts": [{"text": text}]},
            "taskType": match purpose {
                Purpose::Document => "RETRIEVAL_DOCUMENT",
                Purpose::Query => "RETRIEVAL_QUERY",
            },
            "outputDimensionality": self.dimensions,
        })
    }
}

/// The name becomes a part of an address.
fn is_segment(name: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    !name.is_empty() && name.bytes().all(allowed)
}

impl Embedder for Gemini {
    fn id(&self) -> &str {
        &self.id
    }

    fn dimensions(&self) -> usize {
        self.dimensions
    }

    fn embed(&self, texts: &[&str], purpose: Purpose) -> Result<Vec<Vec<f32>>, EmbedError> {
        batched(texts, BATCH, |texts| {
            let request = |text: &&str| self.request(text, purpose);
            let body = json!({"requests": texts.iter().map(request).collect::<Vec<_>>()});
            let batch: Batch = self.remote.ask(&body, purpose)?;
            let vectors = batch.embeddings.into_iter().map(|e| e.values).collect();
            self.remote.unit(vectors, texts.len(), self.dimensions)
        })
    }

    fn batch(&self) -> usize {
        BATCH
    }
}
