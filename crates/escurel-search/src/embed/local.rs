//! The sentence encoder on this machine.

use std::path::Path;

use escurel_encoder::{Encoder, EncoderError};
use whatlang::Lang;

use super::{EmbedError, Embedder, Purpose};

/// Of a query's words, so many unknown ones leave nothing to trust.
const FOREIGN: f32 = 0.3;
/// What is left for a query that surely is in a language of known letters that is not English.
const ANOTHER_LANGUAGE: f32 = 0.5;

/// all-MiniLM-L6-v2: English sentences, 384 dimensions.
pub struct Local {
    encoder: Encoder,
}

impl Local {
    /// `dir` holds `model.safetensors` and `tokenizer.json`.
    ///
    /// # Errors
    /// [`EncoderError`] names the file that is missing or damaged.
    pub fn open(dir: &Path) -> Result<Local, EncoderError> {
        Ok(Local {
            encoder: Encoder::open(dir)?,
        })
    }
}

impl Embedder for Local {
    fn id(&self) -> &str {
        self.encoder.id()
    }

    fn dimensions(&self) -> usize {
        self.encoder.dimensions()
    }

    fn embed(&self, texts: &[&str], _: Purpose) -> Result<Vec<Vec<f32>>, EmbedError> {
        Ok(self.encoder.encode(texts))
    }

    fn trust(&self, query: &str) -> f32 {
        let known = (1.0 - self.encoder.unknown_share(query) / FOREIGN).max(0.0);
        if is_surely_not_english(query) {
            return known * ANOTHER_LANGUAGE;
        }
        known
    }
}

/// Of a few words nobody can tell, and then it is `false`.
fn is_surely_not_english(query: &str) -> bool {
    whatlang::detect(query).is_some_and(|found| found.is_reliable() && found.lang() != Lang::Eng)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_sentences_tell_their_language_and_short_queries_do_not() {
        for query in [
            "mettre de côté mes modifications git sans faire de commit",
            "Wie wandle ich ein PDF in reinen Text um?",
        ] {
            assert!(is_surely_not_english(query), "{query}");
        }
        for query in [
            "how do I rotate the api keys",
            "Kubernetes deployment rollback",
            "de facto standard",
            "git commit",
            "",
            "0-dimensional biomaterials show inductive properties.",
        ] {
            assert!(!is_surely_not_english(query), "{query}");
        }
    }
}
