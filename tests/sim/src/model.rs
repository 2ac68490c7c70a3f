//! What must be true: the files, what was acknowledged, what was seen when.

use std::collections::{BTreeMap, BTreeSet};

pub(crate) type Files = BTreeMap<String, Vec<u8>>;

#[derive(Default)]
pub(crate) struct Model {
    pub files: Files,
    /// Other states that a file may be in after a fault; `None`: absent.
    pub maybe: BTreeMap<String, Vec<Option<Vec<u8>>>>,
    /// Every text that a path has had.
    pub past: BTreeMap<String, Vec<Vec<u8>>>,
    /// Files that we made and that were not marked as durable since.
    pub fresh: BTreeSet<String>,
    pub acknowledged: Vec<Acknowledged>,
    pub moments: Vec<Moment>,
    /// Uids of pages whose deletion is held.
    pub held: BTreeSet<String>,
}

/// A write that the caller was told of.
pub(crate) struct Acknowledged {
    pub path: String,
    pub version: u64,
    pub text: Vec<u8>,
}

/// All pages at a time when everything was settled.
pub(crate) struct Moment {
    pub at: i64,
    pub pages: Vec<Seen>,
}

pub(crate) struct Seen {
    pub uid: String,
    pub path: String,
    pub version: u64,
    pub text: String,
    pub skill: String,
}

impl Model {
    pub fn text(&self, path: &str) -> Option<&Vec<u8>> {
        self.files.get(path)
    }

    /// A program other than ours changed the file.
    pub fn outside(&mut self, path: &str, now: Option<Vec<u8>>) {
        let recorded = self.past.get(path).into_iter().flatten();
        if let (Some(text), Some(before)) = (&now, self.files.get(path))
            && recorded.clone().any(|old| old == text)
        {
            // A file as it was before our newest write looks like one that a crash left behind.
            self.may_be(path, Some(before.clone()));
        }
        if now.is_none() && self.fresh.contains(path) {
            // So does an absent one that we made a moment ago; which of its
            // texts is known depends on what was looked at.
            let past = self.past.get(path).cloned().unwrap_or_default();
            past.into_iter()
                .for_each(|text| self.may_be(path, Some(text)));
        }
        if now.as_ref().is_some_and(Vec::is_empty) {
            // And an empty one looks like one whose bytes a power loss took.
            let before = self.files.get(path).cloned();
            self.may_be(path, before);
        }
        if now.as_ref().is_some_and(|now| self.is_fresh(now)) {
            self.fresh.insert(path.to_owned());
        }
        self.set(path, now);
    }

    /// Perhaps moved by another program since we made it.
    fn is_fresh(&self, text: &[u8]) -> bool {
        let past = |path: &String| self.past.get(path).into_iter().flatten();
        self.fresh
            .iter()
            .any(|path| past(path).any(|old| old == text))
    }

    pub fn set(&mut self, path: &str, now: Option<Vec<u8>>) {
        match now {
            Some(text) => {
                self.past
                    .entry(path.to_owned())
                    .or_default()
                    .push(text.clone());
                self.files.insert(path.to_owned(), text);
            }
            None => drop(self.files.remove(path)),
        }
    }

    pub fn may_be(&mut self, path: &str, text: Option<Vec<u8>>) {
        self.maybe.entry(path.to_owned()).or_default().push(text);
    }

    /// Takes up how files came out of a fault, if every one is as it may be.
    pub fn accept(&mut self, found: Files) -> Result<(), String> {
        let paths: BTreeSet<&String> = self.files.keys().chain(found.keys()).collect();
        for path in paths {
            let (expected, got) = (self.files.get(path), found.get(path));
            let maybe = self.maybe.get(path).into_iter().flatten();
            if expected != got && !maybe.clone().any(|other| other.as_ref() == got) {
                return Err(format!(
                    "{path} holds {}, expected {}{}",
                    shown(got),
                    shown(expected),
                    maybe
                        .map(|m| format!(" or {}", shown(m.as_ref())))
                        .collect::<String>(),
                ));
            }
        }
        for (path, text) in &found {
            if self.files.get(path) != Some(text) {
                self.past
                    .entry(path.clone())
                    .or_default()
                    .push(text.clone());
            }
        }
        self.files = found;
        Ok(())
    }
}

pub(crate) fn shown(text: Option<&Vec<u8>>) -> String {
    match text {
        Some(text) => format!("{:?}", String::from_utf8_lossy(text)),
        None => "nothing".to_owned(),
    }
}
