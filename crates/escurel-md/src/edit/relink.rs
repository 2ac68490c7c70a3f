//! Giving links another target and touching no byte beside it.

use std::ops::Range;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::splice;
use crate::page::{Layout, Link, Page};
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

/// And within `<…>`.
const IN_BRACKETS: AsciiSet = percent_encoding::CONTROLS
    .add(b'#')
    .add(b'?')
    .add(b'%')
    .add(b'<')
    .add(b'>');

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
///
/// What it makes is read again: a change that would make anything but its own link read otherwise
/// is not made. `page` was parsed from `path` in `layout`.
pub fn relink(
    page: &Page,
    path: &str,
    layout: Layout,
    target: impl Fn(&Link) -> Option<String>,
) -> Relinked {
    let wanted: Vec<Option<String>> = page.links.iter().map(target).collect();
    let proof = Proof {
        page,
        path,
        layout,
        wanted: &wanted,
    };
    let ways: Vec<(usize, Vec<Edit>)> = wanted
        .iter()
        .enumerate()
        .filter_map(|(n, target)| Some((n, ways(page, &page.links[n], target.as_deref()?))))
        .collect();
    let first: Option<Vec<(usize, Edit)>> = ways
        .iter()
        .map(|(n, ways)| Some((*n, ways.first()?.clone())))
        .collect();
    let chosen = first
        .filter(|all| all.is_empty() || proof.holds(all))
        .unwrap_or_else(|| proof.one_by_one(&ways));
    let left = ways
        .iter()
        .filter(|(n, _)| !chosen.iter().any(|(m, _)| m == n));
    Relinked {
        left: left.map(|(n, _)| page.links[*n].line).collect(),
        changed: chosen.len(),
        text: proof.text(&chosen),
    }
}

type Edit = (Range<usize>, String);

/// Whether a changed page reads as it is meant to.
struct Proof<'a> {
    page: &'a Page,
    path: &'a str,
    layout: Layout,
    /// Per link, its new target.
    wanted: &'a [Option<String>],
}

impl Proof<'_> {
    fn text(&self, chosen: &[(usize, Edit)]) -> String {
        let mut edits: Vec<Edit> = chosen.iter().map(|(_, edit)| edit.clone()).collect();
        edits.sort_by(|a, b| (a.0.start, &a.1).cmp(&(b.0.start, &b.1)));
        // One definition may serve several links.
        edits.dedup();
        splice(&self.page.text, &edits)
    }

    fn holds(&self, chosen: &[(usize, Edit)]) -> bool {
        let text = self.text(chosen);
        let new = crate::parse(self.path, text.as_bytes(), self.layout);
        let (old, links) = (&self.page.links, &new.links);
        let same_header = self.page.frontmatter.keys().eq(new.frontmatter.keys());
        same_header
            && old.len() == links.len()
            && old.iter().zip(links).enumerate().all(|(n, (old, new))| {
                let edited = chosen.iter().any(|(m, _)| *m == n);
                let as_wanted = self.wanted[n]
                    .as_deref()
                    .is_some_and(|t| leads(old, new, t));
                old.kind == new.kind
                    && old.relation == new.relation
                    && (as_wanted || !edited && old.target == new.target)
            })
    }

    /// What holds alone, if it holds together.
    fn one_by_one(&self, ways: &[(usize, Vec<Edit>)]) -> Vec<(usize, Edit)> {
        let alone = |n: usize, edit: &Edit| self.holds(&[(n, edit.clone())]);
        let chosen: Vec<(usize, Edit)> = ways
            .iter()
            .filter_map(|(n, ways)| Some((*n, ways.iter().find(|way| alone(*n, way))?.clone())))
            .collect();
        if self.holds(&chosen) {
            chosen
        } else {
            Vec::new()
        }
    }
}

/// Whether the new link is the old one with the target.
fn leads(old: &Link, new: &Link, target: &str) -> bool {
    let meant = if is_wiki(&old.raw) {
        Wikilink::parse(target).ok()
    } else {
        Some(Wikilink {
            id: Some(target.to_owned()),
            ..Wikilink::default()
        })
    };
    meant.is_some_and(|meant| {
        new.target
            == Wikilink {
                skill: meant.skill,
                id: meant.id,
                ..old.target.clone()
            }
    })
}

