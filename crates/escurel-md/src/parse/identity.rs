//! Type, skill, id and title of a page.
//!
//! The header decides; a path that says something else is only reported.

use crate::issue::Issue;
use crate::names::nfc;
use crate::page::{Layout, Page, PageType};
use crate::schema;

const DEFAULT_SKILL: &str = "note";

pub(super) fn fill(page: &mut Page, layout: Layout) {
    let map = &page.frontmatter;
    let name = |key: &str| schema::text(map.get(key)).map(|s| nfc(&s).into_owned());
    let (id, skill, kind) = (name("id"), name("skill"), name("type"));
    page.page_type = match kind.as_deref() {
        Some("skill") => PageType::Skill,
        _ => PageType::Instance,
    };
    let stem = nfc(stem(&page.path)).into_owned();
    if page.page_type == PageType::Skill {
        page.id = id.or(skill).unwrap_or_else(|| stem.clone());
        page.skill = page.id.clone();
    } else {
        page.skill = skill.unwrap_or_else(|| DEFAULT_SKILL.to_owned());
        page.id = id.unwrap_or_else(|| match layout {
            Layout::Vault => nfc(without_extension(&page.path)).into_owned(),
            Layout::Tenant => stem.clone(),
        });
    }
    let first = page
        .headings
        .iter()
        .find(|h| h.level == 1 && !h.text.is_empty());
    let title =
        schema::text(page.frontmatter.get("title")).or_else(|| first.map(|h| h.text.clone()));
    page.title = title.unwrap_or(stem);
    if layout == Layout::Tenant && !page.header_unreadable() {
        check_path(page);
    }
}

/// `…/instances/<skill>/<id>.md` and `…/skills/<id>.md` say what they hold.
fn check_path(page: &mut Page) {
    let mut parts: Vec<&str> = page.path.split('/').collect();
    if parts.first() == Some(&"markdown") {
        parts.remove(0);
    }
    if matches!(parts.first(), Some(&"base" | &"scenarios")) && parts.len() > 2 {
        parts.drain(..2);
    }
    let (kind, skill, id) = match parts.as_slice() {
        ["skills", file] => (PageType::Skill, nfc(stem(file)), nfc(stem(file))),
        ["instances", skill, .., file] => (PageType::Instance, nfc(skill), nfc(stem(file))),
        _ => return,
    };
    let same_id = page.id == id || page.id.rsplit('/').next() == Some(&*id);
    if page.page_type == kind && page.skill == skill && same_id {
        return;
    }
    let message = format!(
        "The path says {} `{skill}::{id}`, the header {} `{}::{}`; the header holds.",
        kind.as_str(),
        page.page_type.as_str(),
        page.skill,
        page.id
    );
    page.issues.push(Issue::new(
        "identity_path_mismatch",
        "frontmatter.id",
        message,
    ));
}

fn stem(path: &str) -> &str {
    without_extension(path.rsplit('/').next().unwrap_or(path))
}

fn is_page_extension(extension: &str) -> bool {
    extension.eq_ignore_ascii_case("md") || extension.eq_ignore_ascii_case("markdown")
}

fn without_extension(path: &str) -> &str {
    match path.rsplit_once('.') {
        Some((stem, extension)) if is_page_extension(extension) && !stem.is_empty() => stem,
        _ => path,
    }
}
