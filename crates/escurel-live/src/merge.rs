//! The union of two changes to one text.
//!
//! Lines first: what only one side touched, and what both changed in the same
//! way, counts once. Where both touched the same lines, their changes meet as
//! concurrent edits of one CRDT text, letter by letter. Invariants: the union
//! of a text with an unchanged one is that text; no word of it is made of
//! pieces that nobody wrote together.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use diffy::{ConflictStyle, MergeOptions};
use loro::{ExportMode, LoroDoc, LoroError, LoroText};
use similar::{Algorithm, DiffTag, capture_diff_slices_deadline};
use unicode_segmentation::UnicodeSegmentation;

use crate::document::TEXT;

/// After so long the rest of two texts counts as different.
const PATIENCE: Duration = Duration::from_millis(500);

/// Both changes to `base`, if no line was changed by both in different ways.
pub fn merge_lines(base: &str, ours: &str, theirs: &str) -> Option<String> {
    diffy::merge(base, ours, theirs).ok()
}

/// Both changes to `base`, if they leave each other's words whole. `ours` comes first where both
/// insert at one place.
pub fn merge(base: &str, ours: &str, theirs: &str) -> Option<String> {
    if ours == theirs || theirs == base {
        return Some(ours.to_owned());
    }
    if ours == base {
        return Some(theirs.to_owned());
    }
    // A last line without its end could not be told from the marker after it.
    let [base, ours, theirs] = [base, ours, theirs].map(|text| format!("{text}\n"));
    let marks = Marks::absent_from(&[&base, &ours, &theirs]);
    let merged = MergeOptions::new()
        .set_conflict_style(ConflictStyle::Diff3)
        .set_conflict_marker_length(marks.length)
        .merge(&base, &ours, &theirs);
    let mut text = match merged {
        Ok(clean) => clean,
        Err(marked) => marks.resolve(&marked)?,
    };
    if !adds_up(&base, &ours, &theirs, &text) {
        return None;
    }
    // Each side has a line end more than it had, and so has their union.
    if text.ends_with('\n') {
        text.pop();
    }
    Some(text)
}

/// Conflict markers that no text contains.
struct Marks {
    length: usize,
}

/// Which side of a conflict lines belong to.
#[derive(Clone, Copy, PartialEq)]
enum Side {
    Both,
    Ours,
    Base,
    Theirs,
}

impl Marks {
    fn absent_from(texts: &[&str]) -> Marks {
        let longest = texts.iter().flat_map(|text| text.lines()).map(|line| {
            let first = line.chars().next();
            line.chars().take_while(|c| Some(*c) == first).count()
        });
        Marks {
            length: longest.max().unwrap_or(0).max(7) + 1,
        }
    }

    fn side(&self, line: &str) -> Option<Side> {
        let mark = |c: char| {
            let run = line.chars().take_while(|x| *x == c).count();
            run >= self.length
        };
        match line.chars().next()? {
            '<' if mark('<') => Some(Side::Ours),
            '|' if mark('|') => Some(Side::Base),
            '=' if mark('=') => Some(Side::Theirs),
            '>' if mark('>') => Some(Side::Both),
            _ => None,
        }
    }

    fn resolve(&self, marked: &str) -> Option<String> {
        let mut text = String::with_capacity(marked.len());
        let mut sides = [String::new(), String::new(), String::new()];
        let mut now = Side::Both;
        for line in marked.split_inclusive('\n') {
            if let Some(side) = self.side(line) {
                if side == Side::Both {
                    let [ours, base, theirs] = std::mem::take(&mut sides);
                    let both = union(&base, &ours, &theirs).ok()?;
                    if !has_whole_words(&base, &ours, &theirs, &both) {
                        return None;
                    }
                    text.push_str(&both);
                }
                now = side;
                continue;
            }
            match now {
                Side::Both => text.push_str(line),
                Side::Ours => sides[0].push_str(line),
                Side::Base => sides[1].push_str(line),
                Side::Theirs => sides[2].push_str(line),
            }
        }
        Some(text)
    }
}

