//! The union of two changes to one text.
//!
//! Lines first: what only one side touched, and what both changed in the same
//! way, counts once. Where both touched the same lines, their changes meet as
//! concurrent edits of one CRDT text, letter by letter. Invariant: the union
//! of a text with an unchanged one is that text.

use diffy::{ConflictStyle, MergeOptions};
use loro::{ExportMode, LoroDoc, LoroError, UpdateOptions};

const TEXT: &str = "body";
/// A difference letter by letter may cost the square of a text's length; after so many
/// milliseconds lines are compared.
const PATIENCE_MS: f64 = 100.0;

/// Both changes to `base`. `ours` comes first where both insert at one place.
pub fn merge(base: &str, ours: &str, theirs: &str) -> String {
    if ours == theirs || theirs == base {
        return ours.to_owned();
    }
    if ours == base {
        return theirs.to_owned();
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
        Err(marked) => marks.resolve(&marked),
    };
    // Each side has a line end more than it had, and so has their union.
    if text.ends_with('\n') {
        text.pop();
    }
    text
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

    fn resolve(&self, marked: &str) -> String {
        let mut text = String::with_capacity(marked.len());
        let mut sides = [String::new(), String::new(), String::new()];
        let mut now = Side::Both;
        for line in marked.split_inclusive('\n') {
            if let Some(side) = self.side(line) {
                if side == Side::Both {
                    let [ours, base, theirs] = std::mem::take(&mut sides);
                    text.push_str(&union(&base, &ours, &theirs));
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
        text
    }
}

/// Two concurrent edits of one CRDT text. Its clients are numbered, so that the same
/// three texts always have the same union.
fn union(base: &str, ours: &str, theirs: &str) -> String {
    let union = || -> Result<String, LoroError> {
        let start = LoroDoc::new();
        start.set_peer_id(1)?;
        start.get_text(TEXT).insert(0, base)?;
        start.commit();
        let whole = start.export(ExportMode::Snapshot).map_err(encode)?;
        let both = branch(&whole, 2, ours)?;
        let other = branch(&whole, 3, theirs)?;
        both.import(&other.export(ExportMode::all_updates()).map_err(encode)?)?;
        Ok(both.get_text(TEXT).to_string())
    };
    // Only a text that is no text could fail, and nothing may be lost then either.
    union().unwrap_or_else(|_| format!("{ours}{theirs}"))
}

fn branch(whole: &[u8], peer: u64, text: &str) -> Result<LoroDoc, LoroError> {
    let doc = LoroDoc::new();
    doc.set_peer_id(peer)?;
    doc.import(whole)?;
    let options = UpdateOptions {
        timeout_ms: Some(PATIENCE_MS),
        use_refined_diff: true,
    };
    let body = doc.get_text(TEXT);
    if body.update(text, options).is_err() {
        let by_lines = body.update_by_line(text, UpdateOptions::default());
        by_lines.map_err(|_| LoroError::internal("a difference by lines took too long"))?;
    }
    doc.commit();
    Ok(doc)
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
        assert_eq!(merge("a\nb\nc\n", "A\nb\nc\n", "a\nb\nC\n"), "A\nb\nC\n");
        assert_eq!(merge("a\n\nb", "a\n\nb", "x"), "x");
    }

    #[test]
    fn the_same_change_counts_once_also_beside_an_overlap() {
        let base = "one\n\ntwo\n\nthree\n";
        let ours = "one\nsame\n\ntwo left\n\nthree\n";
        let theirs = "one\nsame\n\ntwo right\n\nthree\n";
        let both = merge(base, ours, theirs);
        assert_eq!(both.matches("same").count(), 1, "{both}");
        assert!(both.contains("left") && both.contains("right"), "{both}");
    }

    #[test]
    fn changes_of_one_line_meet_letter_by_letter() {
        let both = merge("the cat sat\n", "the big cat sat\n", "the cat sat down\n");
        assert_eq!(both, "the big cat sat down\n");
        let keys = merge("a: 1\nb: 2\n", "a: 5\nb: 2\n", "a: 1\nb: 7\n");
        assert_eq!(keys, "a: 5\nb: 7\n");
    }

    #[test]
    fn text_that_looks_like_a_conflict_is_text() {
        let marks = "<<<<<<< ours\nx\n=======\ny\n>>>>>>> theirs\n";
        let ours = format!("{marks}left\n");
        let theirs = format!("{marks}right\n");
        let both = merge(marks, &ours, &theirs);
        assert!(both.starts_with(marks), "{both}");
        assert!(both.contains("left") && both.contains("right"), "{both}");
    }

    fn text() -> impl Strategy<Value = String> {
        "[abé🌊 \n]{0,40}"
    }

    proptest! {
        #[test]
        fn one_sided_changes_and_equal_changes_are_taken(base in text(), new in text()) {
            prop_assert_eq!(merge(&base, &new, &base), new.clone());
            prop_assert_eq!(merge(&base, &base, &new), new.clone());
            prop_assert_eq!(merge(&base, &new, &new), new);
        }

        #[test]
        fn what_both_add_is_all_there(base in text(), a in "[x]{1,5}", b in "[y]{1,5}", at in 0usize..40, to in 0usize..40) {
            let put = |text: &str, at: usize| {
                let at = base.char_indices().map(|(i, _)| i).nth(at).unwrap_or(base.len());
                format!("{}{text}{}", &base[..at], &base[at..])
            };
            let both = merge(&base, &put(&a, at), &put(&b, to));
            prop_assert_eq!(both.chars().filter(|c| *c == 'x').count(), a.len());
            prop_assert_eq!(both.chars().filter(|c| *c == 'y').count(), b.len());
            // Two lines in one place may bring an empty line less or more.
            let letters = |text: &str| text.chars().filter(|c| !"xy\n".contains(*c)).collect::<String>();
            prop_assert_eq!(letters(&both), letters(&base));
        }
    }
}
