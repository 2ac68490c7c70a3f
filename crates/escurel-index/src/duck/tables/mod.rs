//! The tables: how each is made and how a row gets into it.
//!
//! No unique indexes: they would make bulk loading several times slower, and
//! rows are kept unique by the sequence number that a batch moves forward.

pub(super) mod blocks;
pub(super) mod links;
pub(super) mod meta;
pub(super) mod pages;
pub(super) mod versions;

/// End of validity of what still holds.
pub(super) const OPEN: i64 = i64::MAX;

/// Raise it with every change of a table.
pub(super) const SCHEMA: u32 = 1;

pub(super) const CREATE: [&str; 5] = [
    meta::SQL,
    versions::SQL,
    pages::SQL,
    links::SQL,
    blocks::SQL,
];

/// Tables whose rows end with the version that they belong to.
pub(super) const CLOSE: [&str; 4] = [versions::CLOSE, pages::CLOSE, links::CLOSE, blocks::CLOSE];

/// Numbers are stored signed, as SQL users expect them.
pub(super) fn signed(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

pub(super) fn number(n: u32) -> i32 {
    i32::try_from(n).unwrap_or(i32::MAX)
}
