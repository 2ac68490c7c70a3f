//! Where a link leads.

use escurel_access::Caller;
use escurel_index::{Entry, Resolution};
use escurel_md::{LinkKind, PageType, Wikilink};

use super::{Reading, page_ref};
use crate::api::Resolved;
use crate::kb::Core;
use crate::{Code, Refusal, Result};

impl Core {
    /// Touches memory only, but for anchors made from a block's content.
    ///
    /// # Errors
    /// `wikilink_malformed`, `indexing`.
    pub fn resolve(
        &self,
        caller: &Caller,
        wikilink: &str,
        scenario: Option<&str>,
    ) -> Result<Resolved> {
        let mut parsed = Wikilink::parse(wikilink.trim()).map_err(|error| {
            Refusal::new(Code::WikilinkMalformed, format!("`{wikilink}`: {error}.")).at("wikilink")
        })?;
        let reading = self.reading_in(caller, scenario)?;
        let resolution = reading.scoped(|scope| {
            reading
                .view
                .dir
                .resolve(&parsed, LinkKind::Wikilink, None, scope)
        });
        let (page, candidates) = match resolution {
            Resolution::Found(entry) => (Some(entry), Vec::new()),
            Resolution::Ambiguous(entries) => (None, entries),
            Resolution::Missing => {
                reading.demand_complete()?;
                (None, Vec::new())
            }
        };
        let anchor_exists = page
            .as_deref()
            .and_then(|e| Some(self.has_anchor(e, parsed.anchor.as_deref()?)));
        let pin = page
            .as_deref()
            .and_then(|e| Some((e.version, parsed.version_number()?)));
        if page
            .as_deref()
            .is_some_and(|e| e.facts.page_type == PageType::Skill)
            && parsed.skill.is_none()
        {
            parsed.skill = parsed.id.take();
        }
        Ok(Resolved {
            page: page.as_deref().map(page_ref),
            candidates: candidates.iter().map(|e| page_ref(e)).collect(),
            anchor_exists,
            version_exists: pin.map(|(head, pinned)| (1..=head).contains(&pinned)),
            newer_exists: pin.is_some_and(|(head, pinned)| pinned < head),
            parsed,
        })
    }

    /// Does `anchor` address something on the page?
    pub(crate) fn has_anchor(&self, entry: &Entry, anchor: &str) -> bool {
        entry.facts.has_anchor(anchor)
            || (anchor.trim_start_matches('^').starts_with("b-")
                && self.has_content_anchor(entry, anchor))
    }

    /// Anchors made from content are not kept in memory.
    fn has_content_anchor(&self, entry: &Entry, anchor: &str) -> bool {
        let Ok(bytes) = self.head_text(entry) else {
            return false;
        };
        escurel_md::parse(&entry.path, &bytes, self.layout)
            .find_anchor(anchor)
            .is_some()
    }
}

impl Reading<'_> {
    /// The one page a link on `from` leads to.
    pub fn target(
        &self,
        link: &Wikilink,
        kind: LinkKind,
        from: &Entry,
    ) -> Option<std::sync::Arc<Entry>> {
        self.scoped(|scope| self.view.dir.resolve(link, kind, Some(from), scope))
            .found()
            .cloned()
    }
}
