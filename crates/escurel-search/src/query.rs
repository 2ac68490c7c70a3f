//! Reading what somebody typed: words, `"phrases"`, `-exclusions`, `skill:` and
//! `tag:`. Nothing is an error; what cannot be an operator is read as words and
//! noted. Phrases and exclusions speak of units, not of pages.

use hashbrown::HashSet;

use crate::analysis::{Kind, fold, is_stop_word, tokens_of};

/// A query as the lanes understand it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Parsed {
    /// Distinct terms that rank, in order of first use, with their count.
    pub terms: Vec<(String, u32)>,
    /// Neighbours in the query, as indexes into `terms`.
    pub pairs: Vec<(usize, usize)>,
    pub required: Vec<Phrase>,
    pub excluded: Vec<Phrase>,
    /// Any of these skills, all of these tags.
    pub skills: Vec<String>,
    pub tags: Vec<String>,
    pub excluded_facets: Vec<(&'static str, String)>,
    pub notes: Vec<String>,
}

/// Terms at offsets from the first.
pub(crate) type Phrase = Vec<(u32, String)>;

/// The words beyond which a query is cut; long texts say nothing more.
const MAX_WORDS: usize = 256;
/// The bytes of a query that are read.
const MAX_BYTES: usize = 8 * 1024;

impl Parsed {
    pub fn filters(&self) -> bool {
        !self.required.is_empty() || !self.skills.is_empty() || !self.tags.is_empty()
    }
}

pub(crate) fn parse(text: &str) -> Parsed {
    let mut reader = Reader::default();
    let text = cut(text, MAX_BYTES);
    if text.1 {
        reader.note("the query is long; its beginning was used");
    }
    let mut rest = text.0.trim_start();
    while !rest.is_empty() {
        rest = reader.item(rest).trim_start();
    }
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
    /// Words as typed, to be analysed together.
    words: Vec<String>,
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
        if let Some((kind, value, rest)) = facet(body) {
            self.facet(kind, value, negative);
            return rest;
        }
        let end = body
            .find(|c: char| c.is_whitespace() || is_quote(c))
            .unwrap_or(body.len());
        let word = &body[..end];
        if ["skill:", "tag:"]
            .iter()
            .any(|name| word.eq_ignore_ascii_case(name))
        {
            self.note("an operator without a value was read as a word");
        }
        if matches!(word, "AND" | "OR" | "NOT") {
            self.note("AND, OR and NOT are read as words; use \"…\" and -word");
        }
        if negative {
            self.phrase(word, true);
        } else {
            self.words.push(word.to_string());
        }
        &body[end..]
    }

    fn facet(&mut self, kind: &'static str, value: &str, negative: bool) {
        match (kind, negative) {
            (_, true) => self.parsed.excluded_facets.push((kind, value.to_string())),
            ("skill", false) => self.parsed.skills.push(value.to_string()),
            (_, false) => self.parsed.tags.push(value.to_string()),
        }
    }

    fn phrase(&mut self, inside: &str, negative: bool) {
        let phrase = phrase_of(inside);
        if phrase.is_empty() {
            return;
        }
        if negative {
            self.parsed.excluded.push(phrase);
        } else {
            self.words.push(inside.to_string());
            self.parsed.required.push(phrase);
        }
    }

    /// Terms, counts and neighbours of all words that rank.
    fn finish(mut self) -> Parsed {
        let quoted = !self.parsed.required.is_empty();
        let sequence = sequence(&self.words.join(" "));
        let useful = sequence.iter().any(|word| !word.stop);
        let mut previous: Option<usize> = None;
        for word in sequence
            .iter()
            .filter(|word| !(useful && word.stop))
            .take(MAX_WORDS)
        {
            let index = self.count(&word.term);
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
            self.note(match excludes {
                true => "only exclusions: add a word to look for",
                false => "no words to look for in the query",
            });
        }
        self.parsed
    }

    fn count(&mut self, term: &str) -> usize {
        match self
            .parsed
            .terms
            .iter()
            .position(|(known, _)| known == term)
        {
            Some(index) => {
                self.parsed.terms[index].1 += 1;
                index
            }
            None => {
                self.parsed.terms.push((term.to_string(), 1));
                self.parsed.terms.len() - 1
            }
        }
    }
}

struct Word {
    term: String,
    stop: bool,
    /// An identifier beside its parts: it has no neighbours of its own.
    whole: bool,
}

fn sequence(text: &str) -> Vec<Word> {
    let tokens = tokens_of(text);
    let mut folded = String::new();
    let ranking = tokens
        .iter()
        .filter(|(token, _)| token.kind != Kind::Single);
    let word = |(token, term): (&crate::analysis::Token, &str)| {
        folded.clear();
        fold(&text[token.start as usize..token.end as usize], &mut folded);
        Word {
            term: term.to_string(),
            stop: token.kind == Kind::Word && is_stop_word(&folded),
            whole: matches!(token.kind, Kind::Whole | Kind::Symbol),
        }
    };
    ranking.map(word).collect()
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

/// `skill:name`, `tag:"two words"`: kind, value and what follows.
fn facet(text: &str) -> Option<(&'static str, &str, &str)> {
    for kind in ["skill", "tag"] {
        let Some(head) = text.get(..kind.len() + 1) else {
            continue;
        };
        if !head.eq_ignore_ascii_case(&format!("{kind}:")) {
            continue;
        }
        let value = &text[head.len()..];
        if let Some(inside) = value.strip_prefix(is_quote) {
            let (inside, rest) = quoted(inside)?;
            return (!inside.trim().is_empty()).then_some((kind, inside, rest));
        }
        let end = value.find(char::is_whitespace).unwrap_or(value.len());
        let named = value[..end].chars().any(char::is_alphanumeric);
        return named.then_some((kind, &value[..end], &value[end..]));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(parsed: &Parsed) -> String {
        let terms = parsed.terms.iter();
        terms
            .map(|(term, count)| format!("{term}*{count}"))
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

    proptest::proptest! {
        #[test]
        fn any_query_is_read(text in "[-\"a-c:(skilltag潮汐é*' ]{0,40}") {
            let parsed = parse(&text);
            let nothing = parsed.terms.is_empty() && !parsed.filters();
            assert!(!nothing || !parsed.notes.is_empty());
        }
    }
}
