//! Walks and reports over the links that frontmatter keys make.
//!
//! Pages in `hidden` do not exist: they are not walked through, not returned,
//! and have no part in deciding where a link leads.

use duckdb::{Connection, Row};
use escurel_md::When;
use hashbrown::HashMap;

use super::history::page_no;
use super::rows::{AbandonedRow, DriftRow, Hop};
use super::tables::number;
use super::{Duck, Reader};
use crate::{Bitmap, IndexError, PageNo};

/// The moment at which only open rows hold.
const NOW: i64 = i64::MAX - 1;
const MOST_HOPS: u32 = 12;

const WALK: &str = concat!(
    include_str!("queries/edges.sql"),
    include_str!("queries/walk.sql")
);
const DRIFT: &str = concat!(
    include_str!("queries/edges.sql"),
    include_str!("queries/drift.sql")
);
const ABANDONED: &str = concat!(
    include_str!("queries/edges.sql"),
    include_str!("queries/abandoned.sql")
);

/// A page on a walk and the page before it.
struct Step {
    hop: Hop,
    before: PageNo,
}

impl Duck {
    /// Every page that can be reached from `start`, each once at its least
    /// depth, by depth and path. `up`: along the links.
    #[allow(clippy::too_many_arguments)]
    pub fn ancestry(
        &self,
        start: PageNo,
        up: bool,
        relations: &[String],
        max_hops: u32,
        as_of: Option<i64>,
        hidden: &Bitmap,
    ) -> Result<Vec<Hop>, IndexError> {
        let steps = self.walk(start, up, relations, max_hops, as_of, hidden)?;
        Ok(steps
            .into_iter()
            .map(|s| s.hop)
            .filter(|h| h.page != start)
            .collect())
    }

    /// A shortest path, both ends included.
    #[allow(clippy::too_many_arguments)]
    pub fn path(
        &self,
        start: PageNo,
        to: PageNo,
        up: bool,
        relations: &[String],
        max_hops: u32,
        as_of: Option<i64>,
        hidden: &Bitmap,
    ) -> Result<Option<Vec<PageNo>>, IndexError> {
        if start == to {
            let here = as_of.unwrap_or(NOW);
            let exists = !hidden.contains(start) && self.page_at(start, here)?.is_some();
            return Ok(exists.then(|| vec![start]));
        }
        let steps = self.walk(start, up, relations, max_hops, as_of, hidden)?;
        let before: HashMap<PageNo, PageNo> =
            steps.iter().map(|s| (s.hop.page, s.before)).collect();
        let mut path = vec![to];
        while path.last() != Some(&start) {
            match path.last().and_then(|page| before.get(page)) {
                Some(page) if path.len() <= MOST_HOPS as usize => path.push(*page),
                _ => return Ok(None),
            }
        }
        path.reverse();
        Ok(Some(path))
    }

    fn walk(
        &self,
        start: PageNo,
        up: bool,
        relations: &[String],
        max_hops: u32,
        as_of: Option<i64>,
        hidden: &Bitmap,
    ) -> Result<Vec<Step>, IndexError> {
        let hops = max_hops.min(MOST_HOPS);
        let params = duckdb::params![
            as_of.unwrap_or(NOW),
            relations.join("\u{1f}"),
            number(start.0),
            up,
            number(hops)
        ];
        self.ask(WALK, params, hidden, |row| {
            let depth = row.get::<_, i32>(2)?.cast_unsigned();
            Ok(Step {
                hop: Hop {
                    page: page_no(row, 0)?,
                    relation: row.get(1)?,
                    depth,
                },
                before: page_no(row, 3)?,
            })
        })
    }

    /// Decisions whose reason was replaced after they were taken.
    pub fn drift(&self, skill: Option<&str>, hidden: &Bitmap) -> Result<Vec<DriftRow>, IndexError> {
        self.ask(DRIFT, duckdb::params![NOW, "", skill], hidden, |row| {
            Ok(DriftRow {
                decision: page_no(row, 0)?,
                expectation: page_no(row, 1)?,
                superseding: page_no(row, 2)?,
                decided_at: When::to_rfc3339(row.get(3)?),
                superseded_at: When::to_rfc3339(row.get(4)?),
            })
        })
    }

    /// Pages that another page retired, or that say so themselves.
    pub fn abandoned(
        &self,
        skill: Option<&str>,
        hidden: &Bitmap,
    ) -> Result<Vec<AbandonedRow>, IndexError> {
        self.ask(ABANDONED, duckdb::params![NOW, "", skill], hidden, |row| {
            Ok(AbandonedRow {
                page: page_no(row, 0)?,
                skill: row.get(1)?,
                via: row.get(2)?,
            })
        })
    }

    fn ask<T>(
        &self,
        sql: &str,
        params: &[&dyn duckdb::ToSql],
        hidden: &Bitmap,
        read: impl FnMut(&Row<'_>) -> duckdb::Result<T>,
    ) -> Result<Vec<T>, IndexError> {
        let conn: Reader<'_> = self.reader()?;
        let ask = || {
            hide(&conn, hidden)?;
            conn.prepare_cached(sql)?
                .query_map(params, read)?
                .collect::<duckdb::Result<Vec<T>>>()
        };
        ask().map_err(IndexError::sql("cannot walk the provenance graph"))
    }
}

fn hide(conn: &Connection, hidden: &Bitmap) -> duckdb::Result<()> {
    conn.execute("DELETE FROM hidden", [])?;
    if hidden.is_empty() {
        return Ok(());
    }
    let mut rows = conn.appender_to_catalog_and_db("hidden", "temp", "main")?;
    for no in hidden.iter() {
        rows.append_row([number(no.0)])?;
    }
    rows.flush()
}
