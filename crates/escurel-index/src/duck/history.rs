//! Pages as they were.

use duckdb::{Params, Row};
use escurel_store::Uid;

use super::Duck;
use super::rows::{Direction, EdgeRow, PageRow, VersionRow};
use super::tables::{OPEN, links, number, versions};
use crate::{IndexError, PageNo};

/// A page number out of a column.
pub(super) fn page_no(row: &Row<'_>, at: usize) -> duckdb::Result<PageNo> {
    row.get::<_, i32>(at).map(|n| PageNo(n.cast_unsigned()))
}

impl Duck {
    pub(super) fn rows<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnMut(&Row<'_>) -> duckdb::Result<T>,
    ) -> Result<Vec<T>, IndexError> {
        let conn = self.reader()?;
        let ask = || {
            conn.prepare_cached(sql)?
                .query_map(params, read)?
                .collect::<duckdb::Result<Vec<T>>>()
        };
        ask().map_err(IndexError::sql("cannot read the index"))
    }

    /// Oldest first.
    pub fn versions(&self, uid: Uid) -> Result<Vec<VersionRow>, IndexError> {
        let sql = format!(
            "SELECT {} FROM versions WHERE uid = ? ORDER BY seq",
            versions::COLUMNS
        );
        self.rows(&sql, [uid.to_string()], |row| versions::read(row, 0))
    }

    /// The version that held at `t`; a tombstone is a version.
    pub fn version_at(&self, uid: Uid, t: i64) -> Result<Option<VersionRow>, IndexError> {
        let sql = format!(
            "SELECT {} FROM versions WHERE uid = $1 AND valid_from <= $2 AND $2 < valid_to ORDER BY seq DESC LIMIT 1",
            versions::COLUMNS
        );
        let rows = self.rows(&sql, duckdb::params![uid.to_string(), t], |row| {
            versions::read(row, 0)
        })?;
        Ok(rows.into_iter().next())
    }

    /// The versions that held at `t` and do no more, without tombstones, by page.
    pub fn superseded_since(&self, t: i64) -> Result<Vec<VersionRow>, IndexError> {
        let sql = format!(
            "SELECT {} FROM versions WHERE valid_from <= $1 AND $1 < valid_to AND valid_to < $2 AND NOT deleted \
             ORDER BY page_no, seq",
            versions::COLUMNS
        );
        self.rows(&sql, [t, OPEN], |row| versions::read(row, 0))
    }

    /// Who has this path, or had it last.
    pub fn uid_at_path(&self, path: &str) -> Result<Option<Uid>, IndexError> {
        let sql =
            "SELECT uid FROM versions WHERE path = ? ORDER BY valid_to DESC, seq DESC LIMIT 1";
        Ok(self
            .rows(sql, [path], |row| versions::uid(row, 0))?
            .into_iter()
            .next())
    }

    /// What the version that held at `t` said of itself; none if there was none or it was a tombstone.
    pub fn page_at(&self, no: PageNo, t: i64) -> Result<Option<PageRow>, IndexError> {
        let sql = "SELECT page_no, version, path, skill, id, title, at_first, frontmatter, valid_from, valid_to \
             FROM pages WHERE page_no = $1 AND valid_from <= $2 AND $2 < valid_to ORDER BY seq DESC LIMIT 1";
        let read = |row: &Row<'_>| {
            let to: i64 = row.get(9)?;
            Ok(PageRow {
                no: page_no(row, 0)?,
                version: row.get::<_, i64>(1)?.max(0).cast_unsigned(),
                path: row.get(2)?,
                skill: row.get(3)?,
                id: row.get(4)?,
                title: row.get(5)?,
                at: row.get(6)?,
                frontmatter: row.get(7)?,
                from: row.get(8)?,
                to: (to != OPEN).then_some(to),
            })
        };
        Ok(self
            .rows(sql, duckdb::params![number(no.0), t], read)?
            .into_iter()
            .next())
    }

    /// Links of the versions that held at `t`, by source path, then position.
    /// Both ends existed at `t`; with `Out`, links that lead nowhere come too.
    pub fn edges_at(
        &self,
        no: PageNo,
        direction: Direction,
        t: i64,
    ) -> Result<Vec<EdgeRow>, IndexError> {
        let sql = include_str!("queries/edges_at.sql");
        let out = direction != Direction::In;
        let into = direction != Direction::Out;
        let read = |row: &Row<'_>| {
            Ok(EdgeRow {
                src: page_no(row, 0)?,
                dst: row
                    .get::<_, Option<i32>>(1)?
                    .map(|n| PageNo(n.cast_unsigned())),
                kind: links::kind_of(&row.get::<_, String>(2)?),
                relation: row.get(3)?,
                skill: row.get(4)?,
                id: row.get(5)?,
                anchor: row.get(6)?,
                version: row.get(7)?,
                alias: row.get(8)?,
                src_anchor: row.get(9)?,
                line: row.get::<_, i32>(10)?.cast_unsigned(),
            })
        };
        self.rows(sql, duckdb::params![number(no.0), t, out, into], read)
    }

    /// Instances of a skill that existed at `t`, by path.
    pub fn instances_at(
        &self,
        skill: &str,
        t: i64,
    ) -> Result<Vec<(PageNo, VersionRow)>, IndexError> {
        let columns: Vec<String> = versions::COLUMNS
            .split(", ")
            .map(|c| format!("v.{c}"))
            .collect();
        let sql = format!(
            "SELECT {} FROM versions v JOIN pages p ON p.page_no = v.page_no AND p.version = v.version AND p.seq = v.seq \
             WHERE p.skill = $1 AND p.page_type = 'instance' AND NOT v.deleted AND v.valid_from <= $2 AND $2 < v.valid_to \
             ORDER BY v.path, v.page_no",
            columns.join(", ")
        );
        let rows = self.rows(&sql, duckdb::params![skill, t], |row| {
            versions::read(row, 0)
        })?;
        Ok(rows.into_iter().map(|v| (v.no, v)).collect())
    }
}
