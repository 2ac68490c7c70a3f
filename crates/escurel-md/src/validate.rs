//! Every finding about a page, given what else exists.
//!
//! Knows no storage: the world answers two questions. Invariant: findings
//! come in the order of their positions, the header's keys first.

use std::sync::Arc;

use crate::issue::{self, Issue};
use serde_json::Value;

use crate::page::{Link, LinkKind, Page, PageType};
use crate::parse::shapes::unknown_type;
use crate::schema::SkillSchema;

/// What a link leads to. Pages that the asker may not see are `Missing`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    Found {
        /// True when the link has no anchor.
        anchors_ok: bool,
        /// None when the link pins no version.
        version_known: Option<bool>,
    },
    Missing,
    /// The candidates, as typed links or paths.
    Ambiguous(Vec<String>),
}

pub trait World {
    fn skill(&self, id: &str) -> Option<Arc<SkillSchema>>;
    fn target(&self, from_path: &str, link: &Link) -> Target;
    /// Paths of other pages that are what this one says it is.
    fn twins(&self, page: &Page) -> Vec<String>;
}

/// Findings of parsing, of the skill's schema and of the links.
pub fn validate(page: &Page, world: &dyn World) -> Vec<Issue> {
    let mut found = page.issues.clone();
    check_type(page, &mut found);
    found.extend(duplicate_id(page, &world.twins(page)));
    if page.page_type == PageType::Instance {
        check_schema(page, world, &mut found);
    }
    for link in &page.links {
        check_link(page, link, world, &mut found);
    }
    found.sort_by_key(|i| position(&i.location));
    found
}

/// A word that a foreign folder may use as it likes, but hardly in a draft.
fn check_type(page: &Page, found: &mut Vec<Issue>) {
    let word = page.frontmatter.get("type").and_then(Value::as_str);
    let Some((message, instead)) = word.and_then(unknown_type) else {
        return;
    };
    if found.iter().any(|i| i.message == message) {
        return;
    }
    let header = page.text.get(..page.body.start).unwrap_or_default();
    let line = header.lines().position(|l| l.starts_with("type"));
    let location = line.map_or_else(
        || "frontmatter.type".to_owned(),
        |index| issue::at(index as u32 + 1, 1),
    );
    let issue = Issue::new("frontmatter_value_unreadable", location, message);
    found.push(issue.suggest(instead));
}

/// The finding that other pages claim the name of this one.
pub fn duplicate_id(page: &Page, twins: &[String]) -> Option<Issue> {
    let first = twins.first()?;
    let message = format!("{first} is [[{}::{}]] already.", page.skill, page.id);
    let instead = "Choose another id; if this is a new text of that page, give it as as_page_id.";
    Some(Issue::new("duplicate_id", "frontmatter.id", message).suggest(instead))
}

fn check_schema(page: &Page, world: &dyn World, found: &mut Vec<Issue>) {
    let Some(schema) = world.skill(&page.skill) else {
        let message = format!("No skill `{}` exists.", page.skill);
        found.push(Issue::new("unknown_skill", "frontmatter.skill", message));
        return;
    };
    for key in &schema.required_frontmatter {
        if !has(page, key) {
            let message = format!("The skill `{}` requires `{key}`.", page.skill);
            let issue = Issue::new(
                "frontmatter_required_key_missing",
                format!("frontmatter.{key}"),
                message,
            );
            found.push(issue.suggest(format!("Add `{key}:` to the header.")));
        }
    }
}

fn has(page: &Page, key: &str) -> bool {
    // Identity keys have defaults that fulfil the requirement.
    matches!(key, "id" | "skill" | "type")
        || page.frontmatter.get(key).is_some_and(|v| !v.is_null())
}

fn check_link(page: &Page, link: &Link, world: &dyn World, found: &mut Vec<Issue>) {
    let at = issue::at(link.line, link.col);
    if let Some(skill) = link
        .target
        .skill
        .as_deref()
        .filter(|s| world.skill(s).is_none())
    {
        found.push(Issue::new(
            "unknown_skill",
            at,
            format!("{} names no skill that exists: `{skill}`.", link.raw),
        ));
        return;
    }
    match world.target(&page.path, link) {
        Target::Found {
            anchors_ok,
            version_known,
        } => {
            if let Some(anchor) = link
                .target
                .anchor
                .as_deref()
                .filter(|_| !anchors_ok && link.kind != LinkKind::Asset)
            {
                found.push(Issue::new(
                    "anchor_missing",
                    at.clone(),
                    format!("{} has no heading or block `{anchor}`.", link.raw),
                ));
            }
            if version_known == Some(false) {
                let version = link.target.version.as_deref().unwrap_or("");
                found.push(Issue::new(
                    "version_unknown",
                    at,
                    format!("{} has no version `{version}`.", link.raw),
                ));
            }
        }
        Target::Missing => found.push(Issue::new(
            "link_unresolved",
            at,
            format!("No page answers to {}.", link.raw),
        )),
        Target::Ambiguous(candidates) => {
            let issue = Issue::new(
                "link_ambiguous",
                at,
                format!("{} may mean {} pages.", link.raw, candidates.len()),
            );
            found.push(issue.suggest(format!("Write one of: {}.", candidates.join(", "))));
        }
    }
}

/// Header keys stand before everything that has a line.
fn position(location: &str) -> (u32, u32) {
    let parsed = location.strip_prefix("line:").and_then(|rest| {
        let (line, col) = rest.split_once(" col:")?;
        Some((line.parse().ok()?, col.parse().ok()?))
    });
    parsed.unwrap_or((0, 0))
}
