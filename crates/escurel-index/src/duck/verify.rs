//! Does the file say what the directory says it must?

use duckdb::Row;
use hashbrown::HashMap;

use super::Duck;
use super::apply::Led;
use super::history::page_no;
use super::rows::HeadRow;
use super::tables::{links, versions};
use crate::directory::Place;
use crate::{Directory, Entry, IndexError, LinkFact, PageNo};

const HEADS: &str =
    "SELECT uid, page_no, path, version, seq, skill, id FROM heads ORDER BY page_no";
const PAGES: &str = "SELECT page_no, concat_ws(chr(31), uid, path, version::VARCHAR, seq::VARCHAR, page_type, skill, id, title, \
     coalesce(at_first::VARCHAR, ''), coalesce(at_last::VARCHAR, ''), coalesce(layer, ''), coalesce(scenario, ''), hidden::VARCHAR, \
     frontmatter, valid_from::VARCHAR) FROM heads";
const LINKS: &str = "SELECT page_no, ord, concat_ws(chr(31), kind, coalesce(relation, ''), coalesce(skill, ''), coalesce(id, ''), \
     coalesce(anchor, ''), coalesce(pin, ''), coalesce(alias, ''), coalesce(src_anchor, ''), line::VARCHAR, \
     coalesce(dst_no::VARCHAR, '')) FROM links WHERE valid_to = 9223372036854775807 ORDER BY page_no, ord";

#[derive(Default, PartialEq)]
struct Rows {
    pages: Vec<u64>,
    links: Vec<u64>,
}

fn hash(text: &str) -> u64 {
    rapidhash::v3::rapidhash_v3(text.as_bytes())
}

impl Duck {
    /// Live pages, by number.
    pub fn heads(&self) -> Result<Vec<HeadRow>, IndexError> {
        self.rows(HEADS, [], |row| {
            Ok(HeadRow {
                uid: versions::uid(row, 0)?,
                no: page_no(row, 1)?,
                path: row.get(2)?,
                version: row.get::<_, i64>(3)?.max(0).cast_unsigned(),
                seq: row.get::<_, i64>(4)?.max(0).cast_unsigned(),
                skill: row.get(5)?,
                id: row.get(6)?,
            })
        })
    }

    /// Pages whose rows differ from what `dir` says they must be, by number,
    /// each with what is wrong. The two must have come equally far.
    pub fn differences(&self, dir: &Directory) -> Result<Vec<(PageNo, String)>, IndexError> {
        let mut held: HashMap<PageNo, Rows> = HashMap::new();
        let text =
            |at| move |row: &Row<'_>| Ok((page_no(row, 0)?, hash(&row.get::<_, String>(at)?)));
        for (no, row) in self.rows(PAGES, [], text(1))? {
            held.entry(no).or_default().pages.push(row);
        }
        for (no, row) in self.rows(LINKS, [], text(2))? {
            held.entry(no).or_default().links.push(row);
        }
        let mut wrong = Vec::new();
        for entry in dir.iter() {
            match held.remove(&entry.no) {
                None => wrong.push((entry.no, "no rows".to_owned())),
                Some(rows) if rows.pages != [hash(&page_row(entry))] => {
                    wrong.push((entry.no, "page row differs".into()))
                }
                Some(rows) if rows.links != link_rows(dir, entry) => {
                    wrong.push((entry.no, "link rows differ".into()))
                }
                Some(_) => {}
            }
        }
        wrong.extend(
            held.into_keys()
                .map(|no| (no, "rows of a page that does not exist".to_owned())),
        );
        wrong.sort();
        Ok(wrong)
    }
}

fn page_row(e: &Entry) -> String {
    let f = &*e.facts;
    let text = |n: Option<i64>| n.map_or(String::new(), |n| n.to_string());
    [
        &*e.uid.to_string(),
        &e.path,
        &e.version.to_string(),
        &e.seq.to_string(),
        f.page_type.as_str(),
        &f.skill,
        &f.id,
        &f.title,
        &text(f.at.map(|w| w.first)),
        &text(f.at.map(|w| w.last)),
        f.layer.as_deref().unwrap_or(""),
        f.scenario.as_deref().unwrap_or(""),
        if f.hidden { "true" } else { "false" },
        &f.frontmatter,
        &e.from.to_string(),
    ]
    .join("\u{1f}")
}

fn link_rows(dir: &Directory, e: &Entry) -> Vec<u64> {
    e.facts
        .links
        .iter()
        .map(|l| hash(&link_row(dir, e, l)))
        .collect()
}

fn link_row(dir: &Directory, e: &Entry, l: &LinkFact) -> String {
    let led = Led::of(dir, l, Place::of(e), e.facts.scenario.as_deref());
    [
        links::kind_name(l.kind),
        l.relation.as_deref().unwrap_or(""),
        l.skill().unwrap_or(""),
        l.id().unwrap_or(""),
        l.anchor().unwrap_or(""),
        l.version().unwrap_or(""),
        l.alias().unwrap_or(""),
        l.src_anchor().unwrap_or(""),
        &l.line.to_string(),
        &led.to.map_or(String::new(), |no| no.0.to_string()),
    ]
    .join("\u{1f}")
}
