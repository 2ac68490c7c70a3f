//! One page in full: now, at a version or at a time.

use std::ops::Range;
use std::sync::Arc;

use escurel_access::{Caller, Verb};
use escurel_index::{Entry, PageNo, Scope, VersionRow};
use escurel_md::{Link, LinkKind, Page, PageType, Wikilink};
use escurel_store::{ObjectId, Uid};

use super::{Reading, instant, page_ref};
use crate::api::{ExpandRequest, Expanded, ExpandedBlock, OutLink, PageRef, Shadow};
use crate::facts::Parsed;
use crate::kb::Core;
use crate::sight::may;
use crate::{Code, Refusal, Result};

/// What a reader of a page gets at once when nothing else is asked for.
const MAX_CHARS: usize = 40_000;

/// Which text of which page.
struct Chosen {
    page: PageRef,
    parsed: Arc<Page>,
    newer_exists: bool,
    /// The live page, for links and shadows; gone pages have none.
    entry: Option<Arc<Entry>>,
}

impl Core {
    /// `None`: no such page (then), or not for this caller.
    ///
    /// # Errors
    /// `page_id_invalid`, `ambiguous`, `anchor_not_found`, `time_invalid`,
    /// `invalid_argument`, `content_erased`, `index_behind`.
    pub fn expand(&self, caller: &Caller, request: &ExpandRequest) -> Result<Option<Expanded>> {
        let reading = self.reading(caller, request.scenario.as_deref());
        let link = Wikilink::parse(request.page_id.trim())
            .ok()
            .filter(|_| request.page_id.trim_start().starts_with("[["));
        let pinned = request.version.or_else(|| link.as_ref()?.version_number());
        let anchor = request
            .anchor
            .clone()
            .or_else(|| link.as_ref()?.anchor.clone())
            .filter(|a| !a.trim().is_empty());
        let chosen = match (&request.as_of, pinned) {
            (Some(_), Some(_)) => {
                return Err(Refusal::new(
                    Code::InvalidArgument,
                    "Give a version or as_of, not both.",
                )
                .at("as_of"));
            }
            (Some(time), None) => {
                self.at_time(caller, &reading, &request.page_id, instant(time)?)?
            }
            (None, Some(version)) => {
                self.at_version(caller, &reading, &request.page_id, version)?
            }
            (None, None) => self.live(&reading, &request.page_id)?,
        };
        let Some(chosen) = chosen else {
            return self.absent();
        };
        let limit = if request.max_chars == 0 {
            MAX_CHARS
        } else {
            request.max_chars
        };
        render(&reading, chosen, anchor.as_deref(), limit).map(Some)
    }

    /// "There is no such page" is only known once every page has been looked at.
    fn absent(&self) -> Result<Option<Expanded>> {
        if self.phase().phase == "indexing" {
            let why = "The page is not indexed yet, or there is none.";
            return Err(Refusal::new(Code::Indexing, why));
        }
        Ok(None)
    }

    fn live(&self, reading: &Reading<'_>, page_id: &str) -> Result<Option<Chosen>> {
        let Some(entry) = reading.find(page_id)? else {
            return Ok(None);
        };
        let parsed = self.lately.page(&entry, || {
            let bytes = self.head_text(&entry)?;
            Ok(escurel_md::parse(&entry.path, &bytes, self.layout))
        })?;
        Ok(Some(Chosen {
            page: page_ref(&entry),
            parsed,
            newer_exists: false,
            entry: Some(entry),
        }))
    }

