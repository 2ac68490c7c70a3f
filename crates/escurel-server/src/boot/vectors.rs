//! What finds pages by meaning under these settings.

use std::path::Path;
use std::sync::Arc;

use escurel_core::{Code, Refusal, Vectors};
use escurel_fetch::{MINILM, State};
use escurel_search::{
    Embedder, EmbeddingGemma, Gemini, Local, OpenAi, RemoteSettings, SettingsError,
};

use crate::config::{Config, Provider, Secret};
use crate::model;

/// # Errors
/// Settings that cannot work. What may work later is a lane that says why it is off.
pub fn vectors(config: &Config) -> Result<Vectors, Refusal> {
    match config.embedding_provider {
        Provider::None => Ok(Vectors::Off("embedding_provider is none".to_owned())),
        Provider::Local => local(config),
        Provider::OpenAi => by(OpenAi::new(&remote(config))),
        Provider::Gemini => by(Gemini::new(&remote(config))),
        Provider::EmbeddingGemma => by(EmbeddingGemma::new(&remote(config))),
    }
}

fn remote(config: &Config) -> RemoteSettings {
    let key = config.embedding_api_key.as_ref().map(Secret::reveal);
    RemoteSettings {
        url: config.embedding_url.clone(),
        model: config.embedding_model.clone(),
        dimensions: config.embedding_dimensions,
        api_key: key.map(str::to_owned),
        ..RemoteSettings::default()
    }
}

fn by<E: Embedder>(embedder: Result<E, SettingsError>) -> Result<Vectors, Refusal> {
    match embedder {
        Ok(embedder) => Ok(Vectors::By(Arc::new(embedder))),
        Err(error) => {
            // It begins with the field's name.
            let refusal = Refusal::new(Code::SettingInvalid, error.to_string());
            Err(refusal.at(error.field))
        }
    }
}

/// A folder that somebody named must have the model; ours may still lack it.
fn local(config: &Config) -> Result<Vectors, Refusal> {
    let dir = model::folder(config);
    let named = config.embedding_model_dir.is_some();
    if !named && !MINILM.is_in(&dir) {
        let why = format!("{} is not there yet: run `escurel model pull`", MINILM.name);
        return Ok(Vectors::Off(why));
    }
    match Local::open(&dir) {
        Ok(local) => {
            std::thread::spawn(move || inspect(&dir));
            Ok(Vectors::By(Arc::new(local)))
        }
        Err(error) if named => Err(invalid("embedding_model_dir", &format!("{error}."))),
        Err(error) => Ok(Vectors::Off(format!("{error}: run `escurel model pull`"))),
    }
}

/// Flipped bits make vectors that look like any others. Reading every byte takes
/// longer than a start may.
fn inspect(dir: &Path) {
    if let Ok(State::Different(file)) = MINILM.inspect(dir) {
        tracing::warn!(
            file = %file.display(),
            "this is not the file of {}: another model, or damaged, and then `escurel model pull` mends it",
            MINILM.name
        );
    }
}

fn invalid(setting: &str, why: &str) -> Refusal {
    Refusal::new(Code::SettingInvalid, format!("{setting}: {why}")).at(setting)
}
