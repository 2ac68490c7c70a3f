//! Reads: each works on one published view, through one caller's eyes.

pub(crate) mod cursor;
mod expand;
mod history;
mod lists;
mod neighbours;
mod provenance;
mod resolve;
mod resources;
mod search;
mod validate;

pub(crate) use history::{row_of, uid_of};
pub(crate) use lists::MAX_LIMIT;

use std::sync::Arc;

use escurel_access::Caller;
use escurel_index::{Entry, Scope};
use escurel_md::When;
use serde_json::{Map, Value};

use crate::api::PageRef;
use crate::kb::Core;
use crate::sight::{Sight, one};
use crate::view::View;
use crate::{Code, Refusal, Result};

/// One read: the state it works on and the eyes it sees with.
pub(crate) struct Reading<'a> {
    pub view: Arc<View>,
    pub sight: Sight<'a>,
    pub scenario: Option<&'a str>,
    complete: bool,
}

impl Core {
    /// The published state contains the journal up to here.
    pub fn seq(&self) -> u64 {
        self.view.load().seq
    }

    pub(crate) fn reading<'a>(
        &'a self,
        caller: &'a Caller,
        scenario: Option<&'a str>,
    ) -> Reading<'a> {
        let scenario = scenario.filter(|name| !name.is_empty());
        Reading {
            view: self.view.load_full(),
            sight: Sight::of(&*self.policy, caller),
            scenario,
            complete: self.progress.is_complete(),
        }
    }

    /// As [`Core::reading`]; a scenario that no page belongs to is refused,
    /// because the answer could not tell that it is the base's.
    pub(crate) fn reading_in<'a>(
        &'a self,
        caller: &'a Caller,
        scenario: Option<&'a str>,
    ) -> Result<Reading<'a>> {
        let reading = self.reading(caller, scenario);
        match reading.unknown_scenario() {
            Some((message, known)) if self.phase().phase != "indexing" => {
                let refusal = Refusal::new(Code::InvalidArgument, message).at("scenario");
                Err(refusal.candidates(known))
            }
            _ => Ok(reading),
        }
    }
}

impl Reading<'_> {
    /// That no visible page belongs to the named scenario, and which scenarios there are.
    pub fn unknown_scenario(&self) -> Option<(String, Vec<String>)> {
        let asked = self.scenario?;
        let visible = |entry: &Entry| self.sight.sees(entry);
        let known = self.view.dir.scenarios(&visible);
        let message = || format!("No page belongs to the scenario `{asked}`.");
        (!known.iter().any(|name| **name == *asked)).then(|| {
            (
                message(),
                known.iter().map(|name| name.to_string()).collect(),
            )
        })
    }

    /// Runs `ask` with the scope that names are looked up in.
    pub fn scoped<T>(&self, ask: impl FnOnce(&Scope<'_>) -> T) -> T {
        let visible = |entry: &Entry| self.sight.sees(entry);
        ask(&Scope {
            scenario: self.scenario,
            visible: &visible,
        })
    }

    /// The page that an argument names: path, uid, `[[skill::id]]` or a unique loose name.
    pub fn find(&self, page_id: &str) -> Result<Option<Arc<Entry>>> {
        // A file that is there may have a name that no new page can get.
        if self.view.dir.by_path(page_id).is_none() {
            check_page_id(page_id)?;
        }
        let found = one(
            page_id,
            self.scoped(|scope| self.view.dir.find(page_id, scope)),
        )?;
        if found.is_none() {
            self.demand_complete()?;
        }
        Ok(found)
    }

    /// Before saying that something is not there, or that this is all: while a
    /// folder is indexed for the first time, nobody knows.
    pub fn demand_complete(&self) -> Result<()> {
        if self.complete {
            return Ok(());
        }
        let why = "The folder is being indexed for the first time; not every page is known yet.";
        Err(Refusal::new(Code::Indexing, why))
    }

    /// Like [`Reading::find`], but absence is a refusal.
    pub fn demand(&self, page_id: &str, argument: &str) -> Result<Arc<Entry>> {
        let found = self.find(page_id).map_err(|refusal| refusal.at(argument))?;
        found.ok_or_else(|| not_found(page_id).at(argument))
    }
}

pub(crate) fn not_found(page_id: &str) -> Refusal {
    Refusal::new(Code::PageNotFound, format!("There is no page `{page_id}`."))
}

/// An id that looks like a path must be one that a page can have; names and links are free text.
fn check_page_id(page_id: &str) -> Result<()> {
    let refuse = |why: &str| {
        Err(Refusal::new(
            Code::PageIdInvalid,
            format!("`{}` {why}", page_id.escape_debug()),
        )
        .at("page_id"))
    };
    if page_id.trim().is_empty() {
        return refuse("is empty.");
    }
    if crate::builtin::text(page_id).is_some() || page_id.starts_with("[[") {
        return Ok(());
    }
    match escurel_md::check_page_path(page_id) {
        Ok(_) => Ok(()),
        Err(error) => refuse(&format!("cannot name a page: {error}.")),
    }
}

pub(crate) fn page_ref(entry: &Entry) -> PageRef {
    PageRef {
        page_id: entry.path.to_string(),
        uid: entry.uid.to_string(),
        slug: entry.facts.id.to_string(),
        skill: entry.facts.skill.to_string(),
        page_type: entry.facts.page_type,
        title: entry.facts.title.to_string(),
        version: entry.version,
        last_written_by: Some(entry.author.to_string()),
        missing_on_disk: entry.missing,
        uncommitted: false,
    }
}

/// Title, description and `at`, then the given keys.
pub(crate) fn excerpt<'k>(
    entry: &Entry,
    keys: impl Iterator<Item = &'k str>,
) -> Map<String, Value> {
    let frontmatter = entry.facts.frontmatter_map();
    let mut excerpt = Map::new();
    excerpt.insert("title".into(), Value::from(&*entry.facts.title));
    for key in ["description", "at"].into_iter().chain(keys) {
        if let Some(value) = frontmatter.get(key) {
            excerpt.insert(key.into(), value.clone());
        }
    }
    excerpt
}

/// A point in time as callers write it, in microseconds; a date means its last moment.
pub(crate) fn instant(text: &str) -> Result<i64> {
    let when = When::parse(text.trim());
    when.map(|w| w.last).ok_or_else(|| {
        Refusal::new(Code::TimeInvalid, format!("`{text}` is not a time.")).at("as_of")
    })
}