    fn at_version(
        &self,
        caller: &Caller,
        reading: &Reading<'_>,
        page_id: &str,
        version: u64,
    ) -> Result<Option<Chosen>> {
        let Some(entry) = reading.find(page_id)? else {
            return Ok(None);
        };
        if version == entry.version {
            return self.live(reading, &entry.uid.to_string());
        }
        let duck = self.sql.at(reading.view.seq)?;
        let row = duck
            .versions(entry.uid)?
            .into_iter()
            .rfind(|row| row.version == version && !row.deleted);
        match row {
            Some(row) => self.past_text(caller, row, Some(entry)),
            None => {
                let why = format!(
                    "{} has no version v{version}; its newest is v{}.",
                    entry.path, entry.version
                );
                Err(Refusal::new(Code::InvalidArgument, why).at("version"))
            }
        }
    }

    fn at_time(
        &self,
        caller: &Caller,
        reading: &Reading<'_>,
        page_id: &str,
        time: i64,
    ) -> Result<Option<Chosen>> {
        let duck = self.sql.at(reading.view.seq)?;
        let entry = reading.find(page_id)?;
        let uid = match &entry {
            Some(entry) => Some(entry.uid),
            None => page_id
                .parse::<Uid>()
                .ok()
                .map_or_else(|| duck.uid_at_path(page_id), |uid| Ok(Some(uid)))?,
        };
        let Some(uid) = uid else { return Ok(None) };
        match duck.version_at(uid, time)? {
            Some(row) if !row.deleted => self.past_text(caller, row, entry),
            _ => Ok(None),
        }
    }

    /// An earlier text, if the caller may see the page as it stands; of a page that is gone, as it stood.
    fn past_text(
        &self,
        caller: &Caller,
        row: VersionRow,
        entry: Option<Arc<Entry>>,
    ) -> Result<Option<Chosen>> {
        let object: ObjectId = row.object.parse()?;
        let bytes = self.store.object(&object)?;
        let parsed = Parsed::of(&row.path, &bytes, self.layout);
        if entry.is_none() && !may(&*self.policy, caller, Verb::Read, &row.path, &parsed.facts) {
            return Ok(None);
        }
        let newer_exists = entry.as_ref().is_some_and(|e| e.version > row.version);
        let page = PageRef {
            page_id: row.path,
            uid: row.uid.to_string(),
            slug: parsed.page.id.clone(),
            skill: parsed.page.skill.clone(),
            page_type: parsed.page.page_type,
            title: parsed.page.title.clone(),
            version: row.version,
            // Who holds the pen now says nothing about a past state.
            last_written_by: None,
            missing_on_disk: false,
        };
        Ok(Some(Chosen {
            page,
            parsed: Arc::new(parsed.page),
            newer_exists,
            entry,
        }))
    }
}

fn render(
    reading: &Reading<'_>,
    chosen: Chosen,
    anchor: Option<&str>,
    limit: usize,
) -> Result<Expanded> {
    let Chosen {
        page,
        parsed,
        newer_exists,
        entry,
    } = chosen;
    let wanted = part(&parsed, anchor, &page.page_id)?;
    let (span, next_anchor) = cut(&parsed, wanted, limit);
    let whole = anchor.is_none();
    let links = parsed
        .links
        .iter()
        .filter(|link| link.kind != LinkKind::Asset && (whole || contains(&span, &link.span)));
    Ok(Expanded {
        blocks: blocks(&parsed, &span),
        links: links
            .map(|link| out_link(reading, link, entry.as_deref()))
            .collect(),
        body: parsed.text.get(span).unwrap_or_default().to_owned(),
        truncated: next_anchor.is_some(),
        next_anchor,
        shadow: entry.as_deref().and_then(|entry| shadow(reading, entry)),
        frontmatter: parsed.frontmatter.clone(),
        issues: parsed.issues.clone(),
        page,
        newer_exists,
    })
}

