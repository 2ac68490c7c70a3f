//! `links` and `alternates`: where pages point, and to whom else that could be.

use duckdb::{Appender, Result, params};
use escurel_md::LinkKind;

use super::{number, signed};
use crate::duck::apply::{Dated, Led};
use crate::{LinkFact, PageNo};

pub(in crate::duck) const SQL: &str = include_str!("links.sql");
pub(in crate::duck) const CLOSE: &str = "UPDATE links SET valid_to = greatest(valid_from, t.valid_to) FROM touched t \
     WHERE links.page_no = t.page_no AND links.valid_to = 9223372036854775807";
pub(in crate::duck) const FORGET_ALTERNATES: &str =
    "DELETE FROM alternates WHERE page_no IN (SELECT page_no FROM touched)";
pub(in crate::duck) const RELINK: &str = "UPDATE links SET dst_no = r.dst_no FROM relinked r \
     WHERE links.page_no = r.page_no AND links.ord = r.ord AND links.version = r.version \
     AND links.valid_to = 9223372036854775807 AND links.dst_no IS DISTINCT FROM r.dst_no";
pub(in crate::duck) const FORGET_RELINKED: &str =
    "DELETE FROM alternates WHERE page_no IN (SELECT page_no FROM relinked)";

const KINDS: [(LinkKind, &str); 4] = [
    (LinkKind::Wikilink, "wikilink"),
    (LinkKind::Embed, "embed"),
    (LinkKind::Markdown, "markdown"),
    (LinkKind::Asset, "asset"),
];

pub(in crate::duck) fn kind_name(kind: LinkKind) -> &'static str {
    KINDS
        .iter()
        .find(|(k, _)| *k == kind)
        .map_or("wikilink", |(_, name)| name)
}

pub(in crate::duck) fn kind_of(name: &str) -> LinkKind {
    KINDS
        .iter()
        .find(|(_, n)| *n == name)
        .map_or(LinkKind::Wikilink, |(kind, _)| *kind)
}

pub(in crate::duck) fn append(
    rows: &mut Appender<'_>,
    c: &Dated<'_>,
    ord: i32,
    link: &LinkFact,
    led: &Led,
) -> Result<()> {
    rows.append_row(params![
        number(c.change.no.0),
        signed(c.change.version),
        ord,
        kind_name(link.kind),
        link.relation.as_deref(),
        link.skill(),
        link.id(),
        link.anchor(),
        link.version(),
        link.alias(),
        link.src_anchor(),
        number(link.line),
        led.to.map(|no| number(no.0)),
        c.change.from,
        c.to,
    ])
}

pub(in crate::duck) fn append_alternates(
    rows: &mut Appender<'_>,
    page: PageNo,
    ord: i32,
    led: &Led,
) -> Result<()> {
    led.alternates.iter().try_for_each(|(rank, candidate)| {
        rows.append_row([number(page.0), ord, i32::from(*rank), number(candidate.0)])
    })
}
