//! What rests on what: walks and reports over the whole graph.

use escurel_access::Caller;
use escurel_index::PageNo;

use super::expand::entry_of;
use super::{Reading, instant};
use crate::Result;
use crate::api::{
    AbandonedRow, Ancestry, AncestryHop, AncestryRequest, DriftRow, Report, ReportKind,
};
use crate::kb::Core;

/// Hops a walk takes when nothing is said, and at most.
const HOPS: u32 = 5;
const MOST_HOPS: u32 = 12;

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
            .map(|id| reading.find(id))
            .transpose()?;
        let as_of = request.as_of.as_deref().map(instant).transpose()?;
        let hops = request.max_hops.unwrap_or(HOPS).clamp(1, MOST_HOPS);
        let hidden = reading.sight.hidden(&reading.view.dir);
        let duck = self.sql.at(reading.view.seq)?;
        match to {
            None => {
                let walk =
                    duck.ancestry(start, request.up, &request.relations, hops, as_of, &hidden)?;
                Ok(Ancestry::Walk(
                    walk.into_iter()
                        .filter_map(|hop| hop_row(&reading, hop))
                        .collect(),
                ))
            }
            Some(None) => Ok(Ancestry::Path(None)),
            Some(Some(to)) => {
                let path = duck.path(
                    start,
                    to.no,
                    request.up,
                    &request.relations,
                    hops,
                    as_of,
                    &hidden,
                )?;
                Ok(Ancestry::Path(path.and_then(|pages| {
                    pages.into_iter().map(|no| path_of(&reading, no)).collect()
                })))
            }
        }
    }

    /// # Errors
    /// `index_behind`.
    pub fn provenance_report(
        &self,
        caller: &Caller,
        kind: ReportKind,
        skill: Option<&str>,
    ) -> Result<Report> {
        let reading = self.reading(caller, None);
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

fn hop_row(reading: &Reading<'_>, hop: escurel_index::Hop) -> Option<AncestryHop> {
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
