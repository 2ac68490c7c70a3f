//! Changing one place of a page's text and no byte beside it.

use std::ops::Range;

use super::{line_ending, splice};
use crate::page::Page;

/// The place that is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place<'a> {
    /// A heading by its text or anchor; what it opens, without the heading itself.
    Section(&'a str),
    /// A block or a part of one by its anchor.
    Block(&'a str),
    /// This text, which must stand there exactly once.
    Text(&'a str),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    Replace,
    Before,
    After,
}

/// Why a place cannot be changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Misplaced {
    /// How many there are: none or several.
    Times(usize),
}

/// The page's text with `new` at the place.
///
/// # Errors
/// [`Misplaced`] when the place is not there exactly once.
pub fn edit_passage(
    page: &Page,
    place: Place<'_>,
    how: How,
    new: &str,
) -> Result<String, Misplaced> {
    let text = &page.text;
    match place {
        Place::Text(wanted) => {
            let found = text.match_indices(wanted);
            let span = once(found.map(|(at, found)| at..at + found.len()))?;
            Ok(splice(text, &[(spot(how, &span, &span), new.to_owned())]))
        }
        Place::Section(name) => {
            let (heading, section) = once(sections(page, name))?;
            let under = heading.end..section.end;
            let whole = heading.start..section.end;
            Ok(paragraph(text, spot(how, &whole, &under), new))
        }
        Place::Block(anchor) => {
            let anchor = anchor.trim_start_matches('^');
            let blocks = page.blocks.iter().filter(|block| block.anchor == anchor);
            let parts = page
                .item_anchors
                .iter()
                .filter(|part| part.anchor == anchor);
            let spans = blocks
                .map(|block| &block.span)
                .chain(parts.map(|part| &part.span));
            let span = once(spans.cloned())?;
            let span = span.start..span.start + text[span.clone()].trim_end().len();
            if how == How::Replace && !new.is_empty() {
                let new = keeping_mark(&text[span.clone()], anchor, new);
                return Ok(splice(text, &[(span, new)]));
            }
            Ok(paragraph(text, spot(how, &span, &span), new))
        }
    }
}

/// What gives way to the new text: the inner part of a place, or nothing before or after the whole.
fn spot(how: How, whole: &Range<usize>, inner: &Range<usize>) -> Range<usize> {
    match how {
        How::Replace => inner.clone(),
        How::Before => whole.start..whole.start,
        How::After => whole.end..whole.end,
    }
}

fn once<T>(mut all: impl Iterator<Item = T>) -> Result<T, Misplaced> {
    match (all.next(), all.count()) {
        (Some(one), 0) => Ok(one),
        (Some(_), more) => Err(Misplaced::Times(more + 1)),
        (None, _) => Err(Misplaced::Times(0)),
    }
}

fn sections<'a>(
    page: &'a Page,
    name: &'a str,
) -> impl Iterator<Item = (Range<usize>, Range<usize>)> + 'a {
    let name = name.trim_start_matches('#').trim();
    let by_anchor = page.headings.iter().any(|heading| heading.anchor == name);
    let fits = move |anchor: &str, text: &str| {
        if by_anchor {
            anchor == name
        } else {
            text == name
        }
    };
    let headings = page.headings.iter();
    headings
        .filter(move |heading| fits(&heading.anchor, &heading.text))
        .map(|heading| (heading.span.clone(), heading.section.clone()))
}

/// Whoever replaces a block by its `^id` means the block, not its name.
fn keeping_mark(old: &str, anchor: &str, new: &str) -> String {
    let mark = format!("^{anchor}");
    let new = new.trim_end_matches(['\n', '\r']);
    if old.ends_with(&mark) && !new.contains(&mark) {
        return format!("{new} {mark}");
    }
    new.to_owned()
}

/// `new` in the place of `span`, with one empty line to what is around it.
fn paragraph(text: &str, span: Range<usize>, new: &str) -> String {
    let eol = line_ending(text).unwrap_or("\n");
    let ends = ['\n', '\r'];
    let head = text[..span.start].trim_end_matches(ends);
    let tail = text[span.end..].trim_start_matches(ends);
    let new = new.trim_matches(ends);
    let parts: Vec<&str> = [head, new, tail]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect();
    let mut joined = parts.join(&format!("{eol}{eol}"));
    // A file that ends in a line end keeps it.
    if !joined.ends_with(ends) && (text.ends_with(ends) || text.is_empty()) {
        joined.push_str(eol);
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::Layout;

    const PAGE: &str = "---\nid: a\n---\n# Title\n\nIntro.\n\n## Status\n\nOpen. ^state\n\nMore.\n\n## Notes\n\n- one ^first\n- two\n";

    fn edit(place: Place<'_>, how: How, new: &str) -> Result<String, Misplaced> {
        let page = crate::parse("a.md", PAGE.as_bytes(), Layout::Vault);
        edit_passage(&page, place, how, new)
    }

    #[test]
    fn a_section_is_replaced_and_added_to_without_its_heading() {
        let replaced = edit(Place::Section("Status"), How::Replace, "Closed.\n").unwrap();
        assert_eq!(replaced, PAGE.replace("Open. ^state\n\nMore.", "Closed."));
        assert_eq!(
            edit(Place::Section("status"), How::Replace, "Closed.").unwrap(),
            replaced
        );
        let added = edit(Place::Section("## Status"), How::After, "Last.").unwrap();
        assert_eq!(added, PAGE.replace("More.\n", "More.\n\nLast.\n"));
        let last = edit(Place::Section("Notes"), How::After, "End.").unwrap();
        assert_eq!(last, format!("{PAGE}\nEnd.\n"));
        let before = edit(Place::Section("Notes"), How::Before, "## New").unwrap();
        assert_eq!(before, PAGE.replace("## Notes", "## New\n\n## Notes"));
    }

    #[test]
    fn a_block_keeps_its_name() {
        let replaced = edit(Place::Block("^state"), How::Replace, "Closed.").unwrap();
        assert_eq!(replaced, PAGE.replace("Open.", "Closed."));
        let item = edit(Place::Block("first"), How::Replace, "- eins").unwrap();
        assert_eq!(item, PAGE.replace("- one", "- eins"));
        let gone = edit(Place::Block("state"), How::Replace, "").unwrap();
        assert_eq!(gone, PAGE.replace("Open. ^state\n\n", ""));
    }

    #[test]
    fn text_must_stand_there_once() {
        assert_eq!(
            edit(Place::Text("Open."), How::Replace, "Shut.").unwrap(),
            PAGE.replace("Open.", "Shut.")
        );
        assert_eq!(
            edit(Place::Text("zebra"), How::Replace, ""),
            Err(Misplaced::Times(0))
        );
        assert_eq!(
            edit(Place::Text("o"), How::Replace, ""),
            Err(Misplaced::Times(PAGE.matches('o').count()))
        );
        assert_eq!(
            edit(Place::Section("nowhere"), How::Replace, ""),
            Err(Misplaced::Times(0))
        );
    }
}
