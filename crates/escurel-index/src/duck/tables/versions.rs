//! `versions`: the history of pages as the journal tells it.

use duckdb::{Appender, Result, Row};
use escurel_store::Uid;

use super::{OPEN, number, signed};
use crate::PageNo;
use crate::duck::apply::Dated;
use crate::duck::rows::VersionRow;

pub(in crate::duck) const SQL: &str = include_str!("versions.sql");
pub(in crate::duck) const CLOSE: &str = "UPDATE versions SET valid_to = greatest(valid_from, t.valid_to) FROM touched t \
     WHERE versions.page_no = t.page_no AND versions.valid_to = 9223372036854775807";
pub(in crate::duck) const COLUMNS: &str = "page_no, uid, version, seq, valid_from, valid_to, written_at, actor, origin, path, object, bytes, deleted";

pub(in crate::duck) fn append(rows: &mut Appender<'_>, c: &Dated<'_>) -> Result<()> {
    let v = c.change;
    rows.append_row((
        number(v.no.0),
        v.uid.to_string(),
        signed(v.version),
        signed(v.seq),
        &*v.path,
        v.from,
        c.to,
        v.at,
        &*v.actor,
        &*v.origin,
        &v.object,
        signed(v.bytes),
        v.content.is_none(),
    ))
}

/// Reads [`COLUMNS`], beginning at column `at`.
pub(in crate::duck) fn read(row: &Row<'_>, at: usize) -> Result<VersionRow> {
    let unsigned = |i: usize| row.get::<_, i64>(at + i).map(|n| n.max(0).cast_unsigned());
    let to: i64 = row.get(at + 5)?;
    Ok(VersionRow {
        no: PageNo(row.get::<_, i32>(at)?.cast_unsigned()),
        uid: uid(row, at + 1)?,
        version: unsigned(2)?,
        seq: unsigned(3)?,
        from: row.get(at + 4)?,
        to: (to != OPEN).then_some(to),
        at: row.get(at + 6)?,
        actor: row.get(at + 7)?,
        origin: row.get(at + 8)?,
        path: row.get(at + 9)?,
        object: row.get(at + 10)?,
        bytes: unsigned(11)?,
        deleted: row.get(at + 12)?,
    })
}

pub(in crate::duck) fn uid(row: &Row<'_>, at: usize) -> Result<Uid> {
    let text: String = row.get(at)?;
    text.parse().map_err(|e| {
        duckdb::Error::FromSqlConversionFailure(at, duckdb::types::Type::Text, Box::new(e))
    })
}
