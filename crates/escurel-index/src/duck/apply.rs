//! Versions into tables: one batch, one transaction.
//!
//! Invariant: the sequence number in `meta` moves in the transaction that
//! holds the rows up to it, so a batch is in the file wholly or not at all.

use std::sync::Arc;

use duckdb::{Appender, Connection, Result};
use hashbrown::HashMap;
use rayon::prelude::*;

use super::Duck;
use super::rows::VersionChange;
use super::tables::{self, OPEN, blocks, links, meta, number, pages, signed, versions};
use crate::directory::{Name, Place};
use crate::{Directory, Entry, Facts, IndexError, LinkFact, PageNo, Scope};

/// A version with the end of its validity.
pub(super) struct Dated<'a> {
    pub change: &'a VersionChange,
    pub to: i64,
}

/// Where a link leads, and who could answer to it if others did not.
pub(super) struct Led {
    pub to: Option<PageNo>,
    /// Empty where there is at most one candidate.
    pub alternates: Vec<(u8, PageNo)>,
}

impl Led {
    /// A link at `path`, read in `scenario` with every page visible.
    pub fn of(dir: &Directory, link: &LinkFact, place: Place<'_>, scenario: Option<&str>) -> Led {
        let scope = Scope {
            scenario,
            visible: &|_| true,
        };
        let to = dir
            .lookup(Name::from(link), place, &scope)
            .found()
            .map(|e| e.no);
        if scenario.is_some() {
            return Led {
                to,
                alternates: Vec::new(),
            };
        }
        let mut alternates: Vec<(u8, PageNo)> = Vec::new();
        for (rank, no) in dir.ranked(Name::from(link), place) {
            let Some(candidate) = dir.get(no) else {
                continue;
            };
            for entry in dir
                .twins(&candidate.facts)
                .iter()
                .filter_map(|twin| dir.get(*twin))
            {
                let known = alternates.iter().any(|(_, known)| *known == entry.no);
                if entry.facts.scenario.is_none() && !known {
                    alternates.push((rank * 2 + u8::from(entry.facts.is_base_layer()), entry.no));
                }
            }
        }
        if alternates.len() < 2 {
            alternates.clear();
        }
        Led { to, alternates }
    }
}

fn led_links(dir: &Directory, facts: &Facts, place: Place<'_>) -> Vec<Led> {
    facts
        .links
        .iter()
        .map(|l| Led::of(dir, l, place, facts.scenario.as_deref()))
        .collect()
}

impl Duck {
    /// Takes in versions up to journal number `seq` and resolves the links of
    /// `relink` anew. Versions that are in the file already are skipped.
    /// `dir` may be further on than `seq`, but not behind it.
    pub fn apply(
        &self,
        changes: &[VersionChange],
        relink: &[PageNo],
        dir: &Directory,
        seq: u64,
    ) -> Result<(), IndexError> {
        let mut writer = self.writer.lock();
        let done = self.seq();
        if seq <= done {
            return Ok(());
        }
        let mut fresh: Vec<&VersionChange> = changes.iter().filter(|c| c.seq > done).collect();
        fresh.sort_by_key(|c| c.seq);
        let batch = dated(&fresh);
        let known = writer.known;
        let wrap = IndexError::sql("cannot apply versions");
        let tx = writer.conn.transaction().map_err(&wrap)?;
        write_batch(&tx, &batch, known, dir).map_err(&wrap)?;
        write_links(&tx, relink, &batch, dir).map_err(&wrap)?;
        meta::set(&tx, "seq", &seq.to_string()).map_err(&wrap)?;
        tx.commit().map_err(&wrap)?;
        writer.known = batch
            .iter()
            .map(|d| d.change.no.0 + 1)
            .fold(known, u32::max);
        self.reached(seq);
        Ok(())
    }
}

/// Each version holds until the next one of the same page.
fn dated<'a>(changes: &[&'a VersionChange]) -> Vec<Dated<'a>> {
    let mut next: HashMap<PageNo, i64> = HashMap::new();
    let mut batch = Vec::with_capacity(changes.len());
    for change in changes.iter().rev() {
        let to = next
            .insert(change.no, change.from)
            .map_or(OPEN, |to| to.max(change.from));
        batch.push(Dated { change, to });
    }
    batch.reverse();
    batch
}

