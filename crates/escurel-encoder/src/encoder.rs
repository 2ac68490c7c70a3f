use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::error::EncoderError;
use crate::model::Model;
use crate::weights::{self, Shape};
use crate::words::Words;

/// Components of a vector.
pub const DIMENSIONS: usize = 384;
/// Tokens of a text that are looked at, the two special ones included.
pub const MAX_TOKENS: usize = 256;
/// The weights, in a model's folder.
pub const MODEL_FILE: &str = "model.safetensors";
/// The tokenizer, in a model's folder.
pub const TOKENIZER_FILE: &str = "tokenizer.json";

/// Its end tells how weights are kept, which changes vectors.
const NAME: &str = "all-MiniLM-L6-v2-w16";
const SHAPE: Shape = Shape {
    hidden: DIMENSIONS,
    inner: 4 * DIMENSIONS,
    layers: 6,
    positions: MAX_TOKENS,
};

/// Tokens that pass through the layers together. More gain nothing and leave the caches.
const GROUP: usize = 512;

/// Turns texts into unit vectors. It starts no threads and may be shared by many.
pub struct Encoder {
    model: Model,
    words: Words,
    id: String,
}

impl Encoder {
    /// Reads [`MODEL_FILE`] and [`TOKENIZER_FILE`] of `dir`.
    pub fn open(dir: &Path) -> Result<Self, EncoderError> {
        let (file, bytes) = read(dir, MODEL_FILE)?;
        let (tokenizer_file, tokenizer) = read(dir, TOKENIZER_FILE)?;
        let model = weights::read(&file, &bytes, &SHAPE)?;
        let vocabulary = model.words.len() / DIMENSIONS;
        let words = Words::read(&tokenizer_file, &tokenizer, MAX_TOKENS, vocabulary)?;
        let encoder = Self {
            model,
            words,
            id: id(&bytes, &tokenizer),
        };
        encoder.probe(file)
    }

    /// What vectors of this encoder are kept under: vectors of equal ids may be compared.
    pub fn id(&self) -> &str {
        &self.id
    }

    pub fn dimensions(&self) -> usize {
        DIMENSIONS
    }

    /// One unit vector of [`DIMENSIONS`] a text, in their order. What is beyond
    /// [`MAX_TOKENS`] does not count.
    pub fn encode(&self, texts: &[&str]) -> Vec<Vec<f32>> {
        let mut vectors = Vec::with_capacity(texts.len());
        let mut group = Vec::new();
        let mut tokens = 0;
        for text in texts {
            let ids = self.words.tokens(text);
            tokens += ids.len();
            group.push(ids);
            if tokens >= GROUP {
                vectors.append(&mut self.model.encode(&group));
                group.clear();
                tokens = 0;
            }
        }
        vectors.append(&mut self.model.encode(&group));
        vectors
    }

    /// The share of the text's words that the tokenizer does not know, 0 to 1.
    pub fn unknown_share(&self, text: &str) -> f32 {
        self.words.unknown_share(text)
    }

    /// Finite weights may still overflow, which no check of shapes sees.
    fn probe(self, file: PathBuf) -> Result<Self, EncoderError> {
        let length: f32 = self.encode(&["probe"])[0].iter().map(|v| v * v).sum();
        if (length - 1.0).abs() < 1e-3 {
            return Ok(self);
        }
        Err(EncoderError::Damaged {
            file,
            reason: "its vectors have no length".into(),
        })
    }
}

fn read(dir: &Path, name: &str) -> Result<(PathBuf, Vec<u8>), EncoderError> {
    let file = dir.join(name);
    match std::fs::read(&file) {
        Ok(bytes) => Ok((file, bytes)),
        Err(source) => Err(EncoderError::Unreadable { file, source }),
    }
}

/// The tokenizer counts, because other tokens make other vectors.
fn id(weights: &[u8], tokenizer: &[u8]) -> String {
    let mut hash = Sha256::new();
    hash.update(Sha256::digest(weights));
    hash.update(Sha256::digest(tokenizer));
    let hash = hash.finalize();
    let hex: String = hash[..16]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("{NAME}-{hex}")
}
