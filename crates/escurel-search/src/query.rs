//! Reading what somebody typed: words, `begin*`, `"phrases"`, `-exclusions`,
//! `skill:`, `tag:`, `after:` and `before:`. Nothing is an error; what cannot be
//! an operator is read as words and noted. Phrases and exclusions speak of units,
//! not of pages.

use hashbrown::HashSet;

use crate::analysis::{Kind, fold, is_stop_word, tokens_of};
use crate::api::MAX_QUERY_BYTES;
use crate::dates::{Span, start_of};

/// A query as the lanes understand it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Parsed {
    /// Distinct terms that rank, in order of first use.
    pub terms: Vec<Term>,
    /// Neighbours in the query, as indexes into `terms`.
    pub pairs: Vec<(usize, usize)>,
    pub required: Vec<Phrase>,
    pub excluded: Vec<Phrase>,
    /// Any of these skills, all of these tags.
    pub skills: Vec<String>,
    pub tags: Vec<String>,
    pub excluded_facets: Vec<(&'static str, String)>,
    /// When the page has to be from.
    pub dated: Span,
    pub notes: Vec<String>,
}

/// A term that ranks, and what may stand for it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Term {
    /// As it is indexed.
    pub text: String,
    /// How often the query has it.
    pub count: u32,
    /// Folded, not stemmed.
    pub typed: String,
    /// Words that differ in so many letters are like it.
    pub edits: u8,
    pub end: End,
}

/// Whether a word may go on where it ends.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) enum End {
    #[default]
    Closed,
    /// It may not be typed to its end.
    Open,
    /// Written as `begin*`.
    Asked,
}

/// Terms at offsets from the first.
pub(crate) type Phrase = Vec<(u32, String)>;

/// The words beyond which a query is cut; long texts say nothing more.
const MAX_WORDS: usize = 256;
/// The letters that a beginning needs.
const MIN_BEGIN: usize = 2;
/// Letters from which a word may have one, and two, wrong ones.
const ONE_EDIT: usize = 4;
const TWO_EDITS: usize = 8;

impl Parsed {
    pub fn filters(&self) -> bool {
        !self.required.is_empty() || !self.skills.is_empty() || !self.tags.is_empty()
    }
}

pub(crate) fn parse(text: &str) -> Parsed {
    let mut reader = Reader::default();
    let text = cut(text, MAX_QUERY_BYTES);
    if text.1 {
        reader.note("the query is long; its beginning was used");
    }
    let mut rest = text.0.trim_start();
    while !rest.is_empty() {
        rest = reader.item(rest).trim_start();
    }
    reader.open_end = text.0.ends_with(|c: char| c.is_alphanumeric());
    reader.finish()
}

fn cut(text: &str, max: usize) -> (&str, bool) {
    if text.len() <= max {
        return (text, false);
    }
    let mut end = max;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    (&text[..end], true)
}

#[derive(Default)]
struct Reader {
    parsed: Parsed,
    words: Vec<Piece>,
    /// The last word may still be being typed.
    open_end: bool,
}

/// Words as typed.
struct Piece {
    text: String,
    /// Written as `begin*`.
    begins: bool,
    /// Inside quotation marks.
    quoted: bool,
}

impl Reader {
    fn note(&mut self, text: &str) {
        if !self.parsed.notes.iter().any(|note| note == text) {
            self.parsed.notes.push(text.to_string());
        }
    }

