//! `blocks`: which anchors a version had.

use duckdb::{Appender, Result, params};
use escurel_md::BlockKind;

use super::{number, signed};
use crate::duck::apply::Dated;
use crate::duck::rows::BlockRow;

pub(in crate::duck) const SQL: &str = include_str!("blocks.sql");
pub(in crate::duck) const CLOSE: &str = "UPDATE blocks SET valid_to = greatest(valid_from, t.valid_to) FROM touched t \
     WHERE blocks.page_no = t.page_no AND blocks.valid_to = 9223372036854775807";

fn kind_name(kind: BlockKind) -> &'static str {
    match kind {
        BlockKind::Heading => "heading",
        BlockKind::Paragraph => "paragraph",
        BlockKind::List => "list",
        BlockKind::Quote => "quote",
        BlockKind::Code => "code",
        BlockKind::Table => "table",
        BlockKind::Html => "html",
        BlockKind::Rule => "rule",
        BlockKind::Comment => "comment",
    }
}

pub(in crate::duck) fn append(
    rows: &mut Appender<'_>,
    c: &Dated<'_>,
    ord: i32,
    block: &BlockRow,
) -> Result<()> {
    rows.append_row(params![
        number(c.change.no.0),
        signed(c.change.version),
        ord,
        &block.anchor,
        kind_name(block.kind),
        number(block.line),
        c.change.from,
        c.to,
    ])
}
