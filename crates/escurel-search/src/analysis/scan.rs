//! The scanner: walks a text once and emits its tokens.

use std::cell::RefCell;

use frostem::{Algorithm, Stemmer};
use unicode_segmentation::UnicodeSegmentation;

use super::class::{Class, class, is_join};
use super::{Kind, Tokens, fold};

/// Identifiers with more parts, or longer, are only indexed by their parts.
const MAX_PARTS: usize = 12;
const MAX_WHOLE: usize = 64;

/// Analyses `text` into `out`, which is cleared first.
pub(crate) fn analyze(text: &str, out: &mut Tokens) {
    out.clear();
    let mut scan = Scan {
        text,
        at: 0,
        position: 0,
        out,
    };
    while let Some(c) = scan.peek() {
        match class(c) {
            Class::Word => scan.chunk(),
            Class::Gram => scan.run(),
            Class::Emoji => scan.emoji(),
            Class::Mark | Class::Join | Class::Separator => scan.at += c.len_utf8(),
        }
    }
}

struct Scan<'a> {
    text: &'a str,
    at: usize,
    position: u32,
    out: &'a mut Tokens,
}

/// A piece of the text, in bytes.
type Range = (usize, usize);

impl Scan<'_> {
    fn peek(&self) -> Option<char> {
        char_at(self.text, self.at)
    }

    /// An identifier or a plain word: parts joined by single connectors.
    fn chunk(&mut self) {
        let start = self.at;
        let mut parts: [Range; MAX_PARTS] = [(0, 0); MAX_PARTS];
        let mut count = 0;
        let mut telling = false;
        loop {
            let part = (self.at, word_end(self.text, self.at));
            self.at = part.1;
            parts[count] = part;
            count += 1;
            telling |= self.has_digit(part);
            match connector(self.text, self.at) {
                Some((next, tells)) if count < MAX_PARTS => {
                    telling |= tells;
                    self.at = next;
                }
                _ => break,
            }
        }
        let symbol = symbol_end(self.text, self.at);
        self.emit_chunk(start, &parts[..count], telling, symbol);
        if let Some(end) = symbol {
            self.at = end;
        }
        self.skip_clitic();
    }

    fn emit_chunk(&mut self, start: usize, parts: &[Range], telling: bool, symbol: Option<usize>) {
        let whole_end = symbol.unwrap_or(self.at);
        let several = parts.len() > 1;
        let whole = (symbol.is_some() || (several && telling)) && whole_end - start <= MAX_WHOLE;
        let kind = if several || symbol.is_some() {
            Kind::Part
        } else {
            Kind::Word
        };
        let first_position = self.position;
        for (index, part) in parts.iter().enumerate() {
            self.emit_word(*part, kind);
            if index == 0 && whole {
                let kind = if several { Kind::Whole } else { Kind::Symbol };
                let text = &self.text[start..whole_end];
                self.out
                    .push((start, whole_end), first_position, kind, |arena| {
                        fold(text, arena)
                    });
            }
        }
    }

    fn emit_word(&mut self, range: Range, kind: Kind) {
        let text = &self.text[range.0..range.1];
        if self.out.push(range, self.position, kind, |arena| {
            fold_and_stem(text, arena)
        }) {
            self.position += 1;
        }
    }

    fn has_digit(&self, part: Range) -> bool {
        self.text.as_bytes()[part.0..part.1]
            .iter()
            .any(u8::is_ascii_digit)
    }

    /// Passes over `'s`, `'t`, `'ll` and the like, which are no words.
    fn skip_clitic(&mut self) {
        let rest = &self.text[self.at..];
        let Some(after) = rest.strip_prefix('\'').or_else(|| rest.strip_prefix('’')) else {
            return;
        };
        let from = self.text.len() - after.len();
        let end = word_end(self.text, from);
        let tail = &self.text[from..end];
        if ["s", "t", "d", "m", "ll", "re", "ve"]
            .iter()
            .any(|c| tail.eq_ignore_ascii_case(c))
        {
            self.at = end;
        }
    }

    /// A run of a script without spaces: every character and every pair.
    fn run(&mut self) {
        let mut clusters: Vec<Range> = Vec::new();
        while let Some(c) = self.peek() {
            match class(c) {
                Class::Gram => clusters.push((self.at, self.at + c.len_utf8())),
                Class::Mark => {
                    if let Some(last) = clusters.last_mut() {
                        last.1 = self.at + c.len_utf8();
                    }
                }
                Class::Join => {}
                // Marks word ends where writers put them, which is not everywhere.
                _ if c == '\u{200B}' => {}
                _ => break,
            }
            self.at += c.len_utf8();
        }
        let single = if clusters.len() > 1 {
            Kind::Single
        } else {
            Kind::Word
        };
        for (index, cluster) in clusters.iter().enumerate() {
            self.emit_gram(*cluster, single);
            if let Some(next) = clusters.get(index + 1) {
                self.emit_gram((cluster.0, next.1), Kind::Gram);
            }
            self.position += 1;
        }
    }

    fn emit_gram(&mut self, range: Range, kind: Kind) {
        let text = &self.text[range.0..range.1];
        self.out
            .push(range, self.position, kind, |arena| fold(text, arena));
    }

    /// One emoji with its joiners, so that a person at work is one sign.
    fn emoji(&mut self) {
        let len = self.text[self.at..]
            .graphemes(true)
            .next()
            .map_or(1, str::len);
        let range = (self.at, self.at + len);
        let text = &self.text[range.0..range.1];
        let pushed = self.out.push(range, self.position, Kind::Word, |arena| {
            arena.extend(
                text.chars()
                    .filter(|c| !matches!(c, '\u{FE00}'..='\u{FE0F}')),
            );
        });
        self.position += u32::from(pushed);
        self.at = range.1;
    }
}

