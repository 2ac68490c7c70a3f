//! Giving links another target and touching no byte beside it.

use std::ops::Range;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::splice;
use crate::page::{Link, Page};
use crate::wikilink::Wikilink;

/// What stays as it is in the path of a markdown link.
const IN_PATH: AsciiSet = NON_ALPHANUMERIC
    .remove(b'/')
    .remove(b'.')
    .remove(b'-')
    .remove(b'_')
    .remove(b'~')
    .remove(b'+')
    .remove(b',')
    .remove(b'@')
    .remove(b'=');

/// A page's text with other targets, and the links that could not be changed.
#[derive(Debug, PartialEq, Eq)]
pub struct Relinked {
    pub text: String,
    pub changed: usize,
    /// Lines of the links that stayed as they were.
    pub left: Vec<u32>,
}

/// Gives each link for which `target` has an answer that target: `skill::id` or a name in double
/// brackets, a relative path in a markdown link. Anchor, version, alias and title stay.
pub fn relink(page: &Page, target: impl Fn(&Link) -> Option<String>) -> Relinked {
    let (mut edits, mut changed, mut left) = (Vec::new(), 0, Vec::new());
    for link in &page.links {
        let Some(target) = target(link) else { continue };
        match edit(page, link, &target) {
            Some(edit) => {
                changed += 1;
                // One definition may serve several links.
                if !edits.contains(&edit) {
                    edits.push(edit);
                }
            }
            None => left.push(link.line),
        }
    }
    edits.sort_by_key(|(span, _)| span.start);
    Relinked {
        text: splice(&page.text, &edits),
        changed,
        left,
    }
}

type Edit = (Range<usize>, String);

fn edit(page: &Page, link: &Link, target: &str) -> Option<Edit> {
    if target.is_empty() {
        return None;
    }
    if link.raw.trim_start_matches('!').starts_with("[[") {
        let span = address(&link.raw)?;
        let raw = splice(&link.raw, &[(span.clone(), target.to_owned())]);
        same_but_for_target(&link.target, &raw, target).then(|| {
            let at = link.span.start;
            (at + span.start..at + span.end, target.to_owned())
        })
    } else {
        let span = destination(page, link)?;
        let written = page.text.get(span.clone())?;
        let bare = page.text[..span.start].ends_with('<');
        let path_end = written.find(['#', '?']).unwrap_or(written.len());
        let path = if bare {
            target.to_owned()
        } else {
            utf8_percent_encode(target, &IN_PATH).to_string()
        };
        (!bare || !target.contains(['<', '>', '\n']))
            .then(|| (span.start..span.start + path_end, path))
    }
}

/// Skill and id in `[[…]]`, without the spaces around them.
fn address(raw: &str) -> Option<Range<usize>> {
    let open = raw.find("[[")? + 2;
    let inside = raw.get(open..raw.len() - 2)?;
    let written = inside.split('|').next().unwrap_or_default();
    // In a table cell the bar is escaped.
    let written = written.strip_suffix('\\').unwrap_or(written);
    let parsed = Wikilink::parse(inside).ok()?;
    let end = match (written.find('#'), &parsed.version) {
        (Some(hash), _) => hash,
        (None, Some(_)) => written.rfind('@')?,
        (None, None) => written.len(),
    };
    let name = &written[..end];
    let start = open + name.len() - name.trim_start().len();
    Some(start..start + name.trim().len())
}

fn same_but_for_target(old: &Wikilink, raw: &str, target: &str) -> bool {
    let new = Wikilink::parse(raw.trim_start_matches('!'));
    let wanted = Wikilink::parse(target);
    let (Ok(new), Ok(wanted)) = (new, wanted) else {
        return false;
    };
    new == Wikilink {
        skill: wanted.skill,
        id: wanted.id,
        ..old.clone()
    }
}

/// The destination in `[text](destination "title")`, or that of the definition it refers to.
fn destination(page: &Page, link: &Link) -> Option<Range<usize>> {
    let text = &page.text;
    if link.raw.ends_with(')')
        && let Some(at) = link.raw.rfind("](")
    {
        let from = link.span.start + at + 2;
        return bare(text, from, link.span.end - 1);
    }
    let path = link.target.id.as_deref()?;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let start = at;
        at += line.len();
        let is_definition = line.trim_start().starts_with('[');
        if let Some(colon) = line.find("]:").filter(|_| is_definition)
            && let Some(span) = bare(text, start + colon + 2, start + line.trim_end().len())
        {
            let written = text.get(span.clone())?;
            let written = written.split(['#', '?']).next().unwrap_or_default();
            let decoded = percent_encoding::percent_decode_str(written).decode_utf8_lossy();
            if decoded == path {
                return Some(span);
            }
        }
    }
    None
}

