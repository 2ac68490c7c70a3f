//! The local sentence encoder: all-MiniLM-L6-v2 as a forward pass of our own.
//!
//! Owns reading the model's two files, the pass over them and what the encoder
//! can say about a text being foreign to it. It never fetches a file, starts a
//! thread or keeps a vector. Invariant: a text's vector depends on the text
//! and the files alone, to the bit, whatever else is in its batch.

mod encoder;
mod error;
mod model;
mod pointwise;
mod product;
mod weights;
mod words;

pub use encoder::{DIMENSIONS, Encoder, MAX_TOKENS, MODEL_FILE, TOKENIZER_FILE};
pub use error::EncoderError;
