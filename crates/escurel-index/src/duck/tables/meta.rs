//! `meta`: which store this file belongs to and how far it has come.

use duckdb::{Connection, Result, params};

pub(in crate::duck) const SQL: &str = include_str!("meta.sql");

pub(in crate::duck) fn get(conn: &Connection, key: &str) -> Result<Option<String>> {
    let mut statement = conn.prepare("SELECT value FROM meta WHERE key = ?")?;
    let mut rows = statement.query(params![key])?;
    rows.next()?.map(|row| row.get(0)).transpose()
}

pub(in crate::duck) fn set(conn: &Connection, key: &str, value: &str) -> Result<()> {
    if conn.execute(
        "UPDATE meta SET value = ? WHERE key = ?",
        params![value, key],
    )? == 0
    {
        conn.execute("INSERT INTO meta VALUES (?, ?)", params![key, value])?;
    }
    Ok(())
}