    /// Reads one item and returns what follows it.
    fn item<'a>(&mut self, text: &'a str) -> &'a str {
        let (negative, body) = match text.strip_prefix('-') {
            Some(body) if starts_operand(body) => (true, body),
            _ => (false, text),
        };
        if let Some(body) = body.strip_prefix(is_quote) {
            return match quoted(body) {
                Some((inside, rest)) => {
                    self.phrase(inside, negative);
                    rest
                }
                None => {
                    self.note("a quotation mark without its pair was read as a space");
                    body
                }
            };
        }
        if let Some((operator, value, rest)) = operation(body)
            && self.apply(operator, value, negative)
        {
            return rest;
        }
        let end = body
            .find(|c: char| c.is_whitespace() || is_quote(c))
            .unwrap_or(body.len());
        self.word(&body[..end], negative);
        &body[end..]
    }

    fn word(&mut self, word: &str, negative: bool) {
        let bare = OPERATORS.iter().any(|name| {
            word.strip_suffix(':')
                .is_some_and(|w| w.eq_ignore_ascii_case(name))
        });
        if bare {
            self.note("an operator without a value was read as a word");
        }
        if matches!(word, "AND" | "OR" | "NOT") {
            self.note("AND, OR and NOT are read as words; use \"…\" and -word");
        }
        if negative {
            return self.phrase(word, true);
        }
        let begin = word
            .strip_suffix('*')
            .filter(|begin| begin.ends_with(char::is_alphanumeric));
        self.words.push(Piece {
            text: begin.unwrap_or(word).to_string(),
            begins: begin.is_some(),
            quoted: false,
        });
    }

    /// `false`: the value is none, so the whole is words.
    fn apply(&mut self, operator: &'static str, value: &str, negative: bool) -> bool {
        let dated = &mut self.parsed.dated;
        match operator {
            "after" | "before" => {
                let Some(start) = start_of(value).filter(|_| !negative) else {
                    self.note("after: and before: take a day such as 2025-04-30, 2025-04 or 2025; the rest was read as words");
                    return false;
                };
                match operator {
                    "after" => dated.from = dated.from.max(start),
                    _ => dated.to = dated.to.min(start),
                }
            }
            kind if negative => self.parsed.excluded_facets.push((kind, value.to_string())),
            "skill" => self.parsed.skills.push(value.to_string()),
            _ => self.parsed.tags.push(value.to_string()),
        }
        true
    }

    fn phrase(&mut self, inside: &str, negative: bool) {
        let phrase = phrase_of(inside);
        if phrase.is_empty() {
            return;
        }
        if negative {
            self.parsed.excluded.push(phrase);
        } else {
            self.words.push(Piece {
                text: inside.to_string(),
                begins: false,
                quoted: true,
            });
            self.parsed.required.push(phrase);
        }
    }

    /// Terms, counts and neighbours of all words that rank.
    fn finish(mut self) -> Parsed {
        let quoted = !self.parsed.required.is_empty();
        let sequence = self.sequence();
        let useful = sequence.iter().any(|word| !word.stop);
        let mut previous: Option<usize> = None;
        for word in sequence
            .iter()
            .filter(|word| !(useful && word.stop))
            .take(MAX_WORDS)
        {
            let index = self.count(word);
            if word.whole {
                continue;
            }
            if let Some(before) = previous.filter(|before| *before != index) {
                let pair = (before, index);
                if !self.parsed.pairs.contains(&pair) {
                    self.parsed.pairs.push(pair);
                }
            }
            previous = Some(index);
        }
        if self.parsed.terms.is_empty() && !self.parsed.filters() && !quoted {
            let excludes =
                !self.parsed.excluded.is_empty() || !self.parsed.excluded_facets.is_empty();
            let dated = !self.parsed.dated.is_all();
            self.note(match (excludes, dated) {
                (true, _) => "only exclusions: add a word to look for",
                (_, true) => "only dates: add a word, skill: or tag: to look for",
                _ => "no words to look for in the query",
            });
        }
        self.parsed
    }

    fn count(&mut self, word: &Word) -> usize {
        let terms = &mut self.parsed.terms;
        let known = terms.iter().position(|known| known.text == word.term.text);
        let index = known.unwrap_or(terms.len());
        match terms.get_mut(index) {
            Some(known) => {
                known.count += 1;
                if known.end == End::Closed {
                    known.end = word.term.end;
                    known.typed.clone_from(&word.term.typed);
                }
            }
            None => terms.push(word.term.clone()),
        }
        index
    }

    fn sequence(&mut self) -> Vec<Word> {
        let pieces = std::mem::take(&mut self.words);
        let last = pieces.len().saturating_sub(1);
        let mut words = Vec::new();
        for (number, piece) in pieces.iter().enumerate() {
            let open = piece.begins || (self.open_end && number == last && !piece.quoted);
            if piece.begins && piece.text.chars().count() < MIN_BEGIN {
                self.note("a beginning such as ab* needs two letters");
            }
            words.extend(words_of(piece, open));
        }
        words
    }
}

struct Word {
    term: Term,
    stop: bool,
    /// An identifier beside its parts: it has no neighbours of its own.
    whole: bool,
}

