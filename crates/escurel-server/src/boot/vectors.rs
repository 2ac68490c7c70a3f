//! What finds pages by meaning under these settings.

use std::sync::Arc;

use escurel_core::{Code, Refusal, Vectors};
use escurel_fetch::MINILM;
use escurel_search::Local;

use crate::config::{Config, Provider};
use crate::model;

/// # Errors
/// Settings that cannot work. What may work later is a lane that says why it is off.
pub fn vectors(config: &Config) -> Result<Vectors, Refusal> {
    match config.embedding_provider {
        Provider::None => Ok(Vectors::Off("embedding_provider is none".to_owned())),
        Provider::Local => local(config),
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
        Ok(local) => Ok(Vectors::By(Arc::new(local))),
        Err(error) if named => {
            let refusal = Refusal::new(Code::InvalidArgument, format!("{error}."));
            Err(refusal.at("embedding_model_dir"))
        }
        Err(error) => Ok(Vectors::Off(format!("{error}: run `escurel model pull`"))),
    }
}
