//! Catalogues: skills, and the instances of one.

use std::ops::ControlFlow;
use std::sync::Arc;

use escurel_access::Caller;
use escurel_index::{Cursor, Entry, Order, json_value};
use serde_json::{Map, Value};

use super::expand::beneath;
use super::search::unknown_skill;
use super::{Reading, cursor, instant, page_ref};
use crate::api::{InstanceOrder, InstanceRow, Instances, InstancesRequest, SkillRow};
use crate::kb::Core;
use crate::{Code, Refusal, Result};

/// More than this is refused: clients choke on longer answers.
pub const MAX_LIMIT: usize = 500;

impl Core {
    /// Skills that the caller may see, by id; an overlay hides the page it shadows.
    pub fn list_skills(&self, caller: &Caller) -> Result<Vec<SkillRow>> {
        let reading = self.reading(caller, None);
        reading.demand_complete()?;
        let dir = &reading.view.dir;
        let mut rows: Vec<SkillRow> = Vec::new();
        let visible = dir
            .skills()
            .into_iter()
            .filter(|e| e.facts.scenario.is_none() && reading.sight.sees(e));
        for entry in visible {
            let Some(schema) = entry.facts.schema.clone() else {
                continue;
            };
            let row = SkillRow {
                instances: dir.count(&schema.id),
                page_id: Some(entry.path.to_string()),
                shadows: beneath(&reading, entry)
                    .and_then(|base| base.facts.layer.as_deref().map(str::to_owned)),
                schema,
            };
            match rows
                .last_mut()
                .filter(|last| last.schema.id == row.schema.id)
            {
                Some(_) if entry.facts.is_base_layer() => {}
                Some(last) => *last = row,
                None => rows.push(row),
            }
        }
        Ok(rows)
    }

    /// Touches memory only, unless `as_of` is given.
    ///
    /// # Errors
    /// `skill_not_found`, `cursor_invalid`, `invalid_argument`, `time_invalid`, `index_behind`.
    pub fn list_instances(&self, caller: &Caller, request: &InstancesRequest) -> Result<Instances> {
        if !(1..=MAX_LIMIT).contains(&request.limit) {
            return Err(Refusal::new(
                Code::InvalidArgument,
                format!("limit is between 1 and {MAX_LIMIT}."),
            )
            .at("limit"));
        }
        let reading = self.reading_in(caller, request.scenario.as_deref())?;
        reading.demand_complete()?;
        let after = request
            .cursor
            .as_deref()
            .map(|c| decode(c, request))
            .transpose()?;
        demand_skill(&reading, &request.skill_id, "skill_id")?;
        match &request.as_of {
            Some(time) => self.instances_at(&reading, request, after.as_ref(), instant(time)?),
            None => Ok(instances_now(&reading, request, after.as_ref())),
        }
    }

    fn instances_at(
        &self,
        reading: &Reading<'_>,
        request: &InstancesRequest,
        after: Option<&Cursor>,
        time: i64,
    ) -> Result<Instances> {
        let duck = self.sql.at(reading.view.seq)?;
        let mut rows = Vec::new();
        for (no, version) in duck.instances_at(&request.skill_id, time)? {
            let Some(entry) = super::expand::entry_of(reading, no) else {
                continue;
            };
            let Some(page) = duck.page_at(no, time)? else {
                continue;
            };
            let frontmatter: Map<String, Value> =
                serde_json::from_str(&page.frontmatter).unwrap_or_default();
            if matches(&frontmatter, request) {
                let mut reference = page_ref(entry);
                reference.page_id = page.path.clone();
                reference.version = version.version;
                reference.last_written_by = None;
                rows.push((
                    Cursor {
                        at: page.at,
                        path: page.path,
                    },
                    InstanceRow {
                        page: reference,
                        at: page.at.and_then(|_| at_text(&page.frontmatter)),
                        frontmatter: page.frontmatter,
                    },
                ));
            }
        }
        rows.sort_by(|(a, _), (b, _)| compare(a, b, request.order));
        let rows = rows.into_iter().filter(|(key, _)| {
            after.is_none_or(|after| compare(key, after, request.order).is_gt())
        });
        Ok(page_of(rows, request))
    }
}

/// Refuses a skill that no page declares and no page is of.
pub(super) fn demand_skill(reading: &Reading<'_>, skill: &str, at: &str) -> Result<()> {
    let dir = &reading.view.dir;
    let declared = || reading.scoped(|scope| dir.schema(skill, scope)).is_some();
    if dir.count(skill) > 0 || declared() {
        return Ok(());
    }
    Err(unknown_skill(reading, skill).at(at))
}

