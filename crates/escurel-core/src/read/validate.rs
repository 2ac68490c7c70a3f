//! Findings of a draft against what exists.

use std::sync::Arc;

use escurel_access::Caller;
use escurel_index::{Entry, Resolution};
use escurel_md::{Issue, Link, Page, SkillSchema, Target, World};
use escurel_store::Uid;

use super::Reading;
use crate::Result;
use crate::builtin::is_builtin;
use crate::kb::Core;

struct SeenWorld<'a> {
    core: &'a Core,
    reading: &'a Reading<'a>,
    /// The page that the draft would replace.
    draft_of: Option<Arc<Entry>>,
    /// Whether it is known where the draft will be saved.
    placed: bool,
}

impl World for SeenWorld<'_> {
    fn skill(&self, id: &str) -> Option<Arc<SkillSchema>> {
        self.reading
            .scoped(|scope| self.reading.view.dir.schema(id, scope))
    }

    fn twins(&self, page: &Page) -> Vec<String> {
        // What has no name of its own gets one from the place where it is saved.
        if !self.placed && !page.frontmatter.contains_key("id") {
            return Vec::new();
        }
        let own = self.draft_of.as_ref().map(|e| e.uid);
        twins(self.reading, page, own)
    }

    fn target(&self, _from_path: &str, link: &Link) -> Target {
        let dir = &self.reading.view.dir;
        let from = self.draft_of.as_deref();
        match self
            .reading
            .scoped(|scope| dir.resolve(&link.target, link.kind, from, scope))
        {
            Resolution::Missing => Target::Missing,
            Resolution::Ambiguous(entries) => Target::Ambiguous(distinct(&entries)),
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

/// Links that tell the pages apart: typed ones if they do, else paths.
fn distinct(entries: &[Arc<Entry>]) -> Vec<String> {
    let typed = |e: &Arc<Entry>| format!("[[{}::{}]]", e.facts.skill, e.facts.id);
    let link = |entry: &Arc<Entry>| {
        let name = typed(entry);
        match entries.iter().filter(|e| typed(e) == name).count() {
            1 => name,
            _ => format!("[[{}]]", entry.path),
        }
    };
    entries.iter().map(link).collect()
}

/// A page without a layer is in the tenant's own.
fn layer(name: Option<&str>) -> &str {
    name.unwrap_or("overlay")
}

/// Paths of other pages of the same type, skill, id, scenario and layer.
pub(super) fn twins(reading: &Reading<'_>, page: &Page, own: Option<Uid>) -> Vec<String> {
    let same = |e: &&Arc<Entry>| {
        Some(e.uid) != own
            && e.facts.scenario.as_deref() == page.scenario.as_deref()
            && layer(e.facts.layer.as_deref()) == layer(page.layer.as_deref())
            && !is_builtin(&e.path)
            && reading.sight.sees(e)
    };
    let dir = &reading.view.dir;
    let claimants = dir.claimants(page.page_type, &page.skill, &page.id);
    let mut paths: Vec<String> = claimants.filter(same).map(|e| e.path.to_string()).collect();
    paths.sort_unstable();
    paths
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
        Ok(self.findings_of(&reading, &page, draft_of, path.is_some()))
    }

    /// Findings of a draft that is saved at the path that it was parsed for.
    pub(crate) fn draft_issues(&self, reading: &Reading<'_>, page: &Page) -> Vec<Issue> {
        let draft_of = reading.view.dir.by_path(&page.path).cloned();
        self.findings_of(reading, page, draft_of, true)
    }

    fn findings_of(
        &self,
        reading: &Reading<'_>,
        page: &Page,
        draft_of: Option<Arc<Entry>>,
        placed: bool,
    ) -> Vec<Issue> {
        let world = SeenWorld {
            core: self,
            reading,
            draft_of,
            placed,
        };
        escurel_md::validate(page, &world)
    }
}
