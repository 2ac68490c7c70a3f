//! A vocabulary whose words are as unevenly common as those of a language.

use crate::rng::Rng;

const COMMON: &str = "the of and to in a is that for it as was with be by on not he this are or \
    his from at which but have an had they you were their one all we can her has there been if \
    more when will would who so no out up into than them then its some what only time new could";
const ONSETS: &[&str] = &[
    "b", "br", "c", "ch", "d", "dr", "f", "fl", "g", "gr", "h", "j", "k", "l", "m", "n", "p", "pl",
    "pr", "r", "s", "sh", "st", "str", "t", "tr", "v", "w",
];
const VOWELS: &[&str] = &["a", "e", "i", "o", "u", "ai", "ea", "ee", "io", "ou"];
const CODAS: &[&str] = &[
    "", "", "", "l", "m", "n", "nd", "r", "rt", "s", "st", "t", "x",
];

pub struct Vocabulary {
    words: Vec<String>,
    /// Running sum of 1 / rank, so that a draw is one search.
    running: Vec<f64>,
}

impl Vocabulary {
    pub fn new(size: usize, rng: &mut Rng) -> Self {
        let mut words: Vec<String> = COMMON.split_whitespace().map(str::to_owned).collect();
        while words.len() < size {
            words.push(make(rng));
        }
        let mut sum = 0.0;
        let running = (1..=words.len())
            .map(|rank| {
                sum += 1.0 / rank as f64;
                sum
            })
            .collect();
        Self { words, running }
    }

    pub fn draw(&self, rng: &mut Rng) -> &str {
        let total = self.running.last().copied().unwrap_or(0.0);
        let at = rng.unit() * total;
        let index = self.running.partition_point(|&sum| sum <= at);
        self.words.get(index).map_or("", String::as_str)
    }

    /// A sentence of about `length` words.
    pub fn sentence(&self, length: usize, rng: &mut Rng, into: &mut String) {
        for n in 0..length {
            let word = self.draw(rng);
            if n == 0 {
                let mut letters = word.chars();
                into.extend(letters.next().map(|c| c.to_ascii_uppercase()));
                into.push_str(letters.as_str());
            } else {
                into.push(' ');
                into.push_str(word);
            }
        }
        into.push_str(". ");
    }
}

fn make(rng: &mut Rng) -> String {
    let mut word = String::new();
    for _ in 0..1 + rng.below(3) {
        for part in [ONSETS, VOWELS, CODAS] {
            word.push_str(rng.pick(part).copied().unwrap_or(""));
        }
    }
    word
}