/// The whole body, a section, a block, or (`block+`) everything from a block on.
fn part(page: &Page, anchor: Option<&str>, page_id: &str) -> Result<Range<usize>> {
    let Some(anchor) = anchor else {
        return Ok(page.body.clone());
    };
    if let Some(found) = page.find_anchor(anchor) {
        return Ok(found.span);
    }
    let from = anchor
        .strip_suffix('+')
        .and_then(|start| page.find_anchor(start));
    if let Some(found) = from {
        return Ok(found.span.start..page.body.end);
    }
    let known = page.headings.iter().map(|h| h.anchor.clone()).take(20);
    let refusal = Refusal::new(
        Code::AnchorNotFound,
        format!("{page_id} has no anchor `{anchor}`."),
    );
    Err(refusal.at("anchor").candidates(known.collect::<Vec<_>>()))
}

/// Cuts after the last block that fits, and says where to go on.
fn cut(page: &Page, wanted: Range<usize>, limit: usize) -> (Range<usize>, Option<String>) {
    let text = page.text.get(wanted.clone()).unwrap_or_default();
    let Some((end, _)) = text.char_indices().nth(limit) else {
        return (wanted, None);
    };
    let limit = wanted.start + end;
    let over = page
        .blocks
        .iter()
        .filter(|b| b.span.start >= wanted.start)
        .find(|b| b.span.end > limit);
    match over {
        Some(block) if block.span.start > wanted.start => (
            wanted.start..block.span.start,
            Some(format!("{}+", block.anchor)),
        ),
        // One block is longer than the limit: its beginning, then what follows it.
        Some(block) => {
            let next = page.blocks.iter().find(|b| b.span.start >= block.span.end);
            let next = next.map_or_else(|| block.anchor.clone(), |b| format!("{}+", b.anchor));
            (wanted.start..limit, Some(next))
        }
        None => (wanted, None),
    }
}

fn contains(outer: &Range<usize>, inner: &Range<usize>) -> bool {
    outer.start <= inner.start && inner.end <= outer.end
}

fn blocks(page: &Page, span: &Range<usize>) -> Vec<ExpandedBlock> {
    let inside = page.blocks.iter().filter(|b| contains(span, &b.span));
    let block = |b: &escurel_md::Block| ExpandedBlock {
        anchor: b.anchor.clone(),
        content: page
            .text
            .get(b.span.clone())
            .unwrap_or_default()
            .trim_end()
            .to_owned(),
    };
    inside.map(block).collect()
}

fn out_link(reading: &Reading<'_>, link: &Link, from: Option<&Entry>) -> OutLink {
    let target = from.and_then(|from| reading.target(&link.target, link.kind, from));
    OutLink {
        link: link.target.clone(),
        relation: link.relation.clone(),
        page_id: target.map(|entry| entry.path.to_string()),
    }
}

/// The pack page beneath an overlay skill page.
fn shadow(reading: &Reading<'_>, entry: &Entry) -> Option<Shadow> {
    let base = beneath(reading, entry)?;
    Some(Shadow {
        base_page_id: base.path.to_string(),
        pack: base.facts.layer.as_deref().unwrap_or_default().to_owned(),
        base: base.facts.frontmatter_map(),
    })
}

/// The base page of the same skill, when `entry` is an overlay.
pub(super) fn beneath(reading: &Reading<'_>, entry: &Entry) -> Option<Arc<Entry>> {
    if entry.facts.is_base_layer() || entry.facts.page_type != PageType::Skill {
        return None;
    }
    let visible = |e: &Entry| {
        e.facts.page_type == PageType::Skill && e.facts.is_base_layer() && reading.sight.sees(e)
    };
    let scope = Scope {
        scenario: None,
        visible: &visible,
    };
    let link = Wikilink {
        id: Some(entry.facts.skill.to_string()),
        ..Wikilink::default()
    };
    reading
        .view
        .dir
        .resolve(&link, LinkKind::Wikilink, None, &scope)
        .found()
        .cloned()
}

pub(super) fn entry_of<'a>(reading: &'a Reading<'_>, no: PageNo) -> Option<&'a Arc<Entry>> {
    reading
        .view
        .dir
        .get(no)
        .filter(|entry| reading.sight.sees(entry))
}
