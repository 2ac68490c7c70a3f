//! What rests on what: walks and reports over the whole graph.

use escurel_access::Caller;
use escurel_index::{Hop, MOST_HOPS, PageNo, Walk, path_to};

use super::expand::entry_of;
use super::lists::demand_skill;
use super::{Reading, instant};
use crate::Result;
use crate::api::{
    AbandonedRow, Ancestry, AncestryHop, AncestryRequest, DriftRow, Report, ReportKind,
};
use crate::kb::Core;

/// Hops a walk takes when nothing is said.
const HOPS: u32 = 5;

impl Core {
    /// # Errors
    /// `page_not_found`, `ambiguous`, `time_invalid`, `index_behind`.
    pub fn provenance_ancestry(
        &self,
        caller: &Caller,
        request: &AncestryRequest,
    ) -> Result<Ancestry> {
        let reading = self.reading(caller, None);
        let start = reading.demand(&request.page_id, "page_id")?.no;
        let to = request
            .to_page
            .as_deref()
            .map(|id| reading.demand(id, "to_page"))
            .transpose()?;
        let as_of = request.as_of.as_deref().map(instant).transpose()?;
        let hops = request.max_hops.unwrap_or(HOPS).clamp(1, MOST_HOPS);
        let walk = Walk {
            start,
            up: request.up,
            relations: &request.relations,
            max_hops: hops,
        };
        let hops = self.walk(&reading, &walk, as_of)?;
        Ok(match to {
            None => Ancestry::Walk(
                hops.into_iter()
                    .filter_map(|hop| hop_row(&reading, hop))
                    .collect(),
            ),
            Some(to) => {
                let pages = path_to(&hops, start, to.no);
                Ancestry::Path(
                    pages.and_then(|pages| {
                        pages.into_iter().map(|no| path_of(&reading, no)).collect()
                    }),
                )
            }
        })
    }

    /// The present is walked in memory, the past in the database.
    fn walk(&self, reading: &Reading<'_>, walk: &Walk<'_>, as_of: Option<i64>) -> Result<Vec<Hop>> {
        let Some(time) = as_of else {
            return Ok(reading.scoped(|scope| reading.view.dir.walk(walk, scope)));
        };
        let hidden = reading.sight.hidden(&reading.view.dir);
        let duck = self.sql.at(reading.view.seq)?;
        Ok(duck.walk(walk, time, &hidden)?)
    }

    /// # Errors
    /// `skill_not_found`, `index_behind`.
    pub fn provenance_report(
        &self,
        caller: &Caller,
        kind: ReportKind,
        skill: Option<&str>,
    ) -> Result<Report> {
        let reading = self.reading(caller, None);
        reading.demand_complete()?;
        if let Some(skill) = skill {
            demand_skill(&reading, skill, "skill")?;
        }
        let hidden = reading.sight.hidden(&reading.view.dir);
        let duck = self.sql.at(reading.view.seq)?;
        Ok(match kind {
            ReportKind::Drift => {
                let rows = duck.drift(skill, &hidden)?;
                Report::Drift(
                    rows.into_iter()
                        .filter_map(|row| drift_row(&reading, row))
                        .collect(),
                )
            }
            ReportKind::Abandoned => {
                let rows = duck.abandoned(skill, &hidden)?;
                Report::Abandoned(
                    rows.into_iter()
                        .filter_map(|row| abandoned_row(&reading, row))
                        .collect(),
                )
            }
        })
    }
}

fn path_of(reading: &Reading<'_>, no: PageNo) -> Option<String> {
    entry_of(reading, no).map(|entry| entry.path.to_string())
}

fn hop_row(reading: &Reading<'_>, hop: Hop) -> Option<AncestryHop> {
    let entry = entry_of(reading, hop.page)?;
    Some(AncestryHop {
        page_id: entry.path.to_string(),
        skill: entry.facts.skill.to_string(),
        relation: hop.relation,
        depth: hop.depth,
    })
}

fn drift_row(reading: &Reading<'_>, row: escurel_index::DriftRow) -> Option<DriftRow> {
    Some(DriftRow {
        decision_skill: entry_of(reading, row.decision)?.facts.skill.to_string(),
        decision_page_id: path_of(reading, row.decision)?,
        expectation_page_id: path_of(reading, row.expectation)?,
        superseding_page_id: path_of(reading, row.superseding)?,
        decided_at: row.decided_at,
        superseded_at: row.superseded_at,
    })
}

fn abandoned_row(reading: &Reading<'_>, row: escurel_index::AbandonedRow) -> Option<AbandonedRow> {
    Some(AbandonedRow {
        page_id: path_of(reading, row.page)?,
        skill: row.skill,
        via: row.via,
    })
}
