//! `pages`: what each version said of itself.

use duckdb::{Appender, Result, params};

use super::{number, signed};
use crate::Facts;
use crate::duck::apply::Dated;

pub(in crate::duck) const SQL: &str = include_str!("pages.sql");
pub(in crate::duck) const CLOSE: &str = "UPDATE pages SET valid_to = greatest(valid_from, t.valid_to) FROM touched t \
     WHERE pages.page_no = t.page_no AND pages.valid_to = 9223372036854775807";

pub(in crate::duck) fn append(rows: &mut Appender<'_>, c: &Dated<'_>, facts: &Facts) -> Result<()> {
    let v = c.change;
    rows.append_row(params![
        number(v.no.0),
        signed(v.version),
        signed(v.seq),
        v.uid.to_string(),
        &*v.path,
        facts.page_type.as_str(),
        &*facts.skill,
        &*facts.id,
        &*facts.title,
        facts.at.map(|w| w.first),
        facts.at.map(|w| w.last),
        facts.layer.as_deref(),
        facts.scenario.as_deref(),
        facts.hidden,
        &*facts.frontmatter,
        v.from,
        c.to,
    ])
}