/// Two concurrent edits of one CRDT text. Its clients are numbered, so that the same
/// three texts always have the same union.
fn union(base: &str, ours: &str, theirs: &str) -> Result<String, LoroError> {
    let start = LoroDoc::new();
    start.set_peer_id(1)?;
    start.get_text(TEXT).insert(0, base)?;
    start.commit();
    let whole = start.export(ExportMode::Snapshot).map_err(encode)?;
    let both = branch(&whole, 2, ours)?;
    let other = branch(&whole, 3, theirs)?;
    both.import(&other.export(ExportMode::all_updates()).map_err(encode)?)?;
    Ok(both.get_text(TEXT).to_string())
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !c.is_alphanumeric());
    words.filter(|word| !word.is_empty())
}

/// How often each word stands in the base, in ours, in theirs and in both.
fn counts(texts: [&str; 4]) -> HashMap<&str, [i64; 4]> {
    let mut counts: HashMap<&str, [i64; 4]> = HashMap::new();
    for (side, text) in texts.into_iter().enumerate() {
        words(text).for_each(|word| counts.entry(word).or_default()[side] += 1);
    }
    counts
}

/// Each word stands as often as both changes together make it, or as often as one does if both
/// made the same: none is missing, doubled, or made of pieces.
fn has_whole_words(base: &str, ours: &str, theirs: &str, both: &str) -> bool {
    counts([base, ours, theirs, both])
        .values()
        .all(|[base, ours, theirs, both]| {
            *both == ours + theirs - base || (ours == theirs && both == ours)
        })
}

/// Nothing stands more or less often than the changes can make it. Lines that stand there twice
/// can be taken for each other.
fn adds_up(base: &str, ours: &str, theirs: &str, both: &str) -> bool {
    counts([base, ours, theirs, both])
        .values()
        .all(|[base, ours, theirs, both]| {
            let (one, other) = (ours - base, theirs - base);
            let least = base + one.min(0) + other.min(0);
            let most = base + one.max(0) + other.max(0);
            (least..=most).contains(both)
        })
}

fn branch(whole: &[u8], peer: u64, text: &str) -> Result<LoroDoc, LoroError> {
    let doc = LoroDoc::new();
    doc.set_peer_id(peer)?;
    doc.import(whole)?;
    rewrite(&doc.get_text(TEXT), text, letters)?;
    doc.commit();
    Ok(doc)
}

/// Makes `body` say `text`: lines that are new come in whole, so that what somebody types beside
/// them does not end up within them; in lines that were changed, the pieces that `split` makes do.
pub(crate) fn rewrite(
    body: &LoroText,
    text: &str,
    split: fn(&str) -> Vec<&str>,
) -> Result<(), LoroError> {
    let deadline = Instant::now() + PATIENCE;
    let old = body.to_string();
    let lines_changed = changes(&lines(&old), &lines(text), deadline);
    // From the end, so that what is in front keeps its place.
    for line in lines_changed.iter().rev() {
        if line.old.is_empty() || line.new.is_empty() {
            line.make(body, 0)?;
            continue;
        }
        let [before, after] = [&line.old, &line.new].map(|text| split(text));
        for word in changes(&before, &after, deadline).iter().rev() {
            word.make(body, line.at)?;
        }
    }
    Ok(())
}

/// One place where two texts differ.
struct Change {
    /// Characters before it in the old text.
    at: usize,
    old: String,
    new: String,
}

impl Change {
    fn make(&self, body: &LoroText, from: usize) -> Result<(), LoroError> {
        let at = from + self.at;
        body.delete(at, self.old.chars().count())?;
        body.insert(at, &self.new)
    }
}

/// Where `before` and `after` differ, in order.
fn changes(before: &[&str], after: &[&str], deadline: Instant) -> Vec<Change> {
    let ops = capture_diff_slices_deadline(Algorithm::Myers, before, after, Some(deadline));
    let (mut at, mut seen) = (0, 0);
    let differ = ops.iter().map(|op| op.as_tag_tuple());
    differ
        .filter(|(tag, ..)| *tag != DiffTag::Equal)
        .map(|(_, was, is)| {
            at += length(&before[seen..was.start]);
            let change = Change {
                at,
                old: before[was.clone()].concat(),
                new: after[is].concat(),
            };
            (at, seen) = (at + length(&before[was.clone()]), was.end);
            change
        })
        .collect()
}

/// In characters.
fn length(pieces: &[&str]) -> usize {
    pieces.iter().map(|piece| piece.chars().count()).sum()
}

/// Words of any script, single characters of those without spaces, and all between them.
pub(crate) fn words_and_gaps(text: &str) -> Vec<&str> {
    text.split_word_bounds().collect()
}

