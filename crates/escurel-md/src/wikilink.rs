//! `[[skill::id#anchor@version|alias]]`: one link, read and written.
//!
//! Refuses links without a target, across lines, or with brackets inside.
//! Invariant: parsing what was rendered from a parsed link gives it back.

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Wikilink {
    pub skill: Option<String>,
    pub id: Option<String>,
    pub anchor: Option<String>,
    /// As written: `3` or `v3`.
    pub version: Option<String>,
    pub alias: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct LinkError {
    /// Always `wikilink_malformed`.
    pub code: &'static str,
    pub message: String,
}

impl Wikilink {
    /// Parses `[[…]]` or the inside of it.
    pub fn parse(s: &str) -> Result<Wikilink, LinkError> {
        let s = s.trim();
        let inside = s
            .strip_prefix("[[")
            .and_then(|s| s.strip_suffix("]]"))
            .unwrap_or(s);
        planted(inside);
        if inside.contains(['[', ']']) {
            return Err(malformed("a wikilink cannot hold brackets"));
        }
        if inside.contains(['\n', '\r', '\0']) {
            return Err(malformed("a wikilink stays on one line"));
        }
        let (address, alias) = split_alias(inside);
        let (head, tail) = match address.split_once('#') {
            Some((head, tail)) => (head.trim(), Some(tail.trim())),
            None => (address, None),
        };
        let mut link = Wikilink {
            alias,
            ..Wikilink::default()
        };
        let head = match tail.filter(|t| !t.is_empty()) {
            Some(tail) => {
                let (anchor, version) = split_version(tail);
                link.anchor = part(anchor);
                link.version = version;
                head
            }
            None if tail.is_some() => head,
            None => {
                let (head, version) = split_version(head);
                link.version = version;
                head
            }
        };
        link.set_target(head)?;
        Ok(link)
    }

    fn set_target(&mut self, head: &str) -> Result<(), LinkError> {
        match head.split_once("::") {
            Some((skill, id)) => {
                self.skill = part(skill);
                self.id = part(id);
                if self.skill.is_none() {
                    return Err(malformed("a wikilink has a skill before `::`"));
                }
                // Written back, its colon would be taken for the separator's.
                if self
                    .skill
                    .as_deref()
                    .is_some_and(|skill| skill.ends_with(':'))
                {
                    return Err(malformed("a skill does not end with a colon"));
                }
            }
            None => self.id = part(head),
        }
        if self.skill.is_none() && self.id.is_none() && self.anchor.is_none() {
            return Err(malformed("a wikilink names a skill, an id or an anchor"));
        }
        Ok(())
    }

    /// The canonical `[[…]]`.
    pub fn render(&self) -> String {
        let mut out = String::from("[[");
        if let Some(skill) = &self.skill {
            out.push_str(skill);
            out.push_str("::");
        }
        for (mark, part) in [
            ("", &self.id),
            ("#", &self.anchor),
            ("@", &self.version),
            ("|", &self.alias),
        ] {
            if let Some(part) = part {
                out.push_str(mark);
                out.push_str(part);
            }
        }
        // What follows an empty `#` is no version, so that an id may end like one.
        if self.anchor.is_none() && self.version.is_none() && self.id_ends_like_version() {
            let at = self
                .alias
                .as_ref()
                .map_or(out.len(), |a| out.len() - a.len() - 1);
            out.insert(at, '#');
        }
        out.push_str("]]");
        out
    }

    fn id_ends_like_version(&self) -> bool {
        self.id
            .as_deref()
            .is_some_and(|id| split_version(id).1.is_some())
    }

    /// `3` or `v3` as a number.
    pub fn version_number(&self) -> Option<u64> {
        let version = self.version.as_deref()?;
        version.strip_prefix('v').unwrap_or(version).parse().ok()
    }
}

/// The first `|` begins the alias; in table cells it is written `\|`.
fn split_alias(inside: &str) -> (&str, Option<String>) {
    match inside.split_once('|') {
        Some((address, alias)) => (bare(address), some(alias)),
        None => (bare(inside), None),
    }
}

/// Without space around it, and without the backslash that escapes what follows.
fn bare(address: &str) -> &str {
    address
        .trim_end_matches(|c: char| c == '\\' || c.is_whitespace())
        .trim_start()
}

/// Only a final `@` with digits, and something before it, pins a version.
fn split_version(s: &str) -> (&str, Option<String>) {
    let Some((before, version)) = s.rsplit_once('@') else {
        return (s, None);
    };
    let digits = version.strip_prefix('v').unwrap_or(version);
    let pins = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    if pins && !before.trim().is_empty() {
        (before.trim_end(), Some(version.to_owned()))
    } else {
        (s, None)
    }
}

/// A part of the address; a backslash at its end only escapes what follows.
fn part(s: &str) -> Option<String> {
    some(bare(s))
}

fn some(s: &str) -> Option<String> {
    let s = s.trim();
    (!s.is_empty()).then(|| s.to_owned())
}

fn malformed(why: &str) -> LinkError {
    LinkError {
        code: "wikilink_malformed",
        message: format!("{why}; the form is [[skill::id#anchor@version|alias]]"),
    }
}

#[cfg(feature = "planted-panic")]
fn planted(inside: &str) {
    crate::planted::check(inside, *b"wl!");
}

#[cfg(not(feature = "planted-panic"))]
fn planted(_: &str) {}
