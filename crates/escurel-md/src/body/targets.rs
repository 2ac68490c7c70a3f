//! Targets of markdown links: which are links between files.

use crate::page::LinkKind;
use crate::path::percent_decode;
use crate::wikilink::Wikilink;

/// A target inside the folder; none for URLs and other schemes.
pub(super) fn relative(target: &str) -> Option<(LinkKind, Wikilink)> {
    let target = target.trim();
    if target.is_empty() || has_scheme(target) || target.starts_with("//") {
        return None;
    }
    let (path, fragment) = match target.split_once('#') {
        Some((path, fragment)) => (path, Some(fragment)),
        None => (target, None),
    };
    let path = path.split('?').next().unwrap_or(path);
    let part = |s: &str| Some(decoded(s)).filter(|s| !s.is_empty());
    let link = Wikilink {
        id: part(path),
        anchor: fragment.and_then(part),
        ..Wikilink::default()
    };
    if link.id.is_none() && link.anchor.is_none() {
        return None;
    }
    let asset = link.id.as_deref().is_some_and(is_asset);
    Some((
        if asset {
            LinkKind::Asset
        } else {
            LinkKind::Markdown
        },
        link,
    ))
}

/// A file extension other than markdown's: it begins with a letter or is
/// digits and letters (`7z`), and is short.
pub(super) fn is_asset(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let Some((stem, extension)) = name.rsplit_once('.') else {
        return false;
    };
    let extension_like = (1..=5).contains(&extension.len())
        && extension.bytes().all(|b| b.is_ascii_alphanumeric())
        && extension.bytes().any(|b| b.is_ascii_alphabetic());
    !stem.is_empty() && extension_like && !is_markdown(extension)
}

fn is_markdown(extension: &str) -> bool {
    extension.eq_ignore_ascii_case("md")
        || extension.eq_ignore_ascii_case("mdx")
        || extension.eq_ignore_ascii_case("mkd")
}

fn has_scheme(target: &str) -> bool {
    let Some((scheme, _)) = target.split_once(':') else {
        return false;
    };
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'.' | b'-'))
}

fn decoded(s: &str) -> String {
    if !s.contains('%') {
        return s.to_owned();
    }
    String::from_utf8(percent_decode(s)).unwrap_or_else(|_| s.to_owned())
}