fn instances_now(
    reading: &Reading<'_>,
    request: &InstancesRequest,
    after: Option<&Cursor>,
) -> Instances {
    let dir = &reading.view.dir;
    let mut taken = Vec::new();
    reading.scoped(|scope| {
        dir.instances(
            &request.skill_id,
            order(request.order),
            after,
            &mut |entry| {
                if reading.sight.sees(entry)
                    && dir.effective(entry, scope)
                    && entry_matches(entry, request)
                {
                    taken.push(entry.clone());
                }
                if taken.len() > request.limit {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            },
        );
    });
    page_of(
        taken.iter().map(|entry| (Cursor::of(entry), row(entry))),
        request,
    )
}

/// The first `limit` rows and, when there are more, where to go on.
fn page_of(
    rows: impl Iterator<Item = (Cursor, InstanceRow)>,
    request: &InstancesRequest,
) -> Instances {
    let mut rows = rows;
    let mut page: Vec<(Cursor, InstanceRow)> = rows.by_ref().take(request.limit).collect();
    let next_cursor = rows
        .next()
        .and(page.last())
        .map(|(cursor, _)| encode(cursor, request));
    Instances {
        instances: page.drain(..).map(|(_, row)| row).collect(),
        next_cursor,
    }
}

fn row(entry: &Arc<Entry>) -> InstanceRow {
    let facts = &entry.facts;
    InstanceRow {
        page: page_ref(entry),
        at: facts.at.and_then(|_| at_text(&facts.frontmatter)),
        frontmatter: facts.frontmatter.to_string(),
    }
}

/// `at` as it is written.
fn at_text(frontmatter: &str) -> Option<String> {
    match json_value(frontmatter, "at") {
        Some(Value::String(at)) => Some(at),
        _ => None,
    }
}

fn entry_matches(entry: &Entry, request: &InstancesRequest) -> bool {
    request.frontmatter.is_none() || matches(&entry.facts.frontmatter_map(), request)
}

/// Equality by printed text; a list matches if any element does.
fn matches(frontmatter: &Map<String, Value>, request: &InstancesRequest) -> bool {
    let Some((key, wanted)) = &request.frontmatter else {
        return true;
    };
    let equal = |value: &Value| match value {
        Value::String(text) => text == wanted,
        Value::Null => false,
        other => {
            let printed = other.to_string();
            printed == *wanted
        }
    };
    match frontmatter.get(key) {
        Some(Value::Array(items)) => items.iter().any(equal),
        Some(value) => equal(value),
        None => false,
    }
}

fn order(order: InstanceOrder) -> Order {
    match order {
        InstanceOrder::Id => Order::Path,
        InstanceOrder::AtAsc => Order::AtAsc,
        InstanceOrder::AtDesc => Order::AtDesc,
    }
}

fn compare(a: &Cursor, b: &Cursor, order: InstanceOrder) -> std::cmp::Ordering {
    let undated_last = a.at.is_none().cmp(&b.at.is_none());
    match order {
        InstanceOrder::Id => a.path.cmp(&b.path),
        InstanceOrder::AtAsc => undated_last
            .then(a.at.cmp(&b.at))
            .then_with(|| a.path.cmp(&b.path)),
        InstanceOrder::AtDesc if a.at.is_none() && b.at.is_none() => a.path.cmp(&b.path),
        InstanceOrder::AtDesc => undated_last
            .then(b.at.cmp(&a.at))
            .then_with(|| b.path.cmp(&a.path)),
    }
}

/// `at` and path of the last row.
fn encode(cursor: &Cursor, request: &InstancesRequest) -> String {
    let at = cursor.at.map(|at| at.to_string()).unwrap_or_default();
    cursor::close(&listing(request), &format!("{at}|{}", cursor.path))
}

fn listing(request: &InstancesRequest) -> String {
    let listing = (
        request.skill_id.as_str(),
        request.order as u8,
        &request.frontmatter,
        request.scenario.as_deref().unwrap_or_default(),
        &request.as_of,
    );
    format!("{listing:?}")
}

fn decode(text: &str, request: &InstancesRequest) -> Result<Cursor> {
    let place = cursor::open(&listing(request), text)?;
    let (at, path) = place.split_once('|').ok_or_else(cursor::bad)?;
    let at = match at {
        "" => None,
        at => Some(at.parse().map_err(|_| cursor::bad())?),
    };
    Ok(Cursor {
        at,
        path: path.to_owned(),
    })
}