fn write_batch(tx: &Connection, batch: &[Dated<'_>], known: u32, dir: &Directory) -> Result<()> {
    close_previous(tx, batch, known)?;
    let led: Vec<Vec<Led>> = batch
        .par_iter()
        .with_min_len(64)
        .map(|d| led_of(d, dir))
        .collect();
    let mut version_rows = tx.appender("versions")?;
    for d in batch {
        versions::append(&mut version_rows, d)?;
    }
    version_rows.flush()?;
    let with_content = || {
        batch
            .iter()
            .filter_map(|d| Some((d, d.change.content.as_ref()?)))
    };
    let mut page_rows = tx.appender("pages")?;
    for (d, facts) in with_content() {
        pages::append(&mut page_rows, d, facts)?;
    }
    page_rows.flush()?;
    write_new_links(tx, batch, &led)?;
    let mut block_rows = tx.appender("blocks")?;
    for (d, _) in with_content() {
        for (ord, block) in d.change.blocks.iter().enumerate() {
            blocks::append(&mut block_rows, d, ord as i32, block)?;
        }
    }
    block_rows.flush()
}

fn led_of(d: &Dated<'_>, dir: &Directory) -> Vec<Led> {
    let place = Place {
        no: Some(d.change.no),
        path: Some(&d.change.path),
    };
    d.change
        .content
        .as_ref()
        .map_or(Vec::new(), |facts| led_links(dir, facts, place))
}

fn write_new_links(tx: &Connection, batch: &[Dated<'_>], led: &[Vec<Led>]) -> Result<()> {
    let mut rows = tx.appender("links")?;
    let mut alternates = tx.appender("alternates")?;
    for (d, led) in batch.iter().zip(led) {
        let Some(facts) = &d.change.content else {
            continue;
        };
        for (ord, (link, led)) in facts.links.iter().zip(led).enumerate() {
            links::append(&mut rows, d, ord as i32, link, led)?;
            if d.to == OPEN {
                links::append_alternates(&mut alternates, d.change.no, ord as i32, led)?;
            }
        }
    }
    rows.flush()?;
    alternates.flush()
}

/// Ends the rows of the versions that this batch replaces.
fn close_previous(tx: &Connection, batch: &[Dated<'_>], known: u32) -> Result<()> {
    let mut first: HashMap<PageNo, i64> = HashMap::new();
    for d in batch.iter().filter(|d| d.change.no.0 < known) {
        first.entry(d.change.no).or_insert(d.change.from);
    }
    if first.is_empty() {
        return Ok(());
    }
    tx.execute("DELETE FROM touched", [])?;
    let mut touched = temp(tx, "touched")?;
    for (no, from) in first {
        touched.append_row((number(no.0), from))?;
    }
    touched.flush()?;
    for sql in tables::CLOSE.iter().chain([&links::FORGET_ALTERNATES]) {
        tx.execute(sql, [])?;
    }
    Ok(())
}

fn temp<'c>(conn: &'c Connection, table: &str) -> Result<Appender<'c>> {
    conn.appender_to_catalog_and_db(table, "temp", "main")
}

/// Brings the targets of open link rows up to date. Rows of a version that is
/// not the directory's are left: the batch that replaces them is on its way.
fn write_links(
    tx: &Connection,
    relink: &[PageNo],
    batch: &[Dated<'_>],
    dir: &Directory,
) -> Result<()> {
    if relink.is_empty() {
        return Ok(());
    }
    let written: HashMap<PageNo, u64> = batch
        .iter()
        .map(|d| (d.change.no, d.change.version))
        .collect();
    let mut relink = relink.to_vec();
    relink.sort_unstable();
    relink.dedup();
    let pages = relink.iter().filter_map(|no| dir.get(*no));
    let pages: Vec<&Arc<Entry>> = pages
        .filter(|e| written.get(&e.no) != Some(&e.version))
        .collect();
    if pages.is_empty() {
        return Ok(());
    }
    let led: Vec<Vec<Led>> = pages
        .par_iter()
        .with_min_len(64)
        .map(|e| led_links(dir, &e.facts, Place::of(e)))
        .collect();
    tx.execute("DELETE FROM relinked", [])?;
    let mut rows = temp(tx, "relinked")?;
    for (entry, led) in pages.iter().zip(&led) {
        for (ord, led) in led.iter().enumerate() {
            let to = led.to.map(|no| number(no.0));
            rows.append_row((number(entry.no.0), ord as i32, signed(entry.version), to))?;
        }
    }
    rows.flush()?;
    tx.execute(links::RELINK, [])?;
    tx.execute(links::FORGET_RELINKED, [])?;
    let mut alternates = tx.appender("alternates")?;
    for (entry, led) in pages.iter().zip(&led) {
        for (ord, led) in led.iter().enumerate() {
            links::append_alternates(&mut alternates, entry.no, ord as i32, led)?;
        }
    }
    alternates.flush()
}
