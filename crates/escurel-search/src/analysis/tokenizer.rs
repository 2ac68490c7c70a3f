//! The analysis as tantivy sees it.

use tantivy::tokenizer::{Token as TantivyToken, TokenStream, Tokenizer};

use super::{Tokens, analyze};

/// The name under which every text field finds its tokenizer.
pub(crate) const TOKENIZER: &str = "folding";

#[derive(Clone, Default)]
pub(crate) struct FoldingTokenizer {
    tokens: Tokens,
    token: TantivyToken,
}

pub(crate) struct FoldingStream<'a> {
    tokens: &'a Tokens,
    token: &'a mut TantivyToken,
    next: usize,
}

impl Tokenizer for FoldingTokenizer {
    type TokenStream<'a> = FoldingStream<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> FoldingStream<'a> {
        analyze(text, &mut self.tokens);
        self.token.reset();
        FoldingStream {
            tokens: &self.tokens,
            token: &mut self.token,
            next: 0,
        }
    }
}

impl TokenStream for FoldingStream<'_> {
    fn advance(&mut self) -> bool {
        let Some((token, text)) = self.tokens.get(self.next) else {
            return false;
        };
        self.next += 1;
        self.token.text.clear();
        self.token.text.push_str(text);
        self.token.offset_from = token.start as usize;
        self.token.offset_to = token.end as usize;
        self.token.position = token.position as usize;
        true
    }

    fn token(&self) -> &TantivyToken {
        self.token
    }

    fn token_mut(&mut self) -> &mut TantivyToken {
        self.token
    }
}