/// What a reader takes for one letter.
fn letters(text: &str) -> Vec<&str> {
    text.graphemes(true).collect()
}

fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

fn encode(error: loro::LoroEncodeError) -> LoroError {
    LoroError::internal(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn changes_of_different_lines_stand_side_by_side() {
        assert_eq!(merged("a\nb\nc\n", "A\nb\nc\n", "a\nb\nC\n"), "A\nb\nC\n");
        assert_eq!(merged("a\n\nb", "a\n\nb", "x"), "x");
    }

    #[test]
    fn the_same_change_counts_once_also_beside_an_overlap() {
        let base = "one\n\ntwo\n\nthree\n";
        let ours = "one\nsame\n\ntwo left\n\nthree\n";
        let theirs = "one\nsame\n\ntwo right\n\nthree\n";
        let both = merged(base, ours, theirs);
        assert_eq!(both.matches("same").count(), 1, "{both}");
        assert!(both.contains("left") && both.contains("right"), "{both}");
    }

    #[test]
    fn changes_of_one_line_meet_letter_by_letter() {
        let both = merged("the cat sat\n", "the big cat sat\n", "the cat sat down\n");
        assert_eq!(both, "the big cat sat down\n");
        let keys = merged("a: 1\nb: 2\n", "a: 5\nb: 2\n", "a: 1\nb: 7\n");
        assert_eq!(keys, "a: 5\nb: 7\n");
    }

    #[test]
    fn text_that_looks_like_a_conflict_is_text() {
        let marks = "<<<<<<< ours\nx\n=======\ny\n>>>>>>> theirs\n";
        let ours = format!("{marks}left\n");
        let theirs = format!("{marks}right\n");
        let both = merged(marks, &ours, &theirs);
        assert!(both.starts_with(marks), "{both}");
        assert!(both.contains("left") && both.contains("right"), "{both}");
    }

    fn merged(base: &str, ours: &str, theirs: &str) -> String {
        merge(base, ours, theirs).unwrap()
    }

    #[test]
    fn lines_that_stand_there_twice_do_not_come_to_stand_there_three_times() {
        let base = "one\n\ntwo é\ntwo é\n";
        let [ours, theirs] = ["x", "y"].map(|new| format!("one\n\n {new} two é\ntwo é\n"));
        assert_eq!(merge(base, &ours, &theirs), None);
    }

    #[test]
    fn two_texts_for_one_place_are_not_mixed() {
        let (base, ours, theirs) = ("tok000000 and more\n", "tok000136 and [[id3]]\n", "tok99\n");
        assert_eq!(merge(base, ours, theirs), None);
        assert_eq!(merge_lines(base, ours, theirs), None);
        assert_eq!(
            merge("# A\n", "# Title 0\n\none\n", "# Title 2\n\ntwo\n"),
            None
        );
    }

    fn text() -> impl Strategy<Value = String> {
        "[abé🌊 \n]{0,40}"
    }

    proptest! {
        #[test]
        fn one_sided_changes_and_equal_changes_are_taken(base in text(), new in text()) {
            prop_assert_eq!(merge(&base, &new, &base), Some(new.clone()));
            prop_assert_eq!(merge(&base, &base, &new), Some(new.clone()));
            prop_assert_eq!(merge(&base, &new, &new), Some(new));
        }

        #[test]
        fn what_both_add_is_all_there(base in text(), a in " [x]{1,5} ", b in " [y]{1,5} ", at in 0usize..40, to in 0usize..40) {
            let put = |text: &str, at: usize| {
                let at = base.char_indices().map(|(i, _)| i).nth(at).unwrap_or(base.len());
                format!("{}{text}{}", &base[..at], &base[at..])
            };
            let Some(both) = merge(&base, &put(&a, at), &put(&b, to)) else { return Ok(()) };
            prop_assert_eq!(both.chars().filter(|c| *c == 'x').count(), a.trim().len());
            prop_assert_eq!(both.chars().filter(|c| *c == 'y').count(), b.trim().len());
            // Two lines in one place may bring an empty line or a space less or more.
            let letters = |text: &str| {
                let kept = |c: &char| !c.is_whitespace() && !"xy".contains(*c);
                let mut letters: Vec<char> = text.chars().filter(kept).collect();
                letters.sort_unstable();
                letters
            };
            prop_assert_eq!(letters(&both), letters(&base));
        }
    }
}
