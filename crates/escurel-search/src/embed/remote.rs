//! What providers over HTTP share: their settings, one request, what its answer
//! means.
//!
//! Invariant: what an error says holds no key, and nothing of a text.

use std::time::Duration;

use escurel_fetch::{Answer, Client};
use serde::de::DeserializeOwned;
use serde_json::Value;
use url::Url;

use super::{EmbedError, Purpose};

/// How a provider is asked; what is absent is the provider's default.
#[derive(Clone, Default)]
pub struct RemoteSettings {
    pub url: Option<String>,
    pub model: Option<String>,
    pub dimensions: Option<usize>,
    pub api_key: Option<String>,
    pub patience: Patience,
}

/// How long an answer may take.
#[derive(Clone, Copy)]
pub struct Patience {
    /// Somebody waits for what is found.
    pub query: Duration,
    /// Nobody waits, and a small machine takes its time for a batch.
    pub document: Duration,
}

impl Default for Patience {
    fn default() -> Patience {
        Patience {
            query: Duration::from_secs(5),
            document: Duration::from_secs(120),
        }
    }
}

/// A setting that cannot work.
#[derive(Debug, thiserror::Error)]
#[error("{field} {told}")]
pub struct SettingsError {
    pub field: &'static str,
    pub told: String,
}

impl SettingsError {
    pub(super) fn new(field: &'static str, told: impl Into<String>) -> SettingsError {
        let told = told.into();
        SettingsError { field, told }
    }
}

/// The header that says who asks.
pub(super) struct Auth {
    pub header: &'static str,
    /// What stands before the key.
    pub scheme: &'static str,
}

/// One provider's end of the line.
pub(super) struct Remote {
    client: Client,
    /// For messages.
    provider: &'static str,
    url: Url,
    auth: Auth,
    key: Option<String>,
    patience: Patience,
}

impl Remote {
    /// `path` goes behind the address that is set, or behind `default`.
    pub fn new(
        provider: &'static str,
        settings: &RemoteSettings,
        default: &str,
        path: &str,
        auth: Auth,
    ) -> Result<Remote, SettingsError> {
        let base = settings.url.as_deref().unwrap_or(default);
        let bad = || {
            let told = "is not an address such as http://127.0.0.1:11434/v1.";
            SettingsError::new("embedding_url", told)
        };
        let base = base.trim_end_matches('/');
        let url = Url::parse(&format!("{base}/{path}")).map_err(|_| bad())?;
        if !matches!(url.scheme(), "http" | "https") || url.query().is_some() {
            return Err(bad());
        }
        let key = settings.api_key.clone();
        if key.as_ref().is_some_and(|key| !is_key(key)) {
            let told = "holds characters that no key has.";
            return Err(SettingsError::new("embedding_api_key", told));
        }
        Ok(Remote {
            client: Client::default(),
            provider,
            url,
            auth,
            key,
            patience: settings.patience,
        })
    }

    /// # Errors
    /// [`EmbedError::Retry`]: nobody there, too busy, broken over there.
    /// [`EmbedError::Refused`]: the request itself is at fault, or the answer is not `T`.
    pub fn ask<T: DeserializeOwned>(
        &self,
        body: &Value,
        purpose: Purpose,
    ) -> Result<T, EmbedError> {
        let within = match purpose {
            Purpose::Query => self.patience.query,
            Purpose::Document => self.patience.document,
        };
        let value = self
            .key
            .as_ref()
            .map(|key| format!("{}{key}", self.auth.scheme));
        let secret = value.as_deref().map(|value| (self.auth.header, value));
        let asked = self.client.post(&self.url, secret, body, within);
        let answer = asked.map_err(|unanswered| {
            EmbedError::retry(format!("{} cannot be reached: {unanswered}", self.provider))
        })?;
        if !(200..300).contains(&answer.status) {
            return Err(self.failure(&answer));
        }
        serde_json::from_slice(&answer.body)
            .map_err(|_| self.shape("its answer is not one of embeddings"))
    }

    /// An answer that is not what was asked for.
    pub fn shape(&self, told: &str) -> EmbedError {
        EmbedError::Refused(format!("{}: {told}", self.provider))
    }

    fn failure(&self, answer: &Answer) -> EmbedError {
        let status = answer.status;
        let said = self.said(answer).unwrap_or_default();
        let why = match status {
            // These are about the caller, not about texts, so everybody may read them.
            401 | 403 | 404 | 429 => {
                format!("{} answered with status {status}{said}", self.provider)
            }
            _ => {
                tracing::warn!(
                    provider = self.provider,
                    status,
                    said,
                    "texts got no vectors"
                );
                format!("{} answered with status {status}", self.provider)
            }
        };
        match status {
            408 | 425 | 429 | 500.. => EmbedError::Retry {
                why,
                after: answer.retry_after,
            },
            _ => EmbedError::Refused(why),
        }
    }

    /// `: message` of an error in one of the usual forms. Servers quote keys.
    fn said(&self, answer: &Answer) -> Option<String> {
        const MOST: usize = 200;
        let body: Value = serde_json::from_slice(&answer.body).ok()?;
        let error = &body["error"];
        let text = [&error["message"], error, &body["message"], &body["detail"]]
            .into_iter()
            .find_map(Value::as_str)?;
        let text = match &self.key {
            Some(key) => text.replace(key.as_str(), "…"),
            None => text.to_owned(),
        };
        let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
        Some(format!(": {}", line.chars().take(MOST).collect::<String>()))
    }

    /// The vectors at unit length, if they are what was asked for.
    pub fn unit(
        &self,
        vectors: Vec<Vec<f32>>,
        texts: usize,
        dimensions: usize,
    ) -> Result<Vec<Vec<f32>>, EmbedError> {
        if vectors.len() != texts {
            let told = format!("it answered {} vectors to {texts} texts", vectors.len());
            return Err(self.shape(&told));
        }
        let unit = |vector: Vec<f32>| {
            if vector.len() != dimensions {
                let told = format!(
                    "its vectors have {} dimensions, and embedding_dimensions is {dimensions}",
                    vector.len()
                );
                return Err(self.shape(&told));
            }
            normalised(vector).ok_or_else(|| self.shape("its vectors have no length"))
        };
        vectors.into_iter().map(unit).collect()
    }
}

/// One request for each `most` texts.
pub(super) fn batched(
    texts: &[&str],
    most: usize,
    one: impl Fn(&[&str]) -> Result<Vec<Vec<f32>>, EmbedError>,
) -> Result<Vec<Vec<f32>>, EmbedError> {
    let mut vectors = Vec::with_capacity(texts.len());
    for batch in texts.chunks(most) {
        vectors.extend(one(batch)?);
    }
    Ok(vectors)
}

/// Keys are visible ASCII without spaces.
fn is_key(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_graphic())
}

fn normalised(mut vector: Vec<f32>) -> Option<Vec<f32>> {
    let squares = vector.iter().map(|x| f64::from(*x).powi(2));
    let length = squares.sum::<f64>().sqrt();
    if !length.is_finite() || length < 1e-12 {
        return None;
    }
    for x in &mut vector {
        *x = (f64::from(*x) / length) as f32;
    }
    Some(vector)
}
