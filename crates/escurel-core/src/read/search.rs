//! Ranked passages. Everything that narrows the answer does so before ranking.

use std::ops::ControlFlow;
use std::sync::Arc;

use escurel_access::Caller;
use escurel_index::{Bitmap, Entry, FilterError, Order, PageNo};
use escurel_md::PageType;
use escurel_search::{Audience, Candidates, Query};
use serde_json::{Map, Value};

use super::{Reading, excerpt, instant, page_ref};
use crate::api::{Granularity, LaneState, SearchAnswer, SearchHit, SearchRequest};
use crate::errors::sentence;
use crate::kb::Core;
use crate::live::LiveSeqs;
use crate::view::{MaskKey, View};
use crate::{Code, Refusal, Result};

struct Admitted<'a> {
    view: &'a View,
    mask: Option<Bitmap>,
}

impl Candidates for Admitted<'_> {
    #[inline]
    fn admits(&self, page: u32, seq: u64) -> bool {
        self.view.live.is_live(page, seq)
            && self
                .mask
                .as_ref()
                .is_none_or(|mask| mask.contains(PageNo(page)))
    }

    fn day(&self, page: u32) -> Option<i64> {
        Some(self.view.dir.get(PageNo(page))?.facts.at?.first)
    }
}

/// The pages that a caller can see at all.
struct Visible {
    live: LiveSeqs,
    pages: Arc<Bitmap>,
}

impl Audience for Visible {
    fn hears(&self, page: u32, seq: u64) -> bool {
        self.live.is_live(page, seq) && self.pages.contains(PageNo(page))
    }

    fn id(&self) -> usize {
        Arc::as_ptr(&self.pages) as usize
    }
}

impl Core {
    /// # Errors
    /// `invalid_argument`, `time_invalid`, `filter_*`, `skill_not_found`,
    /// `page_not_found`, `ambiguous`, `index_behind`, `index_damaged`.
    pub fn search(&self, caller: &Caller, request: &SearchRequest) -> Result<SearchAnswer> {
        check(request)?;
        let reading = self.reading(caller, request.scenario.as_deref());
        let reading = match &request.as_of {
            Some(time) => self.look_back_at(reading, instant(time)?)?,
            None => reading,
        };
        let only = request
            .page_id
            .as_deref()
            .map(|id| reading.demand(id, "page_id"))
            .transpose()?;
        let admitted = Admitted {
            view: &reading.view,
            mask: mask(&reading, request).or_else(|refusal| {
                reading.demand_complete()?;
                Err(refusal)
            })?,
        };
        let past = reading.view.past.as_ref();
        let (vectors, vector_lane) = self.meaning.query(&request.queries, past);
        let query = Query {
            texts: &request.queries,
            k: request.k,
            by_page: request.granularity == Granularity::Page,
            candidates: &admitted,
            audience: audience(&reading),
            only_page: only.map(|entry| entry.no.0),
            vectors,
            reranker: self.reranker.as_deref(),
        };
        let answer = reading.view.text.search(&query)?;
        let hits = answer
            .hits
            .into_iter()
            .filter_map(|hit| self.hit(&reading, request, hit))
            .collect();
        let mut notes = answer.notes;
        notes.extend(scenario_note(&reading));
        Ok(SearchAnswer {
            hits,
            lanes: vec![self.lexical_lane(&reading), vector_lane],
            notes,
        })
    }

    fn look_back_at<'a>(&'a self, reading: Reading<'a>, time: i64) -> Result<Reading<'a>> {
        reading.demand_complete()?;
        let then = self.view_at(&reading.view, time)?;
        Ok(Reading {
            sight: reading.sight.looking_back(reading.view),
            view: then,
            ..reading
        })
    }

    fn lexical_lane(&self, reading: &Reading<'_>) -> LaneState {
        let lane = |state, detail| LaneState {
            lane: "lexical",
            state,
            detail,
        };
        if reading.demand_complete().is_ok() {
            return lane("fresh", None);
        }
        let phase = self.phase();
        let detail = format!("{} of {} pages are indexed", phase.done, phase.total);
        lane("lagging", Some(detail))
    }

    fn hit(
        &self,
        reading: &Reading<'_>,
        request: &SearchRequest,
        hit: escurel_search::Hit,
    ) -> Option<SearchHit> {
        let entry = reading.view.dir.get(PageNo(hit.page))?;
        let schema = reading.scoped(|scope| reading.view.dir.schema(&entry.facts.skill, scope));
        let required = schema
            .iter()
            .flat_map(|s| s.required_frontmatter.iter().map(String::as_str));
        let filtered = request
            .filter
            .iter()
            .flat_map(|f| f.keys().map(String::as_str));
        Some(SearchHit {
            page: page_ref(entry),
            anchor: hit
                .anchor
                .filter(|_| request.granularity == Granularity::Block),
            snippet: hit.snippet,
            matches: hit.matches,
            score: hit.score,
            why: hit.why,
            frontmatter_excerpt: excerpt(entry, filtered.chain(required)),
        })
    }
}

/// Says that the hits are those of the base, when the named scenario has no page.
fn scenario_note(reading: &Reading<'_>) -> Option<String> {
    let (message, known) = reading.unknown_scenario()?;
    Some(match known.as_slice() {
        [] => format!("{message} There are no scenarios; the hits are from the base."),
        known => format!(
            "{message} The hits are from the base; known: {}.",
            known.join(", ")
        ),
    })
}

