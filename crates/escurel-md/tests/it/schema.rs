//! What skill pages declare.

use escurel_md::{Layout, instance_acl, parse};
use expect_test::{Expect, expect};

fn check(header: &str, expected: Expect) {
    let source = format!("---\ntype: skill\nid: s\n{header}---\n");
    let page = parse("markdown/skills/s.md", source.as_bytes(), Layout::Tenant);
    let schema = page
        .schema
        .as_ref()
        .map(|s| serde_json::to_string(s).unwrap_or_default())
        .unwrap_or_default();
    let issues: Vec<String> = page
        .issues
        .iter()
        .map(|i| format!("\n{} {} {}", i.code, i.location, i.message))
        .collect();
    expected.assert_eq(&format!("{schema}{}", issues.concat()));
}

#[test]
fn a_full_declaration() {
    check(
        "description: A buyer\nrequired_frontmatter: [tier, at]\noptional_frontmatter: [owner]\nautonomy: \" Review \"\nvisibility: owner\nowner_field: credential\n\
         acl:\n  read: [public]\n  create: [owner]\n  update: owner\n  delete: []\nbackend:\n  kind: sql_view\n  search_text: [name]\nlayer: overlay\npromotable: true\n\
         params:\n  - {name: window, kind: string, required: true, label: Window, description: 'e.g. 30d'}\n  - {name: n, type: INT}\n  - {name: flag, kind: bool}\n",
        expect![[
            r#"{"id":"s","description":"A buyer","required_frontmatter":["tier","at"],"optional_frontmatter":["owner"],"autonomy":"review","params":[{"name":"window","kind":"string","required":true,"label":"Window","description":"e.g. 30d"},{"name":"n","kind":"integer","required":false},{"name":"flag","kind":"boolean","required":false}],"backend":{"kind":"sql_view","config":{"search_text":["name"]}},"visibility":"owner","owner_field":"credential","acl":{"read":["public"],"create":["owner"],"update":["owner"],"delete":[]},"layer":"overlay","promotable":true}"#
        ]],
    );
}

#[test]
fn params_as_a_mapping() {
    check(
        "params:\n  window: {kind: text, required: true}\n  depth: int\n  any:\n",
        expect![[
            r#"{"id":"s","description":"","required_frontmatter":[],"optional_frontmatter":[],"params":[{"name":"window","kind":"string","required":true},{"name":"depth","kind":"integer","required":false},{"name":"any","kind":"string","required":false}],"backend":{"kind":"markdown","config":{}},"promotable":false}"#
        ]],
    );
}

#[test]
fn what_cannot_be_read_degrades_in_the_safe_direction() {
    check(
        "autonomy: autmatic\n",
        expect![[r#"
        {"id":"s","description":"","required_frontmatter":[],"optional_frontmatter":[],"backend":{"kind":"markdown","config":{}},"promotable":false}
        frontmatter_autonomy_unknown frontmatter.autonomy `autonomy` is "autmatic", which is no known policy; the skill is held for review."#]],
    );
    check(
        "autonomy: [auto]\nvisibility: privte\n",
        expect![[r#"
        {"id":"s","description":"","required_frontmatter":[],"optional_frontmatter":[],"backend":{"kind":"markdown","config":{}},"visibility":"owner","promotable":false}
        frontmatter_autonomy_unknown frontmatter.autonomy `autonomy` is ["auto"], which is no known policy; the skill is held for review.
        frontmatter_value_unreadable frontmatter.visibility `visibility` is "privte"; instances are treated as private."#]],
    );
    check(
        "params: 3\n",
        expect![[r#"
        {"id":"s","description":"","required_frontmatter":[],"optional_frontmatter":[],"backend":{"kind":"markdown","config":{}},"promotable":false}
        frontmatter_params_malformed frontmatter.params `params` is neither a list nor a mapping."#]],
    );
    check(
        "params:\n  - {kind: string}\n  - x\n  - {name: ok, kind: date}\n",
        expect![[r#"
        {"id":"s","description":"","required_frontmatter":[],"optional_frontmatter":[],"params":[{"name":"ok","kind":"string","required":false}],"backend":{"kind":"markdown","config":{}},"promotable":false}
        frontmatter_params_malformed frontmatter.params An entry of `params` has no name.
        frontmatter_params_malformed frontmatter.params An entry of `params` is no mapping.
        frontmatter_param_kind_unknown frontmatter.params The parameter `ok` has the unknown kind "date"; it is read as string."#]],
    );
    check(
        "backend: {kind: oracle}\n",
        expect![[r#"
        {"id":"s","description":"","required_frontmatter":[],"optional_frontmatter":[],"backend":{"kind":"markdown","config":{}},"promotable":false}
        backend_malformed frontmatter.backend `backend` has kind "oracle"; its instances are treated as markdown."#]],
    );
    check(
        "acl: admins\n",
        expect![[r#"
        {"id":"s","description":"","required_frontmatter":[],"optional_frontmatter":[],"backend":{"kind":"markdown","config":{}},"acl":{"read":[],"create":[],"update":[],"delete":[]},"promotable":false}
        acl_malformed frontmatter.acl An access list is a mapping from read, create, update and delete to groups."#]],
    );
    check(
        "acl: {read: {a: 1}, reed: [x], update: ~}\n",
        expect![[r#"
        {"id":"s","description":"","required_frontmatter":[],"optional_frontmatter":[],"backend":{"kind":"markdown","config":{}},"acl":{"read":[]},"promotable":false}
        acl_malformed frontmatter.acl The groups of `read` cannot be read, so nobody has this right."#]],
    );
}

#[test]
fn a_plain_skill() {
    check(
        "",
        expect![[
            r#"{"id":"s","description":"","required_frontmatter":[],"optional_frontmatter":[],"backend":{"kind":"markdown","config":{}},"promotable":false}"#
        ]],
    );
    let page = parse(
        "markdown/skills/meeting.md",
        b"---\ntype: skill\nrequired_frontmatter: [at, with]\n---\n",
        Layout::Tenant,
    );
    assert!(
        page.schema
            .is_some_and(|s| s.is_event_typed() && s.id == "meeting")
    );
}

#[test]
fn acl_of_an_instance() {
    let page = crate::page("---\nacl:\n  read: [engagement-hoffmann]\n---\n");
    let acl = instance_acl(&page.frontmatter);
    assert_eq!(
        acl.and_then(|a| a.read),
        Some(vec!["engagement-hoffmann".to_owned()])
    );
    assert_eq!(instance_acl(&crate::page("text").frontmatter), None);
    let broken = instance_acl(&crate::page("---\nacl: [x]\n---\n").frontmatter);
    assert_eq!(broken.and_then(|a| a.read), Some(vec![]));
}