/// `open`: a word at the end may go on.
fn words_of(piece: &Piece, open: bool) -> Vec<Word> {
    let tokens = tokens_of(&piece.text);
    let ranking = tokens
        .iter()
        .filter(|(token, _)| token.kind != Kind::Single);
    let word = |(token, text): (&crate::analysis::Token, &str)| {
        let mut typed = String::new();
        fold(
            &piece.text[token.start as usize..token.end as usize],
            &mut typed,
        );
        let whole = matches!(token.kind, Kind::Whole | Kind::Symbol);
        let stop = token.kind == Kind::Word && is_stop_word(&typed);
        let spelt = matches!(token.kind, Kind::Word | Kind::Part);
        let goes_on = open
            && token.end as usize == piece.text.len()
            && matches!(token.kind, Kind::Word | Kind::Part | Kind::Whole)
            && typed.chars().count() >= MIN_BEGIN;
        Word {
            term: Term {
                text: text.to_string(),
                count: 1,
                edits: if spelt && !stop && !piece.quoted {
                    edits(text)
                } else {
                    0
                },
                end: match goes_on {
                    false => End::Closed,
                    true if piece.begins => End::Asked,
                    true => End::Open,
                },
                typed,
            },
            stop: stop && !piece.begins,
            whole,
        }
    };
    ranking.map(word).collect()
}

/// How many letters of a word may be wrong.
fn edits(word: &str) -> u8 {
    let letters = word.chars().count();
    let spelt = word.chars().all(char::is_alphabetic);
    u8::from(spelt && letters >= ONE_EDIT) + u8::from(spelt && letters >= TWO_EDITS)
}

/// What has to stand side by side for a text to contain `inside`.
fn phrase_of(inside: &str) -> Phrase {
    let tokens = tokens_of(inside);
    let mut phrase: Phrase = Vec::new();
    let mut first = None;
    let mut seen = HashSet::new();
    let rank = |kind| match kind {
        Kind::Symbol => 0,
        Kind::Word | Kind::Part | Kind::Gram => 1,
        Kind::Single | Kind::Whole => 2,
    };
    let mut list: Vec<_> = tokens.iter().collect();
    list.sort_by_key(|(token, _)| (token.position, rank(token.kind)));
    // The last character of a run is in the pair before it.
    let has_gram = list.iter().any(|(token, _)| token.kind == Kind::Gram);
    for (token, term) in list {
        if (has_gram && token.kind == Kind::Single) || !seen.insert(token.position) {
            continue;
        }
        let start = *first.get_or_insert(token.position);
        phrase.push((token.position - start, term.to_string()));
    }
    phrase
}

fn is_quote(c: char) -> bool {
    matches!(c, '"' | '“' | '”' | '„' | '«' | '»')
}

fn starts_operand(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphanumeric() || is_quote(c))
}

fn quoted(text: &str) -> Option<(&str, &str)> {
    let end = text.find(is_quote)?;
    let quote = text[end..].chars().next()?;
    Some((&text[..end], &text[end + quote.len_utf8()..]))
}

const OPERATORS: [&str; 4] = ["skill", "tag", "after", "before"];

