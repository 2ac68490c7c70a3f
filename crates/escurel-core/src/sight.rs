//! What one caller can see: the only way from a page to a reader.

use std::sync::Arc;

use escurel_access::{Caller, PageFacts, Policy, Verb};
use escurel_index::{Bitmap, Directory, Entry, Facts, Resolution};

use crate::view::{MaskKey, View};
use crate::{Code, Refusal, Result};

pub(crate) struct Sight<'a> {
    policy: &'a dyn Policy,
    caller: &'a Caller,
    all: bool,
    /// For a look back: who may see a page that there still is, is decided as it stands.
    now: Option<Arc<View>>,
}

impl<'a> Sight<'a> {
    pub fn of(policy: &'a dyn Policy, caller: &'a Caller) -> Sight<'a> {
        Sight {
            policy,
            caller,
            all: policy.reads_everything(caller),
            now: None,
        }
    }

    /// These eyes on an earlier state.
    pub fn looking_back(self, now: Arc<View>) -> Sight<'a> {
        Sight {
            now: Some(now),
            ..self
        }
    }

    pub fn sees(&self, entry: &Entry) -> bool {
        let standing = self.now.as_ref().and_then(|now| now.dir.by_uid(entry.uid));
        let entry = standing.map_or(entry, |standing| &**standing);
        self.all
            || may(
                self.policy,
                self.caller,
                Verb::Read,
                &entry.path,
                &entry.facts,
            )
    }

    /// The pages this caller may not see, for walks that run inside the database.
    pub fn hidden(&self, dir: &Directory) -> Bitmap {
        let mut hidden = Bitmap::default();
        if !self.all {
            dir.iter()
                .filter(|entry| !self.sees(entry))
                .for_each(|entry| hidden.insert(entry.no));
        }
        hidden
    }

    /// `None`: every page.
    pub fn mask(&self, view: &View) -> Option<Arc<Bitmap>> {
        if self.all {
            return None;
        }
        let key = MaskKey::Visible(Box::new(self.caller.clone()), self.policy.revision());
        Some(view.mask(key, || {
            view.dir
                .iter()
                .filter(|e| self.sees(e))
                .map(|e| e.no)
                .collect()
        }))
    }
}

/// Asks the policy about one page as it stands.
pub(crate) fn may(
    policy: &dyn Policy,
    caller: &Caller,
    verb: Verb,
    path: &str,
    facts: &Facts,
) -> bool {
    let frontmatter = || facts.frontmatter_map();
    let page = PageFacts {
        path,
        page_type: facts.page_type,
        skill: &facts.skill,
        id: &facts.id,
        frontmatter: &frontmatter,
    };
    policy.may(caller, verb, &page)
}

/// Exactly one page, or why not.
pub(crate) fn one(name: &str, resolution: Resolution) -> Result<Option<Arc<Entry>>> {
    match resolution {
        Resolution::Found(entry) => Ok(Some(entry)),
        Resolution::Missing => Ok(None),
        Resolution::Ambiguous(entries) => Err(Refusal::new(
            Code::Ambiguous,
            format!("`{name}` fits {} pages.", entries.len()),
        )
        .candidates(entries.iter().take(10).map(|e| e.path.to_string()))),
    }
}
