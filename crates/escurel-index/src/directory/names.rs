//! How paths and names are cut, folded and turned into keys.

use escurel_md::{LinkKind, name_key};
use smallvec::SmallVec;

use super::sharded::hash;
use crate::{Facts, LinkFact};

pub(crate) type Keys = SmallVec<[u64; 6]>;

/// File name without `.md` or `.markdown`.
pub fn stem(path: &str) -> &str {
    strip_md(last_segment(path))
}

pub(crate) fn last_segment(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Without `.md` or `.markdown`.
pub fn strip_md(name: &str) -> &str {
    strip(name, ".md")
        .or_else(|| strip(name, LONG))
        .unwrap_or(name)
}

/// The longer of the two extensions that pages have.
const LONG: &str = ".markdown";

pub(crate) fn is_long(name: &str) -> bool {
    strip(name, LONG).is_some()
}

fn strip<'n>(name: &'n str, extension: &str) -> Option<&'n str> {
    let at = name.len().checked_sub(extension.len())?;
    let (plain, end) = name.split_at_checked(at)?;
    end.eq_ignore_ascii_case(extension).then_some(plain)
}

/// The folder of a path, without its slash; the root is "".
pub fn folder(path: &str) -> &str {
    path.rfind('/').map_or("", |at| &path[..at])
}

/// `relative` seen from `folder`, `.` and `..` worked out. None: it leaves the
/// root or names no file.
pub fn join(folder: &str, relative: &str) -> Option<String> {
    let (start, rest) = match relative.strip_prefix('/') {
        Some(rest) => ("", rest),
        None => (folder, relative),
    };
    let mut parts: Vec<&str> = start.split('/').filter(|p| !p.is_empty()).collect();
    for part in rest.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    let named = !matches!(last_segment(rest), "" | "." | "..");
    named.then(|| parts.join("/"))
}

/// Name key with spaces, underscores and dashes alike. The bucket in which all
/// spellings of a name meet; which of them are equal is decided by comparing.
pub(crate) fn loose(name: &str) -> String {
    let mut key = name_key(name);
    if key.contains([' ', '_']) {
        key = key.replace([' ', '_'], "-");
    }
    key
}

pub(crate) fn loose_hash(name: &str) -> u64 {
    // Most names are short ASCII: folded on the stack, as `loose` would.
    let mut folded = [0; 64];
    let Some(folded) = folded.get_mut(..name.len()).filter(|_| name.is_ascii()) else {
        return hash(&loose(name));
    };
    for (to, from) in folded.iter_mut().zip(name.bytes()) {
        *to = match from {
            b' ' | b'_' => b'-',
            other => other.to_ascii_lowercase(),
        };
    }
    rapidhash::v3::rapidhash_v3(folded)
}

fn distinct(mut keys: Keys) -> Keys {
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// Keys of everything that a page can be called by.
pub(crate) fn page_keys(facts: &Facts, path: &str) -> Keys {
    let names = [&*facts.id, stem(path), &*facts.title];
    distinct(
        names
            .into_iter()
            .chain(facts.aliases.iter())
            .map(loose_hash)
            .collect(),
    )
}

/// Keys of everything that a link mentions. A page that the link can resolve
/// to shares at least one of them.
pub(crate) fn link_keys(link: &LinkFact) -> Keys {
    let mut keys = Keys::new();
    match (link.kind, link.id(), link.skill()) {
        (LinkKind::Asset, ..) | (_, None, None) => {}
        (_, None, Some(skill)) => keys.push(loose_hash(skill)),
        (LinkKind::Markdown, Some(path), _) => keys.push(loose_hash(stem(path))),
        (_, Some(id), _) => {
            let plain = strip_md(id);
            keys.push(loose_hash(id));
            if plain.len() != id.len() {
                keys.push(loose_hash(plain));
            }
            if id.contains('/') {
                keys.push(loose_hash(stem(id)));
            }
        }
    }
    distinct(keys)
}

pub(crate) fn mention_keys(facts: &Facts) -> Keys {
    distinct(facts.links.iter().flat_map(link_keys).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_joined_within_the_root() {
        let check = |folder, relative, expect: Option<&str>| {
            assert_eq!(
                join(folder, relative).as_deref(),
                expect,
                "{folder} + {relative}"
            );
        };
        check("a/b", "c.md", Some("a/b/c.md"));
        check("a/b", "../c.md", Some("a/c.md"));
        check("a/b", "../../c", Some("c"));
        check("a/b", "../../../c", None);
        check("a", "/x/./y", Some("x/y"));
        check("a", "b/", None);
        check("a", "..", None);
        check("", "./b//c", Some("b/c"));
    }

    #[test]
    fn short_names_hash_as_long_ones() {
        let long = "A long_name ".repeat(6);
        for name in [
            "",
            "A b_C-d",
            "Ünïcode Name",
            &long[..64],
            &long[..65],
            &long,
        ] {
            assert_eq!(loose_hash(name), hash(&loose(name)), "{name}");
        }
    }

    #[test]
    fn stems() {
        for (path, expect) in [
            ("a/b.md", "b"),
            ("B.MD", "B"),
            ("x/.md", ""),
            ("a/m.markdown", "m"),
            ("markdown", "markdown"),
            ("é", "é"),
            ("a.txt", "a.txt"),
        ] {
            assert_eq!(stem(path), expect);
        }
    }
}
