//! Walks and reports over the links that frontmatter keys make.
//!
//! Pages in `hidden` do not exist: they are not walked through, not returned,
//! and have no part in deciding where a link leads.

use duckdb::{Connection, Row};
use escurel_md::When;

use super::history::page_no;
use super::rows::{AbandonedRow, DriftRow};
use super::tables::number;
use super::{Duck, Reader};
use crate::walk::{Hop, Walk};
use crate::{Bitmap, IndexError};

/// The moment at which only open rows hold.
pub(super) const NOW: i64 = i64::MAX - 1;

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

impl Duck {
    /// Every page that could be reached at `as_of`, each once at its least
    /// depth, by depth and path. The start is not among them.
    pub fn walk(
        &self,
        walk: &Walk<'_>,
        as_of: i64,
        hidden: &Bitmap,
    ) -> Result<Vec<Hop>, IndexError> {
        let params = duckdb::params![
            as_of,
            walk.relations.join("\u{1f}"),
            number(walk.start.0),
            walk.up,
            number(walk.hops())
        ];
        self.ask(WALK, params, hidden, |row| {
            Ok(Hop {
                page: page_no(row, 0)?,
                relation: row.get(1)?,
                depth: row.get::<_, i32>(2)?.cast_unsigned(),
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
