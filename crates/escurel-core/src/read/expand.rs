//! One page in full: now, at a version or at a time.

use std::ops::Range;
use std::sync::Arc;

use escurel_access::{Caller, Verb};
use escurel_index::{Entry, PageNo, Scope, VersionRow};
use escurel_md::{Issue, Link, LinkKind, Page, PageType, Wikilink, duplicate_id};

use super::history::{row_of, uid_of};
use super::validate::twins;
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
        let reading = self.reading_in(caller, request.scenario.as_deref())?;
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
            (None, None) => self.as_typed(&reading, &request.page_id)?,
        };
        let Some(chosen) = chosen else {
            return Ok(None);
        };
        let limit = if request.max_chars == 0 {
            MAX_CHARS
        } else {
            request.max_chars
        };
        render(&reading, chosen, anchor.as_deref(), limit).map(Some)
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

    /// As it stands or, while somebody edits it live, as it is being typed.
    fn as_typed(&self, reading: &Reading<'_>, page_id: &str) -> Result<Option<Chosen>> {
        let Some(mut chosen) = self.live(reading, page_id)? else {
            return Ok(None);
        };
        let Some(entry) = chosen.entry.clone() else {
            return Ok(Some(chosen));
        };
        if let Some(text) = self.live_text(&entry)? {
            let page = escurel_md::parse(&entry.path, text.as_bytes(), self.layout);
            chosen.page.title = page.title.clone();
            chosen.page.uncommitted = true;
            chosen.parsed = Arc::new(page);
        }
        Ok(Some(chosen))
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
        match row_of(&duck.versions(entry.uid)?, version) {
            Some(row) => self.past_text(caller, row.clone(), Some(entry)),
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
        let Some(uid) = uid_of(entry.as_deref(), page_id, &duck)? else {
            return Ok(None);
        };
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
        let bytes = self.row_text(&row)?;
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
            uncommitted: false,
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
    let part = part(&parsed, anchor, &page.page_id)?;
    let (span, next_anchor) = cut(&parsed, &part, limit);
    let header = part.whole() && part.skipped == 0;
    let links = parsed.links.iter().filter(|link| {
        let in_header = link.span.start < parsed.body.start;
        link.kind != LinkKind::Asset && (span.contains(&link.span.start) || (header && in_header))
    });
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
        issues: findings(reading, &parsed, entry.as_deref()),
        page,
        newer_exists,
    })
}

/// What of a page is asked for.
struct Part<'a> {
    /// The anchor of a section or block; empty: the whole body.
    anchor: &'a str,
    /// Characters of it that the caller has already.
    skipped: usize,
    span: Range<usize>,
}

impl Part<'_> {
    fn whole(&self) -> bool {
        self.anchor.is_empty()
    }
}

/// The whole body, a section or a block; `anchor+n` is the same from its n-th
/// character on.
fn part<'a>(page: &Page, anchor: Option<&'a str>, page_id: &str) -> Result<Part<'a>> {
    let anchor = anchor.unwrap_or_default();
    if let Some(part) = continued(page, anchor) {
        return Ok(part);
    }
    let span = match anchor {
        "" => Some(page.body.clone()),
        anchor => page.find_anchor(anchor).map(|found| found.span),
    };
    if let Some(span) = span {
        return Ok(Part {
            anchor,
            skipped: 0,
            span,
        });
    }
    let known = page.headings.iter().map(|h| h.anchor.clone()).take(20);
    let refusal = Refusal::new(
        Code::AnchorNotFound,
        format!("{page_id} has no anchor `{anchor}`."),
    );
    Err(refusal.at("anchor").candidates(known.collect::<Vec<_>>()))
}

/// A heading that is really called `name+12` is not a continuation of `name`.
fn continued<'a>(page: &Page, anchor: &'a str) -> Option<Part<'a>> {
    let (name, digits) = anchor.rsplit_once('+')?;
    let skipped: usize = digits.parse().ok()?;
    if page.headings.iter().any(|h| h.text.trim() == anchor.trim()) {
        return None;
    }
    let span = match name {
        "" => page.body.clone(),
        name => page.find_anchor(name)?.span,
    };
    let text = page.text.get(span.clone())?;
    let (at, _) = text.char_indices().nth(skipped)?;
    Some(Part {
        anchor: name,
        skipped,
        span: span.start + at..span.end,
    })
}

/// Cuts before the first block that does not fit, or inside of it when it is
/// the only one, and says where to go on.
fn cut(page: &Page, part: &Part<'_>, limit: usize) -> (Range<usize>, Option<String>) {
    let Range { start, end } = part.span;
    let text = page.text.get(start..end).unwrap_or_default();
    let Some((fits, _)) = text.char_indices().nth(limit.max(1)) else {
        return (start..end, None);
    };
    let fits = start + fits;
    let over = page.blocks.iter().find(|b| b.span.end > fits);
    let end = over.map_or(fits, |block| block.span.start.min(fits));
    let end = if end > start { end } else { fits };
    let taken = page.text.get(start..end).map_or(0, |t| t.chars().count());
    let next = format!("{}+{}", part.anchor, part.skipped + taken);
    (start..end, Some(next))
}

/// What of each block lies in the span.
fn blocks(page: &Page, span: &Range<usize>) -> Vec<ExpandedBlock> {
    let inside = |b: &escurel_md::Block| {
        let part = b.span.start.max(span.start)..b.span.end.min(span.end);
        let content = page.text.get(part).filter(|text| !text.is_empty())?;
        Some(ExpandedBlock {
            anchor: b.anchor.clone(),
            content: content.trim_end().to_owned(),
        })
    };
    page.blocks.iter().filter_map(inside).collect()
}

/// What the text alone shows, and whether another page claims the same name.
fn findings(reading: &Reading<'_>, page: &Page, live: Option<&Entry>) -> Vec<Issue> {
    let twins = live.map(|e| twins(reading, page, Some(e.uid)));
    let duplicate = twins.and_then(|paths| duplicate_id(page, &paths));
    page.issues.iter().cloned().chain(duplicate).collect()
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
