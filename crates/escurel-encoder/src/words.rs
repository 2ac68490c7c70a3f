//! The tokenizer, and how much of a text is foreign to it.

use std::path::Path;

use tokenizers::{Encoding, Tokenizer, TruncationParams};

use crate::error::EncoderError;

const UNKNOWN: &str = "[UNK]";

pub(crate) struct Words {
    tokenizer: Tokenizer,
    /// The tokens of an empty text.
    empty: Vec<u32>,
}

impl Words {
    /// `bytes` are those of `file`. Its own settings for padding and truncation are not used.
    pub(crate) fn read(
        file: &Path,
        bytes: &[u8],
        max_tokens: usize,
        vocabulary: usize,
    ) -> Result<Self, EncoderError> {
        let damaged = |error: tokenizers::Error| EncoderError::Damaged {
            file: file.to_path_buf(),
            reason: error.to_string(),
        };
        let unsuitable = |reason: String| EncoderError::Unsuitable {
            file: file.to_path_buf(),
            reason,
        };
        let mut tokenizer = Tokenizer::from_bytes(bytes).map_err(damaged)?;
        let truncation = TruncationParams {
            max_length: max_tokens,
            ..TruncationParams::default()
        };
        tokenizer.with_padding(None);
        tokenizer
            .with_truncation(Some(truncation))
            .map_err(damaged)?;
        if tokenizer.token_to_id(UNKNOWN).is_none() {
            return Err(unsuitable(format!("it has no {UNKNOWN} token")));
        }
        let most = tokenizer.get_vocab(true).into_values().max().unwrap_or(0) as usize;
        if most >= vocabulary {
            return Err(unsuitable(format!(
                "it has token {most}, the weights have {vocabulary} tokens"
            )));
        }
        let empty = tokenizer.encode_fast("", true).map_err(damaged)?;
        if empty.is_empty() {
            return Err(unsuitable("it puts no special tokens around a text".into()));
        }
        Ok(Self {
            empty: empty.get_ids().to_vec(),
            tokenizer,
        })
    }

    pub(crate) fn tokens(&self, text: &str) -> Vec<u32> {
        // It fails only for a word that is not in a vocabulary without [UNK], which `read` refuses.
        match self.tokenizer.encode_fast(text, true) {
            Ok(encoding) => encoding.get_ids().to_vec(),
            Err(_) => self.empty.clone(),
        }
    }

    pub(crate) fn unknown_share(&self, text: &str) -> f32 {
        match self.tokenizer.encode(text, false) {
            Ok(encoding) => unknown_share(&pieces(&encoding)),
            Err(_) => 1.0,
        }
    }
}

fn pieces(encoding: &Encoding) -> Vec<Vec<&str>> {
    let mut words: Vec<Vec<&str>> = Vec::new();
    let mut last = None;
    for (token, word) in encoding.get_tokens().iter().zip(encoding.get_word_ids()) {
        if *word != last || words.is_empty() {
            words.push(Vec::new());
        }
        last = *word;
        if let Some(word) = words.last_mut() {
            word.push(token.strip_prefix("##").unwrap_or(token));
        }
    }
    words
}

/// The share of unknown words among those that say something about the language: words
/// with a letter, and words that became `[UNK]`. Without any it is 0.
fn unknown_share(words: &[Vec<&str>]) -> f32 {
    let (mut unknown, mut all) = (0u32, 0u32);
    for word in words {
        match kind(word) {
            Kind::Silent => {}
            Kind::Known => all += 1,
            Kind::Unknown => {
                all += 1;
                unknown += 1;
            }
        }
    }
    if all == 0 {
        return 0.0;
    }
    unknown as f32 / all as f32
}

enum Kind {
    /// Digits and punctuation.
    Silent,
    Known,
    Unknown,
}

/// A word is unknown if it became `[UNK]` or if it is written in other than Latin letters and
/// no piece of it has three of them: of other scripts the vocabulary has the characters and
/// some endings, hardly any words. Latin words are known even in single characters, because
/// those are typos and identifiers. So is a lone letter (`λ calculus`), unless it writes a word.
fn kind(pieces: &[&str]) -> Kind {
    if pieces.contains(&UNKNOWN) {
        return Kind::Unknown;
    }
    let letters = || pieces.iter().flat_map(|piece| piece.chars());
    if letters().any(is_word_letter) {
        return Kind::Unknown;
    }
    if !letters().any(char::is_alphabetic) {
        return Kind::Silent;
    }
    let foreign = letters().any(|letter| letter.is_alphabetic() && !is_latin(letter));
    let longest = pieces.iter().map(|piece| piece.chars().count()).max();
    if foreign && letters().count() > 1 && longest < Some(3) {
        return Kind::Unknown;
    }
    Kind::Known
}

/// Latin with its extensions and phonetic letters.
fn is_latin(letter: char) -> bool {
    matches!(letter, '\0'..='\u{2ff}' | '\u{1d00}'..='\u{1dbf}' | '\u{1e00}'..='\u{1eff}' | '\u{ff21}'..='\u{ff5a}')
}

/// Kana and ideographs, which the tokenizer takes apart before it looks for words.
fn is_word_letter(letter: char) -> bool {
    matches!(letter, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

#[cfg(test)]
mod tests;
