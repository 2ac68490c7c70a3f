//! The sentence encoder on this machine.

use std::path::Path;

use escurel_encoder::{Encoder, EncoderError};

use super::{EmbedError, Embedder, Purpose};

/// Of a query's words, so many unknown ones leave nothing to trust.
const FOREIGN: f32 = 0.3;

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
        (1.0 - self.encoder.unknown_share(query) / FOREIGN).max(0.0)
    }
}