/// `skill:name`, `tag:"two words"`: operator, value and what follows.
fn operation(text: &str) -> Option<(&'static str, &str, &str)> {
    for name in OPERATORS {
        let Some(head) = text.get(..name.len() + 1) else {
            continue;
        };
        if !head.eq_ignore_ascii_case(&format!("{name}:")) {
            continue;
        }
        let value = &text[head.len()..];
        if let Some(inside) = value.strip_prefix(is_quote) {
            let (inside, rest) = quoted(inside)?;
            return (!inside.trim().is_empty()).then_some((name, inside, rest));
        }
        let end = value.find(char::is_whitespace).unwrap_or(value.len());
        let named = value[..end].chars().any(char::is_alphanumeric);
        return named.then_some((name, &value[..end], &value[end..]));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(parsed: &Parsed) -> String {
        let terms = parsed.terms.iter();
        terms
            .map(|term| format!("{}*{}", term.text, term.count))
            .collect::<Vec<_>>()
            .join(" ")
    }

    fn check(text: &str, expect: &str) {
        assert_eq!(words(&parse(text)), expect, "{text:?}");
    }

    #[test]
    fn words_are_counted_and_stop_words_dropped() {
        check("What is the pump of the pumps?", "pump*2");
        check("what is the", "what*1 is*1 the*1");
        check("C++ a/b|c", "c*2 c++*1 a*1 a/b*1 b*1");
        check("本周潮汐", "本周*1 周潮*1 潮汐*1");
        check("it's", "it*1");
    }

    #[test]
    fn punctuation_is_no_error() {
        for text in [
            "(((", "-", "*", "\"", "", "  ", "--", "\"\"", "^", "{}[]", "-\"\"",
        ] {
            let parsed = parse(text);
            assert!(parsed.terms.is_empty(), "{text:?}");
            assert!(!parsed.notes.is_empty(), "{text:?}");
        }
        for text in [
            "foo\"", "title:", "AND", "^2", "skill:", "tag: x", "a:b:c", "- x", "--x",
        ] {
            let parsed = parse(text);
            assert!(!parsed.terms.is_empty(), "{text:?}");
            assert!(!parsed.filters() && parsed.excluded.is_empty(), "{text:?}");
        }
        assert!(!parse("foo\"").notes.is_empty());
        assert!(!parse("skill: x").notes.is_empty());
    }

    #[test]
    fn operators() {
        let parsed =
            parse("pump \"high tide\" -broken -\"very low\" skill:note tag:\"Big One\" -tag:x");
        assert_eq!(words(&parsed), "pump*1 high*1 tide*1");
        assert_eq!(
            parsed.required,
            [vec![(0, "high".to_string()), (1, "tide".to_string())]]
        );
        assert_eq!(parsed.excluded.len(), 2);
        assert_eq!((parsed.skills.len(), parsed.tags.len()), (1, 1));
        assert_eq!(parsed.excluded_facets, [("tag", "x".to_string())]);
        assert_eq!(parse("e-mail -5").excluded.len(), 1);
        assert_eq!(parse("\"C++\"").required, [vec![(0, "c++".to_string())]]);
        assert_eq!(parse("\"2.4.11\"").required[0].len(), 3);
        assert_eq!(parse("\"潮汐观\"").required[0].len(), 2);
        assert_eq!(parse("„hoch”").required.len(), 1);
        assert_eq!(parse("-x").notes.len(), 1);
    }

    #[test]
    fn days() {
        let dated = |text: &str| parse(text).dated;
        let day = 86_400_000_000;
        assert_eq!(dated("x after:1970-01-02").from, day);
        assert_eq!(dated("x before:1970-02").to, 31 * day);
        assert_eq!(dated("x after:1971 AFTER:1970").from, 365 * day);
        assert_eq!(dated("x before:1970-01-02T00:00:01Z").to, day + 1_000_000);
        for text in [
            "x after:soon",
            "x before:2025-13",
            "x -after:2025",
            "after:",
        ] {
            let parsed = parse(text);
            assert_eq!(parsed.dated, Span::default(), "{text}");
            assert!(
                !parsed.notes.is_empty() && !parsed.terms.is_empty(),
                "{text}"
            );
        }
    }

    #[test]
    fn what_may_stand_for_a_word() {
        let loose = |text: &str| {
            let terms = parse(text).terms;
            let end = |term: &Term| match term.end {
                End::Closed => String::new(),
                End::Open => format!(":{}", term.typed),
                End::Asked => format!(":{}*", term.typed),
            };
            let each = terms
                .iter()
                .map(|term| format!("{}~{}{}", term.text, term.edits, end(term)));
            each.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(loose("pump stationery"), "pump~1 stationeri~2:stationery");
        assert_eq!(loose("renewal "), "renew~1");
        assert_eq!(loose("\"renewal\""), "renew~0");
        assert_eq!(loose("rene* x"), "rene~1:rene* x~0");
        assert_eq!(loose("r* foo_ba"), "r~0 foo~0 foo_ba~0:foo_ba ba~0:ba");
        assert_eq!(loose("v2 潮汐 C++"), "v2~0 潮汐~0 c~0 c++~0");
    }

    proptest::proptest! {
        #[test]
        fn any_query_is_read(text in "[-\"a-c:(skilltagbefore2潮汐é*' ]{0,40}") {
            let parsed = parse(&text);
            let nothing = parsed.terms.is_empty() && !parsed.filters();
            assert!(!nothing || !parsed.notes.is_empty());
        }
    }
}
