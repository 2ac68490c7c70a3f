//! Page texts: made, changed, and read back by a reader much simpler than the real one.

use std::collections::BTreeSet;

/// One change to a text. Words and names are numbers, so that a step means the
/// same whatever came before it.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub kind: Kind,
    /// Which line, modulo how many there are.
    pub at: u32,
    /// Of a word that no other step writes.
    pub word: u32,
    pub link: Option<String>,
    /// Identity, where the kind sets one.
    pub id: Option<u32>,
    pub title: u32,
    pub person: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Append,
    Insert,
    Replace,
    Remove,
    /// All but the header.
    Rewrite,
    /// Another header, too.
    Anew,
    Empty,
    NotUtf8,
}

pub(crate) const IDS: u32 = 4;
pub(crate) const TITLES: u32 = 3;

pub(crate) fn word(n: u32) -> String {
    format!("tok{n:06}")
}

impl Change {
    /// The text after the change to `old`.
    pub fn apply(&self, old: &[u8]) -> Vec<u8> {
        let old = String::from_utf8_lossy(old);
        let (header, body) = split(&old);
        let mut lines: Vec<String> = body
            .lines()
            .filter(|l| !l.is_empty() && !l.contains(char::REPLACEMENT_CHARACTER))
            .map(str::to_owned)
            .collect();
        let at = self.at as usize % lines.len().max(1);
        match self.kind {
            Kind::Append => lines.push(self.line()),
            Kind::Insert => lines.insert(at, self.line()),
            Kind::Replace if !lines.is_empty() => lines[at] = self.line(),
            Kind::Remove if !lines.is_empty() => drop(lines.remove(at)),
            Kind::Replace | Kind::Remove => lines.push(self.line()),
            Kind::Rewrite => lines = self.whole(),
            Kind::Anew => return join(&self.header(), &self.whole()).into_bytes(),
            Kind::Empty => return Vec::new(),
            Kind::NotUtf8 => return [join("", &self.whole()).as_bytes(), b"\xff\xfe\n"].concat(),
        }
        join(header, &lines).into_bytes()
    }

    fn line(&self) -> String {
        match &self.link {
            Some(name) => format!("{} and [[{name}]]", word(self.word)),
            None => word(self.word),
        }
    }

    fn whole(&self) -> Vec<String> {
        vec![
            format!("# Title {}", self.title),
            self.line(),
            word(self.word + 1),
        ]
    }

    fn header(&self) -> String {
        let mut keys = String::new();
        if let Some(id) = self.id {
            keys += &format!("id: id{id}\n");
        }
        if self.person {
            keys += "skill: person\n";
        }
        if let Some(name) = self.link.as_ref().filter(|_| self.at.is_multiple_of(2)) {
            keys += &format!("up: \"[[{name}]]\"\n");
        }
        match keys.is_empty() {
            true => keys,
            false => format!("---\n{keys}---\n"),
        }
    }
}

fn join(header: &str, lines: &[String]) -> String {
    format!("{header}{}\n", lines.join("\n\n"))
}

fn split(text: &str) -> (&str, &str) {
    let end = text
        .strip_prefix("---\n")
        .and_then(|rest| rest.find("---\n"))
        .map_or(0, |at| at + 8);
    text.split_at(end)
}

/// What the model knows of a text.
#[derive(Clone, Debug)]
pub(crate) struct Read {
    pub id: Option<String>,
    pub skill: String,
    pub title: Option<String>,
    /// Relation and name.
    pub links: Vec<(Option<String>, String)>,
    pub words: BTreeSet<String>,
}

pub(crate) fn read(text: &str) -> Read {
    let (header, body) = split(text);
    let key = |name: &str| {
        header
            .lines()
            .find_map(|l| l.strip_prefix(name)?.strip_prefix(": "))
    };
    let mut links: Vec<_> = key("up")
        .into_iter()
        .flat_map(names_in)
        .map(|name| (Some("up".to_owned()), name))
        .collect();
    links.extend(names_in(body).map(|name| (None, name)));
    let words = body
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|w| w.starts_with("tok"));
    Read {
        id: key("id").map(str::to_owned),
        skill: key("skill").unwrap_or("note").to_owned(),
        title: body
            .lines()
            .find_map(|l| l.strip_prefix("# "))
            .map(str::to_owned),
        links,
        words: words.map(str::to_owned).collect(),
    }
}

fn names_in(text: &str) -> impl Iterator<Item = String> {
    text.split("[[")
        .skip(1)
        .filter_map(|rest| Some(rest.split_once("]]")?.0.to_owned()))
}

/// Are `got`'s lines those of both changes to `base`, and no others?
pub(crate) fn is_merge(base: &[u8], ours: &[u8], theirs: &[u8], got: &[u8]) -> bool {
    let (base, ours, theirs) = (lines(base), lines(ours), lines(theirs));
    let expected: BTreeSet<_> = ours
        .union(&theirs)
        .filter(|line| (ours.contains(*line) && theirs.contains(*line)) || !base.contains(*line))
        .cloned()
        .collect();
    lines(got) == expected
}

/// What `theirs` added to `base` is in `got`.
pub(crate) fn keeps(base: &[u8], theirs: &[u8], got: &[u8]) -> bool {
    let (base, got) = (lines(base), lines(got));
    lines(theirs)
        .iter()
        .all(|line| base.contains(line) || got.contains(line))
}

fn lines(text: &[u8]) -> BTreeSet<Vec<u8>> {
    text.split(|b| *b == b'\n')
        .filter(|l| !l.is_empty())
        .map(<[u8]>::to_vec)
        .collect()
}
