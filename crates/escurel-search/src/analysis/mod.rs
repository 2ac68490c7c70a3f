//! Text analysis: from any script to the terms that are indexed and asked for.
//!
//! One chain serves indexing, queries and highlighting, so that what one of
//! them sees the others see too. It never loses a byte range: every token knows
//! where it stands in the text it came from. Invariant: positions never
//! decrease, and a whole identifier shares the position of its first part.

mod class;
mod fold;
mod scan;
mod stop;
mod tokenizer;

pub(crate) use fold::fold;
pub(crate) use scan::analyze;
pub(crate) use stop::is_stop_word;
pub(crate) use tokenizer::{FoldingTokenizer, TOKENIZER};

/// What a token is made of; queries treat the kinds differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A word that stands alone.
    Word,
    /// One part of an identifier such as `foo_bar`.
    Part,
    /// An identifier of several parts, at the position of the first.
    Whole,
    /// One part with its symbol, such as `c++`.
    Symbol,
    /// Two neighbouring characters of a script written without spaces.
    Gram,
    /// One character inside a longer run of such a script.
    Single,
}

/// A token's place in its text and in the arena of [`Tokens`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Token {
    /// Byte range in the analysed text.
    pub start: u32,
    pub end: u32,
    pub position: u32,
    pub kind: Kind,
    text: (u32, u32),
}

/// Analysed text. Reused between calls, so that indexing does not allocate per
/// token.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tokens {
    arena: String,
    list: Vec<Token>,
}

impl Tokens {
    pub fn clear(&mut self) {
        self.arena.clear();
        self.list.clear();
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.list.len()
    }

    pub fn get(&self, index: usize) -> Option<(&Token, &str)> {
        self.list
            .get(index)
            .map(|token| (token, self.text_of(token)))
    }

    pub fn iter(&self) -> impl Iterator<Item = (&Token, &str)> {
        self.list.iter().map(|token| (token, self.text_of(token)))
    }

    fn text_of(&self, token: &Token) -> &str {
        self.arena
            .get(token.text.0 as usize..token.text.1 as usize)
            .unwrap_or("")
    }

    /// Adds a token whose text `write` appends; an empty text adds nothing.
    fn push(
        &mut self,
        range: (usize, usize),
        position: u32,
        kind: Kind,
        write: impl FnOnce(&mut String),
    ) -> bool {
        let from = self.arena.len();
        write(&mut self.arena);
        shorten(&mut self.arena, from);
        if self.arena.len() == from {
            return false;
        }
        self.list.push(Token {
            start: range.0 as u32,
            end: range.1 as u32,
            position,
            kind,
            text: (from as u32, self.arena.len() as u32),
        });
        true
    }
}

/// Longest term in bytes; the rest of a longer word is not told apart.
const MAX_TERM: usize = 64;

fn shorten(arena: &mut String, from: usize) {
    if arena.len() - from <= MAX_TERM {
        return;
    }
    let mut end = from + MAX_TERM;
    while !arena.is_char_boundary(end) {
        end -= 1;
    }
    arena.truncate(end);
}

/// The analysis of one text, for callers that do not keep a buffer.
pub(crate) fn tokens_of(text: &str) -> Tokens {
    let mut tokens = Tokens::default();
    analyze(text, &mut tokens);
    tokens
}

#[cfg(test)]
mod tests;
