//! The part of a unit that shows why it was found: the window with most of the
//! words, cut at whole characters, with the words' places in it.

use hashbrown::HashMap;
use unicode_segmentation::GraphemeCursor;

use crate::analysis::tokens_of;
use crate::api::DocUnit;

/// The longest snippet, in characters.
const MAX_CHARS: usize = 240;
/// The most that is shown before the first word, in characters.
const LEAD: usize = 60;
/// What a repetition of a word counts in a window.
const REPEATED: f32 = 0.1;

pub(crate) struct Cut {
    pub anchor: Option<String>,
    pub text: String,
    pub matches: Vec<(u32, u32)>,
}

/// A word of the query in the text.
struct Match<'a> {
    start: usize,
    end: usize,
    /// Characters before `start`.
    chars: usize,
    word: &'a str,
    weight: f32,
}

pub(crate) fn cut(unit: &DocUnit, weights: &HashMap<String, f32>) -> Cut {
    let text = unit.text.as_str();
    let matches = find(text, weights);
    let window = best_window(&matches);
    let inside = &matches[window.clone()];
    let (start, end) = match (inside.first(), inside.last()) {
        (Some(first), Some(last)) => around(text, first.start, last.end),
        _ => around(text, 0, 0),
    };
    let shown = &text[start..end];
    let ranges = matches.iter().filter(|m| m.end > start && m.start < end);
    Cut {
        anchor: anchor(unit, inside, start),
        text: shown.to_string(),
        matches: join(
            ranges.map(|m| whole_characters(text, m.start.max(start), m.end.min(end))),
            start,
        ),
    }
}

fn find<'a>(text: &str, weights: &'a HashMap<String, f32>) -> Vec<Match<'a>> {
    let mut found = Vec::new();
    let (mut chars, mut counted) = (0, 0);
    for (token, term) in tokens_of(text).iter() {
        if let Some((word, weight)) = weights.get_key_value(term) {
            let (start, end) = (token.start as usize, token.end as usize);
            chars += text[counted..start.max(counted)].chars().count();
            counted = start.max(counted);
            found.push(Match {
                start,
                end,
                chars,
                word,
                weight: *weight,
            });
        }
    }
    found
}

