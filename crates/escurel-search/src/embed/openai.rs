//! Servers that speak OpenAI's protocol: OpenAI, Ollama, vLLM, LM Studio.

use serde::Deserialize;
use serde_json::json;

use super::remote::{Auth, Remote, RemoteSettings, SettingsError, batched};
use super::{EmbedError, Embedder, Purpose};

const DEFAULT_URL: &str = "https://api.openai.com/v1";
const DEFAULT_MODEL: &str = "text-embedding-3-small";
/// Texts of one request.
const BATCH: usize = 64;

/// A model whose vectors are known without asking.
struct Known {
    name: &'static str,
    dimensions: usize,
    /// The server makes shorter vectors when it is asked to.
    shortens: bool,
}

const KNOWN: &[Known] = &[
    Known {
        name: "text-embedding-3-small",
        dimensions: 1536,
        shortens: true,
    },
    Known {
        name: "text-embedding-3-large",
        dimensions: 3072,
        shortens: true,
    },
    Known {
        name: "text-embedding-ada-002",
        dimensions: 1536,
        shortens: false,
    },
];

pub struct OpenAi {
    wire: Wire,
    id: String,
    dimensions: usize,
    /// Asked for, where the model has others by itself.
    shortened: Option<usize>,
}

impl OpenAi {
    /// # Errors
    /// [`SettingsError`]. Whether the server answers shows later.
    pub fn new(settings: &RemoteSettings) -> Result<OpenAi, SettingsError> {
        if settings.url.is_none() && settings.api_key.is_none() {
            let told = "is needed by the provider openai; set ESCUREL_EMBEDDING_API_KEY, or embedding_url for a server of \
                        your own.";
            return Err(SettingsError::new("embedding_api_key", told));
        }
        let wire = Wire::new("openai", settings, DEFAULT_URL, DEFAULT_MODEL)?;
        let (dimensions, shortened) = dimensions(&wire.model, settings.dimensions)?;
        Ok(OpenAi {
            id: format!("openai:{}@{dimensions}", wire.model),
            wire,
            dimensions,
            shortened,
        })
    }
}

/// Dimensions of the vectors, and those to ask for.
fn dimensions(model: &str, set: Option<usize>) -> Result<(usize, Option<usize>), SettingsError> {
    let refused = |told: String| SettingsError::new("embedding_dimensions", told);
    let known = KNOWN.iter().find(|known| known.name == model);
    match (known, set) {
        (None, Some(set)) => Ok((set, None)),
        (None, None) => Err(refused(format!(
            "is needed for the model {model}: set how many dimensions its vectors have."
        ))),
        (Some(known), None) => Ok((known.dimensions, None)),
        (Some(known), Some(set)) if set == known.dimensions => Ok((set, None)),
        (Some(known), Some(set)) if known.shortens && set < known.dimensions => {
            Ok((set, Some(set)))
        }
        (Some(known), Some(_)) if known.shortens => Err(refused(format!(
            "is more than the {} of {model}.",
            known.dimensions
        ))),
        (Some(known), Some(_)) => Err(refused(format!(
            "is not the {} of {model}, which has no others.",
            known.dimensions
        ))),
    }
}

impl Embedder for OpenAi {
    fn id(&self) -> &str {
        &self.id
    }

    fn dimensions(&self) -> usize {
        self.dimensions
    }

    fn embed(&self, texts: &[&str], purpose: Purpose) -> Result<Vec<Vec<f32>>, EmbedError> {
        batched(texts, BATCH, |texts| {
            let vectors = self.wire.embed(texts, self.shortened, purpose)?;
            self.wire.remote.unit(vectors, texts.len(), self.dimensions)
        })
    }

    fn batch(&self) -> usize {
        BATCH
    }
}

/// The protocol, for every model that is served over it.
pub(super) struct Wire {
    pub remote: Remote,
    pub model: String,
}

#[derive(Deserialize)]
struct Embeddings {
    data: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    /// Which text it is of. Some servers leave it out, and answer in order.
    index: Option<usize>,
    embedding: Vec<f32>,
}

impl Wire {
    pub fn new(
        provider: &'static str,
        settings: &RemoteSettings,
        url: &str,
        model: &str,
    ) -> Result<Wire, SettingsError> {
        let auth = Auth {
            header: "authorization",
            scheme: "Bearer ",
        };
        Ok(Wire {
            remote: Remote::new(provider, settings, url, "embeddings", auth)?,
            model: settings.model.clone().unwrap_or_else(|| model.to_owned()),
        })
    }

    /// One request; the vectors as they come, in the order of the texts.
    pub fn embed(
        &self,
        texts: &[&str],
        dimensions: Option<usize>,
        purpose: Purpose,
    ) -> Result<Vec<Vec<f32>>, EmbedError> {
        let mut body = json!({"model": self.model, "input": texts});
        if let Some(dimensions) = dimensions {
            body["dimensions"] = json!(dimensions);
        }
        let mut rows = self.remote.ask::<Embeddings>(&body, purpose)?.data;
        if rows.iter().all(|row| row.index.is_some()) {
            rows.sort_by_key(|row| row.index);
            if rows
                .iter()
                .enumerate()
                .any(|(at, row)| row.index != Some(at))
            {
                return Err(self.remote.shape("its vectors are numbered wrongly"));
            }
        }
        Ok(rows.into_iter().map(|row| row.embedding).collect())
    }
}