fn is_wiki(raw: &str) -> bool {
    raw.trim_start_matches('!').starts_with("[[")
}

/// How the target may be written, the likeliest way first.
fn ways(page: &Page, link: &Link, target: &str) -> Vec<Edit> {
    if target.is_empty() {
        return Vec::new();
    }
    if !is_wiki(&link.raw) {
        let places = destinations(page, link).into_iter();
        return places
            .filter_map(|span| path_edit(page, span, target))
            .collect();
    }
    let Some(span) = address(&link.raw) else {
        return Vec::new();
    };
    let span = link.span.start + span.start..link.span.start + span.end;
    let mut written = vec![target.to_owned()];
    if link.relation.is_some() {
        // As it is written depends on the quotes around it.
        written.push(target.replace('\'', "''"));
        written.push(target.replace('\\', "\\\\").replace('"', "\\\""));
    }
    written.dedup();
    written
        .into_iter()
        .map(|text| (span.clone(), text))
        .collect()
}

fn path_edit(page: &Page, span: Range<usize>, target: &str) -> Option<Edit> {
    let written = page.text.get(span.clone())?;
    let path_end = written.find(['#', '?']).unwrap_or(written.len());
    let in_brackets = page.text[..span.start].ends_with('<');
    let set = if in_brackets { &IN_BRACKETS } else { &IN_PATH };
    let path = utf8_percent_encode(target, set).to_string();
    Some((span.start..span.start + path_end, path))
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

/// Where the destination of `[text](destination "title")` may be, or that of the definition which
/// the link refers to.
fn destinations(page: &Page, link: &Link) -> Vec<Range<usize>> {
    let text = &page.text;
    if link.raw.ends_with(')') {
        let begins = link
            .raw
            .match_indices("](")
            .map(|(at, _)| link.span.start + at + 2);
        return begins
            .filter_map(|from| bare(text, from, link.span.end - 1))
            .collect();
    }
    let body = page.body_text();
    let parser = pulldown_cmark::Parser::new(body);
    let definition = parser.reference_definitions().get(label(&link.raw));
    let place = definition.and_then(|definition| {
        let span = &definition.span;
        let colon = span.start + body.get(span.clone())?.find("]:")? + 2;
        bare(text, page.body.start + colon, page.body.start + span.end)
    });
    place.into_iter().collect()
}

/// Of `[text][label]`, `[label][]` and `[label]`.
fn label(raw: &str) -> &str {
    let raw = raw.trim_start_matches('!');
    let inner = raw.strip_suffix("[]").unwrap_or(raw);
    let inner = inner.strip_suffix(']').unwrap_or(inner);
    let begin = inner.rfind("][").map_or(1, |at| at + 2);
    inner.get(begin..).unwrap_or_default()
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
    use crate::page::LinkKind;

    fn to(text: &str, wiki: &str, path: &str) -> Relinked {
        let page = crate::parse("notes/a.md", text.as_bytes(), Layout::Vault);
        relink(&page, "notes/a.md", Layout::Vault, |link| {
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
    fn a_name_with_marks_keeps_what_is_around_it_readable() {
        for (text, target, expected) in [
            (
                "---\no: '[[old]]'\n---\n[[old]]\n",
                "Bob's",
                Some("---\no: '[[Bob''s]]'\n---\n[[Bob's]]\n"),
            ),
            (
                "---\no: \"[[old]]\"\n---\n",
                "a \"b\"",
                Some("---\no: \"[[a \\\"b\\\"]]\"\n---\n"),
            ),
            (
                "[x](<old.md#h>)\n",
                "C# 50%25.md",
                Some("[x](<C%23 50%2525.md#h>)\n"),
            ),
            ("---\no: [[old]]\n---\n", "Bob: a, b", None),
        ] {
            let done = to(text, target, target);
            let whole = expected.is_some();
            assert_eq!(done.text, expected.unwrap_or(text), "{text}");
            assert_eq!(done.left.is_empty(), whole, "{text}");
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