fn check(request: &SearchRequest) -> Result<()> {
    let bad = |what: &str, at: &str| Err(Refusal::new(Code::InvalidArgument, what).at(at));
    if request.queries.iter().all(|q| q.trim().is_empty()) {
        return bad("There is nothing to search for.", "q");
    }
    if request.queries.len() > escurel_search::MAX_TEXTS {
        return bad("At most 8 phrasings are fused.", "queries");
    }
    if !(1..=escurel_search::MAX_K).contains(&request.k) {
        return bad("k is between 1 and 200.", "k");
    }
    Ok(())
}

/// Whose texts scores are made of; `None`: everybody's, of today.
fn audience(reading: &Reading<'_>) -> Option<Arc<dyn Audience>> {
    let view = &reading.view;
    let all = || {
        let pages = || view.dir.iter().map(|e| e.no).collect();
        view.past.is_some().then(|| view.mask(MaskKey::All, pages))
    };
    let pages = reading.sight.mask(view).or_else(all)?;
    let live = view.live.clone();
    Some(Arc::new(Visible { live, pages }))
}

/// The pages that may be hits, `None` for all live ones.
fn mask(reading: &Reading<'_>, request: &SearchRequest) -> Result<Option<Bitmap>> {
    let mut parts: Vec<Arc<Bitmap>> = Vec::new();
    parts.extend(reading.sight.mask(&reading.view));
    parts.extend(scenario_mask(reading));
    if let Some(skill) = &request.skill {
        parts.push(skill_mask(reading, skill)?);
    }
    if let Some(page_type) = request.page_type {
        parts.push(type_mask(reading, page_type));
    }
    if let Some(filter) = request.filter.as_ref().filter(|f| !f.is_empty()) {
        parts.push(Arc::new(filter_mask(reading, filter)?));
    }
    Ok(parts
        .into_iter()
        .map(Arc::unwrap_or_clone)
        .reduce(|mut all, part| {
            all.and(&part);
            all
        }))
}

/// Base reads never see scenario pages; a named scenario replaces base pages.
fn scenario_mask(reading: &Reading<'_>) -> Option<Arc<Bitmap>> {
    let dir = &reading.view.dir;
    if reading.scenario.is_none() && reading.view.scenario_pages == 0 {
        return None;
    }
    let key = MaskKey::Scenario(reading.scenario.map(str::to_owned));
    let effective = || {
        reading.scoped(|scope| {
            dir.iter()
                .filter(|e| dir.effective(e, scope))
                .map(|e| e.no)
                .collect()
        })
    };
    if reading.sight.mask(&reading.view).is_some() {
        // Who may see the overlay decides what it replaces, so this mask is not shared.
        return Some(Arc::new(effective()));
    }
    Some(reading.view.mask(key, effective))
}

fn skill_mask(reading: &Reading<'_>, skill: &str) -> Result<Arc<Bitmap>> {
    let dir = &reading.view.dir;
    let mask = reading.view.mask(MaskKey::Skill(skill.to_owned()), || {
        let mut pages = Bitmap::default();
        dir.instances(skill, Order::Path, None, &mut |entry| {
            pages.insert(entry.no);
            ControlFlow::Continue(())
        });
        dir.skills()
            .iter()
            .filter(|e| *e.facts.skill == *skill)
            .for_each(|e| pages.insert(e.no));
        pages
    });
    let known = !mask.is_empty() || reading.scoped(|scope| dir.schema(skill, scope)).is_some();
    if known {
        Ok(mask)
    } else {
        Err(unknown_skill(reading, skill).at("skill"))
    }
}

pub(super) fn unknown_skill(reading: &Reading<'_>, skill: &str) -> Refusal {
    let mut known: Vec<&str> = reading
        .view
        .dir
        .skills()
        .iter()
        .filter(|e| reading.sight.sees(e))
        .map(|e| &*e.facts.skill)
        .collect();
    known.dedup();
    let nearest = known
        .into_iter()
        .max_by(|a, b| strsim::jaro(a, skill).total_cmp(&strsim::jaro(b, skill)));
    let near = nearest.filter(|name| strsim::jaro(name, skill) > 0.7);
    Refusal::new(Code::SkillNotFound, format!("There is no skill `{skill}`."))
        .candidates(near.map(str::to_owned))
}

fn type_mask(reading: &Reading<'_>, page_type: PageType) -> Arc<Bitmap> {
    let dir = &reading.view.dir;
    let skills = reading.view.mask(MaskKey::SkillPages, || {
        dir.skills().iter().map(|e| e.no).collect()
    });
    match page_type {
        PageType::Skill => skills,
        PageType::Instance => Arc::new(skills.not(dir.capacity())),
    }
}

fn filter_mask(reading: &Reading<'_>, filter: &Map<String, Value>) -> Result<Bitmap> {
    let visible = |entry: &Entry| reading.sight.sees(entry);
    let filter = reading
        .view
        .dir
        .compile_filter_for(filter, &visible)
        .map_err(filter_refusal)?;
    Ok(reading.view.dir.filter_pages(&filter))
}

fn filter_refusal(error: FilterError) -> Refusal {
    let code = match error.code {
        "unknown_key" => Code::FilterUnknownKey,
        "unknown_operator" => Code::FilterUnknownOperator,
        _ => Code::FilterTypeMismatch,
    };
    Refusal::new(code, sentence(&error.message))
        .at(format!("filter.{}", error.key))
        .candidates(error.nearest)
}
