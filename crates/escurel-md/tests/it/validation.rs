//! Findings that need to know what else exists.

use std::collections::HashSet;
use std::sync::Arc;

use escurel_md::{CODES, Layout, Link, Page, SkillSchema, Target, World, parse, validate};
use expect_test::expect;

struct Fake;

impl World for Fake {
    fn skill(&self, id: &str) -> Option<Arc<SkillSchema>> {
        let source = b"---\ntype: skill\nrequired_frontmatter: [tier, id]\n---\n";
        let page = parse(&format!("markdown/skills/{id}.md"), source, Layout::Tenant);
        page.schema
            .filter(|_| matches!(id, "customer" | "note"))
            .map(Arc::new)
    }

    fn twins(&self, page: &Page) -> Vec<String> {
        let taken = page.id == "taken";
        taken.then(|| "other.md".to_owned()).into_iter().collect()
    }

    fn target(&self, _from_path: &str, link: &Link) -> Target {
        match link.target.id.as_deref() {
            Some("gone") => Target::Missing,
            Some("two") => Target::Ambiguous(vec!["[[a::two]]".into(), "[[b::two]]".into()]),
            _ => Target::Found {
                anchors_ok: link.target.anchor.as_deref().is_none_or(|a| a == "here"),
                version_known: link.target.version_number().map(|v| v < 6),
            },
        }
    }
}

#[test]
fn findings_come_in_order() {
    let source = "---\nskill: customer\nat: soon\nowner: [[gone]]\n---\n[[x#here]] [[x#there]] [[x@3]] [[x@99]]\n[[two]] [[who::x]] [[::bad]] [[note::a]b]]\n";
    let page = parse(
        "markdown/instances/customer/page.md",
        source.as_bytes(),
        Layout::Tenant,
    );
    let out: Vec<String> = validate(&page, &Fake)
        .iter()
        .map(|i| {
            format!(
                "{:?} {} {} {} {:?}",
                i.severity, i.code, i.location, i.message, i.suggestion
            )
        })
        .collect();
    expect![[r#"
        Warning frontmatter_at_unreadable frontmatter.at `at` is neither an instant nor a day. Some("Write 2026-04-12T10:00:00Z or 2026-04-12.")
        Warning frontmatter_required_key_missing frontmatter.tier The skill `customer` requires `tier`. Some("Add `tier:` to the header.")
        Warning link_unresolved line:4 col:8 No page answers to [[gone]]. None
        Error anchor_missing line:6 col:12 [[x#there]] has no heading or block `there`. None
        Error version_unknown line:6 col:32 [[x@99]] has no version `99`. None
        Warning link_ambiguous line:7 col:1 [[two]] may mean 2 pages. Some("Write one of: [[a::two]], [[b::two]].")
        Error unknown_skill line:7 col:9 [[who::x]] names no skill that exists: `who`. None
        Error wikilink_malformed line:7 col:20 a wikilink has a skill before `::`; the form is [[skill::id#anchor@version|alias]] None
        Error wikilink_malformed line:7 col:30 a wikilink cannot hold brackets; the form is [[skill::id#anchor@version|alias]] None"#]].assert_eq(&out.join("\n"));
    let unknown = parse("a.md", b"---\nskill: nothing\n---\n", Layout::Vault);
    assert!(
        validate(&unknown, &Fake)
            .iter()
            .any(|i| i.code == "unknown_skill")
    );
}

#[test]
fn values_that_no_key_can_hold_are_found_with_their_line() {
    let check = |header: &str, expect: &str| {
        for layout in [Layout::Vault, Layout::Tenant] {
            let text = format!("---\nx: 1\n{header}\n---\ntext\n");
            let found = validate(&parse("a.md", text.as_bytes(), layout), &Fake);
            let found: Vec<_> = found
                .iter()
                .filter(|i| !matches!(i.code, "frontmatter_required_key_missing"))
                .map(|i| format!("{} {}", i.code, i.location))
                .collect();
            assert_eq!(found.join(", "), expect, "{header}");
        }
    };
    let bad = "frontmatter_value_unreadable line:3 col:1";
    check("type: banana", bad);
    check("skill: [x]", bad);
    check("aliases: {a: b}", bad);
    check("tags: [a, [b]]", bad);
    check("id: [1]", bad);
    check("title: {a: b}", bad);
    check("type: instance", "");
    check("aliases: [one, two]", "");
    check("tags:", "");
    check("id: taken", "duplicate_id frontmatter.id");
}

#[test]
fn codes_are_unique() {
    let codes: HashSet<&str> = CODES.iter().map(|c| c.code).collect();
    assert_eq!(codes.len(), CODES.len());
}
