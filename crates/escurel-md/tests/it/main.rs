//! Behaviour of the public API, on the files that people and attackers write.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

mod body;
mod corpus;
mod edit;
mod frontmatter;
mod hostile;
mod links;
mod names;
mod properties;
mod schema;
mod validation;

use escurel_md::{Layout, Page, parse};

/// Reads a page of a vault.
fn page(source: &str) -> Page {
    parse("dir/page.md", source.as_bytes(), Layout::Vault)
}

/// Everything that a reader of a page can see, one fact a line.
fn describe(page: &Page) -> String {
    let mut out = String::new();
    let mut line = |s: String| {
        out.push_str(&s);
        out.push('\n');
    };
    line(format!(
        "{} {}::{} {:?}",
        page.page_type.as_str(),
        page.skill,
        page.id,
        page.title
    ));
    for (key, value) in &page.frontmatter {
        line(format!("{key} = {value}"));
    }
    if !page.tags.is_empty() {
        line(format!("tags {:?}", page.tags));
    }
    line(format!("body at line {}", page.body_line));
    for h in &page.headings {
        line(format!(
            "h{} {:?} #{} line {}",
            h.level, h.text, h.anchor, h.line
        ));
    }
    for link in &page.links {
        let relation = link.relation.as_deref().unwrap_or("body");
        line(format!(
            "{:?} {} {}:{} {} -> {}",
            link.kind,
            relation,
            link.line,
            link.col,
            link.raw,
            link.target.render()
        ));
    }
    for issue in &page.issues {
        line(format!(
            "{} {} {}",
            issue.code, issue.location, issue.message
        ));
    }
    out
}