/// The run of matches that fits a snippet and is worth most, the first of equals.
fn best_window(matches: &[Match<'_>]) -> std::ops::Range<usize> {
    let mut counts: HashMap<&str, u32> = HashMap::new();
    let (mut best, mut best_worth) = (0..0, 0.0);
    let (mut worth, mut from) = (0.0, 0);
    for (index, next) in matches.iter().enumerate() {
        let count = counts.entry(next.word).or_default();
        worth += next.weight * if *count == 0 { 1.0 } else { REPEATED };
        *count += 1;
        while next.chars + next.word.len() > matches[from].chars + MAX_CHARS && from < index {
            let first = &matches[from];
            if let Some(count) = counts.get_mut(first.word) {
                *count -= 1;
                worth -= first.weight * if *count == 0 { 1.0 } else { REPEATED };
            }
            from += 1;
        }
        // Rounding must not move the window to a later equal one.
        if worth > best_worth + 1e-4 {
            (best, best_worth) = (from..index + 1, worth);
        }
    }
    best
}

/// A piece of at most `MAX_CHARS` characters that holds as much of
/// `start..end` as fits, from a line or word start to a word end.
fn around(text: &str, start: usize, end: usize) -> (usize, usize) {
    let inner = text[start..end].chars().count().min(MAX_CHARS);
    let spare = (MAX_CHARS - inner).min(LEAD);
    let mut from = start;
    let mut line = None;
    for (at, c) in text[..start].char_indices().rev().take(spare) {
        if c == '\n' {
            line = Some(at + 1);
            break;
        }
        from = at;
    }
    let from = match line {
        Some(line) => line,
        None if from > 0 => word_start(text, from, start),
        None => 0,
    };
    let from = snap(text, from, start);
    let rest = &text[from..];
    let limit = rest
        .char_indices()
        .nth(MAX_CHARS)
        .map_or(text.len(), |(at, _)| from + at);
    let to = if limit < text.len() {
        word_end(text, limit, end)
    } else {
        limit
    };
    trim(text, from, snap_back(text, from, to))
}

/// The first word start from `from` on, before `before`.
fn word_start(text: &str, from: usize, before: usize) -> usize {
    let gap = text[from..before].find(char::is_whitespace);
    gap.map_or(from, |gap| from + gap)
}

/// The last gap before `limit` that keeps all up to `keep`.
fn word_end(text: &str, limit: usize, keep: usize) -> usize {
    if text[limit..].starts_with(char::is_whitespace) {
        return limit;
    }
    let keep = keep.min(limit);
    text[keep..limit]
        .rfind(char::is_whitespace)
        .map_or(limit, |gap| keep + gap)
}

/// Cuts white space off both ends.
fn trim(text: &str, from: usize, to: usize) -> (usize, usize) {
    let shown = &text[from..to];
    let start = from + (shown.len() - shown.trim_start().len());
    (start, start + shown.trim().len())
}

fn is_boundary(text: &str, at: usize) -> bool {
    GraphemeCursor::new(at, text.len(), true)
        .is_boundary(text, 0)
        .unwrap_or(true)
}

/// The next character start from `from`, at most `most`.
fn snap(text: &str, from: usize, most: usize) -> usize {
    let starts = (from..most).filter(|at| text.is_char_boundary(*at));
    starts
        .into_iter()
        .find(|at| is_boundary(text, *at))
        .unwrap_or(most)
}

/// The last character end up to `to`, at least `least`.
fn snap_back(text: &str, least: usize, to: usize) -> usize {
    let ends = (least..=to).rev().filter(|at| text.is_char_boundary(*at));
    ends.into_iter()
        .find(|at| is_boundary(text, *at))
        .unwrap_or(least)
}

fn whole_characters(text: &str, start: usize, end: usize) -> (usize, usize) {
    let back = (0..=start).rev().filter(|at| text.is_char_boundary(*at));
    let start = back
        .into_iter()
        .find(|at| is_boundary(text, *at))
        .unwrap_or(start);
    (start, snap(text, end, text.len()))
}

/// Ascending, disjoint ranges relative to `base`.
fn join(ranges: impl Iterator<Item = (usize, usize)>, base: usize) -> Vec<(u32, u32)> {
    let mut ranges: Vec<(usize, usize)> = ranges.collect();
    ranges.sort_unstable();
    let mut joined: Vec<(u32, u32)> = Vec::new();
    for (start, end) in ranges {
        let (start, end) = (start.saturating_sub(base) as u32, (end - base) as u32);
        match joined.last_mut() {
            Some(last) if start < last.1 => last.1 = last.1.max(end),
            _ => joined.push((start, end)),
        }
    }
    joined
}

/// The block that holds most of the window's words; without words, the first.
fn anchor(unit: &DocUnit, inside: &[Match<'_>], start: usize) -> Option<String> {
    let block_at = |at: usize| {
        let after = unit
            .blocks
            .partition_point(|block| block.start as usize <= at);
        after.saturating_sub(1)
    };
    let mut worth: HashMap<usize, f32> = HashMap::new();
    for found in inside {
        *worth.entry(block_at(found.start)).or_default() += found.weight;
    }
    let better = |a: &(&usize, &f32), b: &(&usize, &f32)| a.1.total_cmp(b.1).then(b.0.cmp(a.0));
    let best = worth
        .iter()
        .max_by(better)
        .map_or_else(|| block_at(start), |(block, _)| *block);
    unit.blocks.get(best).map(|block| block.anchor.clone())
}

#[cfg(test)]
mod tests;