fn char_at(text: &str, at: usize) -> Option<char> {
    let byte = *text.as_bytes().get(at)?;
    if byte < 0x80 {
        Some(byte as char)
    } else {
        text[at..].chars().next()
    }
}

/// The end of the word that starts at `from`.
fn word_end(text: &str, from: usize) -> usize {
    let mut at = from;
    while let Some(c) = char_at(text, at) {
        if !matches!(class(c), Class::Word | Class::Mark) && !is_join(c) {
            break;
        }
        at += c.len_utf8();
    }
    at
}

/// A connector at `at` that is followed by a word: where that word starts, and
/// whether the connector marks an identifier (a hyphen alone does not).
fn connector(text: &str, at: usize) -> Option<(usize, bool)> {
    let bytes = text.as_bytes();
    let byte = *bytes.get(at)?;
    if !matches!(
        byte,
        b'.' | b'_' | b'/' | b':' | b'@' | b'#' | b'+' | b'&' | b'-'
    ) {
        return None;
    }
    let twice = matches!(byte, b':' | b'_') && bytes.get(at + 1) == Some(&byte);
    let next = if twice { at + 2 } else { at + 1 };
    let follows = char_at(text, next).is_some_and(|c| class(c) == Class::Word);
    follows.then_some((next, byte != b'-'))
}

/// The end of a symbol that belongs to a name: `C++`, `C#`.
fn symbol_end(text: &str, at: usize) -> Option<usize> {
    let rest = text.get(at..)?;
    let len = if rest.starts_with("++") {
        2
    } else {
        usize::from(rest.starts_with('#'))
    };
    let ends = char_at(text, at + len)
        .is_none_or(|c| class(c) == Class::Separator && c != '+' && c != '#');
    (len > 0 && ends).then_some(at + len)
}

fn fold_and_stem(text: &str, arena: &mut String) {
    let from = arena.len();
    fold(text, arena);
    let word = &arena[from..];
    // English endings only: other scripts and identifiers stay as they are.
    if word.len() < 3 || word.len() > 32 || !word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return;
    }
    STEMS.with_borrow_mut(|stems| {
        if let Some(stem) = stems.get(&arena[from..]) {
            arena.truncate(from);
            arena.push_str(stem);
            return;
        }
        if stems.len() >= KEPT_STEMS {
            stems.clear();
        }
        let word = arena[from..].to_string();
        let stem = Stemmer::new(Algorithm::English).stem(&word).into_owned();
        arena.truncate(from);
        arena.push_str(&stem);
        stems.insert(word, stem);
    });
}

/// Stems are remembered per thread: texts repeat their words.
const KEPT_STEMS: usize = 20_000;

thread_local! {
    static STEMS: RefCell<hashbrown::HashMap<String, String>> = RefCell::default();
}
