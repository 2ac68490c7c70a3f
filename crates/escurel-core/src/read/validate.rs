//! Findings of a draft against what exists.

use std::sync::Arc;

use escurel_access::Caller;
use escurel_index::{Entry, Resolution};
use escurel_md::{Issue, Link, SkillSchema, Target, World};

use super::Reading;
use crate::Result;
use crate::kb::Core;

struct SeenWorld<'a> {
    core: &'a Core,
    reading: &'a Reading<'a>,
    /// The page that the draft would replace.
    draft_of: Option<Arc<Entry>>,
}

impl World for SeenWorld<'_> {
    fn skill(&self, id: &str) -> Option<Arc<SkillSchema>> {
        self.reading
            .scoped(|scope| self.reading.view.dir.schema(id, scope))
    }

    fn target(&self, _from_path: &str, link: &Link) -> Target {
        let dir = &self.reading.view.dir;
        let from = self.draft_of.as_deref();
        match self
            .reading
            .scoped(|scope| dir.resolve(&link.target, link.kind, from, scope))
        {
            Resolution::Missing => Target::Missing,
            Resolution::Ambiguous(entries) => {
                Target::Ambiguous(entries.iter().map(typed).collect())
            }
            Resolution::Found(entry) => self.found(link, &entry),
        }
    }
}

impl SeenWorld<'_> {
    fn found(&self, link: &Link, entry: &Entry) -> Target {
        Target::Found {
            anchors_ok: link
                .target
                .anchor
                .as_deref()
                .is_none_or(|anchor| self.core.has_anchor(entry, anchor)),
            version_known: link
                .target
                .version_number()
                .map(|n| (1..=entry.version).contains(&n)),
        }
    }
}

fn typed(entry: &Arc<Entry>) -> String {
    format!("[[{}::{}]]", entry.facts.skill, entry.facts.id)
}

impl Core {
    /// Every finding of `content`, as if it were saved as `as_page_id`.
    ///
    /// # Errors
    /// `page_id_invalid`, `ambiguous`.
    pub fn validate(
        &self,
        caller: &Caller,
        content: &str,
        as_page_id: Option<&str>,
    ) -> Result<Vec<Issue>> {
        let reading = self.reading(caller, None);
        let draft_of = as_page_id
            .map(|id| reading.find(id).map_err(|r| r.at("as_page_id")))
            .transpose()?
            .flatten();
        let path = draft_of
            .as_ref()
            .map(|e| e.path.to_string())
            .or_else(|| as_page_id.map(str::to_owned));
        let page = escurel_md::parse(
            path.as_deref().unwrap_or("draft.md"),
            content.as_bytes(),
            self.layout,
        );
        let world = SeenWorld {
            core: self,
            reading: &reading,
            draft_of,
        };
        Ok(escurel_md::validate(&page, &world))
    }
}