/// A destination between `from` and `end`, without spaces, `<`, `>` and title.
fn bare(text: &str, from: usize, end: usize) -> Option<Range<usize>> {
    let rest = text.get(from..end)?;
    let start = from + rest.len() - rest.trim_start().len();
    let rest = text.get(start..end)?;
    if let Some(inner) = rest.strip_prefix('<') {
        return Some(start + 1..start + 1 + inner.find('>')?);
    }
    let length = rest.find(char::is_whitespace).unwrap_or(rest.len());
    Some(start..start + length)
}

/// `to` as a link in the folder `from` writes it: both from the root, with `/`.
pub fn relative_path(from: &str, to: &str) -> String {
    let from: Vec<&str> = from.split('/').filter(|part| !part.is_empty()).collect();
    let to: Vec<&str> = to.split('/').collect();
    let folders = to.len() - 1;
    let same = from
        .iter()
        .zip(&to[..folders])
        .take_while(|(a, b)| a == b)
        .count();
    let up = std::iter::repeat_n("..", from.len() - same);
    up.chain(to[same..].iter().copied())
        .collect::<Vec<_>>()
        .join("/")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::{Layout, LinkKind};

    fn to(text: &str, wiki: &str, path: &str) -> Relinked {
        let page = crate::parse("notes/a.md", text.as_bytes(), Layout::Vault);
        relink(&page, |link| {
            let wiki_link = matches!(link.kind, LinkKind::Wikilink | LinkKind::Embed);
            let target = if wiki_link { wiki } else { path };
            Some(target.to_owned())
        })
    }

    #[test]
    fn only_the_target_changes() {
        for (text, expected) in [
            ("[[old]]", "[[person::new]]"),
            ("![[old]]", "![[person::new]]"),
            ("[[ person::old ]]", "[[ person::new ]]"),
            ("[[old#A heading]]", "[[person::new#A heading]]"),
            ("[[old#^b1@v3|An alias]]", "[[person::new#^b1@v3|An alias]]"),
            ("[[old@3|x]]", "[[person::new@3|x]]"),
            (
                "| a | b |\n|---|---|\n| [[old\\|An alias]] | c |",
                "| a | b |\n|---|---|\n| [[person::new\\|An alias]] | c |",
            ),
            (
                "---\nowner: \"[[old]]\"\nall: [\"[[old|O]]\"] # kept\n---\n",
                "---\nowner: \"[[person::new]]\"\nall: [\"[[person::new|O]]\"] # kept\n---\n",
            ),
        ] {
            let done = to(text, "person::new", "x.md");
            assert_eq!(
                (done.text.as_str(), done.left.len()),
                (expected, 0),
                "{text}"
            );
        }
    }

    #[test]
    fn markdown_links_keep_their_form() {
        for (text, expected) in [
            ("[t](old.md)", "[t](../my%20new.md)"),
            (
                "[t](<old one.md#here> \"T\")",
                "[t](<../my new.md#here> \"T\")",
            ),
            ("![t](old.md#a-b 'T')", "![t](../my%20new.md#a-b 'T')"),
            (
                "See [t][r] and [r].\n\n[r]: old.md#x \"T\"\n",
                "See [t][r] and [r].\n\n[r]: ../my%20new.md#x \"T\"\n",
            ),
        ] {
            let done = to(text, "x", "../my new.md");
            assert_eq!(
                (done.text.as_str(), done.left.len()),
                (expected, 0),
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_no_link_stays() {
        let text = "`[[old]]`\n\n```\n[[old]]\n```\n\n\\[[old]] <!-- [[old]] -->\n";
        let done = to(text, "new", "new.md");
        assert_eq!((done.text.as_str(), done.changed), (text, 0));
    }

    #[test]
    fn a_name_that_would_read_otherwise_is_left() {
        let done = to("[[old]]", "new@3", "x.md");
        assert_eq!(
            (done.text.as_str(), done.left.as_slice()),
            ("[[old]]", &[1][..])
        );
    }

    #[test]
    fn paths_are_relative_to_a_folder() {
        for (from, to, expected) in [
            ("", "a.md", "a.md"),
            ("notes", "notes/a.md", "a.md"),
            ("notes/x", "notes/a.md", "../a.md"),
            ("notes", "people/a.md", "../people/a.md"),
            ("", "people/a.md", "people/a.md"),
        ] {
            assert_eq!(relative_path(from, to), expected, "{from} {to}");
        }
    }
}
