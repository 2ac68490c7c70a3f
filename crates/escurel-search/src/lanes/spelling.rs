//! Words of the texts that may stand for a word of the query: those that go on
//! where it ends, and those that differ from it in a letter or two.
//!
//! Only words that the audience's texts have are looked at, so that nobody learns
//! of others.

use std::io;
use std::sync::OnceLock;

use hashbrown::HashSet;
use levenshtein_automata::{DFA, Distance, LevenshteinAutomatonBuilder, SINK_STATE};
use tantivy::Term;
use tantivy::schema::Field;
use tantivy::termdict::TermDictionary;
use tantivy_fst::Automaton;

use crate::analysis::tokens_of;
use crate::audience::Scope;
use crate::query::Term as Asked;
use crate::schema::Fields;

/// The most words that stand for one.
const MOST_BEGUN: usize = 32;
const MOST_SIMILAR: usize = 8;
/// The letters of a word that a stemmer takes off at most.
const ENDING: usize = 4;
/// Candidates whose texts are counted.
const COUNTED: usize = 256;

/// Words that begin like this, the most frequent first.
pub(super) fn begun(fields: &Fields, scope: &Scope, begin: &str) -> tantivy::Result<Vec<String>> {
    let from = begin.as_bytes();
    let mut words = Words::default();
    words.collect(fields, scope, |dictionary, found| {
        let mut terms = dictionary.range().ge(from).into_stream()?;
        while terms.advance() && terms.key().starts_with(from) {
            found(terms.key());
        }
        Ok(())
    })?;
    words.0.retain(|word| *word != begin);
    let mut words: Vec<String> = words.0.into_iter().collect();
    words.sort_unstable_by(|a, b| (a.len(), a).cmp(&(b.len(), b)));
    let words = words.into_iter().map(|word| (0, word));
    most_frequent(fields, scope, words, MOST_BEGUN)
}

/// Words like this one, the most similar first.
pub(super) fn similar(
    fields: &Fields,
    scope: &Scope,
    word: &Asked,
) -> tantivy::Result<Vec<String>> {
    let Some(like) = Like::new(&word.text, word.edits) else {
        return Ok(Vec::new());
    };
    let mut words = Words::default();
    words.collect(fields, scope, |dictionary, found| {
        let mut terms = match &like.within {
            Some((from, to)) => dictionary.search(&like).ge(from).lt(to).into_stream()?,
            None => dictionary.search(&like).into_stream()?,
        };
        while terms.advance() {
            found(terms.key());
        }
        Ok(())
    })?;
    let distance = |word: &String| like.dfa.eval(word).to_u8() as usize;
    let stems = inflected(&word.typed).into_iter().map(|stem| (1, stem));
    let mut words: Vec<(usize, String)> = words
        .0
        .into_iter()
        .map(|w| (distance(&w), w))
        .chain(stems)
        .collect();
    words.sort_unstable();
    let mut seen: HashSet<String> = [word.text.clone()].into();
    words.retain(|(_, word)| seen.insert(word.clone()));
    most_frequent(fields, scope, words.into_iter(), MOST_SIMILAR)
}

/// The stems of words that differ from this one by a letter in its ending. There a
/// wrong letter hides the ending from the stemmer, so that the stems are far apart.
fn inflected(typed: &str) -> HashSet<String> {
    let mut stems = HashSet::new();
    if !typed.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return stems;
    }
    let mut note = |word: String| {
        if let Some((_, stem)) = tokens_of(&word).get(0) {
            stems.insert(stem.to_string());
        }
    };
    for at in typed.len().saturating_sub(ENDING)..=typed.len() {
        let (head, tail) = typed.split_at(at);
        let rest = tail.get(1..);
        for letter in 'a'..='z' {
            note(format!("{head}{letter}{tail}"));
            rest.iter()
                .for_each(|rest| note(format!("{head}{letter}{rest}")));
        }
        if let Some(rest) = rest {
            note(format!("{head}{rest}"));
        }
        if let (Some(second), Some(rest)) = (tail.get(1..2), tail.get(2..)) {
            note(format!("{head}{second}{}{rest}", &tail[..1]));
        }
    }
    stems
}

/// The first candidates that the audience has, by rank and frequency.
fn most_frequent(
    fields: &Fields,
    scope: &Scope,
    candidates: impl Iterator<Item = (usize, String)>,
    most: usize,
) -> tantivy::Result<Vec<String>> {
    let mut counted = Vec::new();
    for (rank, word) in candidates {
        let living = living(fields, scope, &word)?;
        if living > 0 {
            counted.push((rank, std::cmp::Reverse(living), word));
        }
        if counted.len() == COUNTED {
            break;
        }
    }
    counted.sort_unstable();
    counted.truncate(most);
    Ok(counted.into_iter().map(|(_, _, word)| word).collect())
}

fn living(fields: &Fields, scope: &Scope, word: &str) -> tantivy::Result<u64> {
    let mut most = 0;
    for field in found_by(fields) {
        most = most.max(scope.count(&Term::from_field_text(field, word))?.living);
    }
    Ok(most)
}

/// The fields that find; what is in the others is in these, too.
fn found_by(fields: &Fields) -> [Field; 2] {
    [fields.body, fields.fields]
}

#[derive(Default)]
struct Words(HashSet<String>);

impl Words {
    fn collect(
        &mut self,
        fields: &Fields,
        scope: &Scope,
        each: impl Fn(&TermDictionary, &mut dyn FnMut(&[u8])) -> io::Result<()>,
    ) -> tantivy::Result<()> {
        for layer in scope.view().layers() {
            for segment in layer.searcher.segment_readers() {
                for field in found_by(fields) {
                    let index = segment.inverted_index(field)?;
                    each(index.terms(), &mut |key| {
                        if let Ok(word) = std::str::from_utf8(key)
                            && !self.0.contains(word)
                        {
                            self.0.insert(word.to_string());
                        }
                    })?;
                }
            }
        }
        Ok(())
    }
}

/// Words at a distance of at most one or two edits.
struct Like {
    dfa: DFA,
    /// Two edits leave the first letter alone.
    within: Option<(Vec<u8>, Vec<u8>)>,
}

impl Like {
    fn new(word: &str, edits: u8) -> Option<Like> {
        static BUILDERS: OnceLock<[LevenshteinAutomatonBuilder; 2]> = OnceLock::new();
        let builders =
            BUILDERS.get_or_init(|| [1, 2].map(|n| LevenshteinAutomatonBuilder::new(n, true)));
        let builder = builders.get(usize::from(edits.checked_sub(1)?))?;
        let within = (edits > 1).then(|| {
            let first: String = word.chars().take(1).collect();
            // No letter has this byte.
            let end = [first.as_bytes(), &[0xFF]].concat();
            (first.into_bytes(), end)
        });
        Some(Like {
            dfa: builder.build_dfa(word),
            within,
        })
    }
}

impl Automaton for &Like {
    type State = u32;

    fn start(&self) -> u32 {
        self.dfa.initial_state()
    }

    fn is_match(&self, state: &u32) -> bool {
        matches!(self.dfa.distance(*state), Distance::Exact(_))
    }

    fn can_match(&self, state: &u32) -> bool {
        *state != SINK_STATE
    }

    fn accept(&self, state: &u32, byte: u8) -> u32 {
        self.dfa.transition(*state, byte)
    }
}
