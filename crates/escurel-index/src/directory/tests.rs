use std::ops::ControlFlow;

use escurel_md::{LinkKind, Wikilink};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::testing::Corpus;

/// Paths, joined; candidates after "?".
fn told(r: &Resolution) -> String {
    match r {
        Resolution::Found(e) => e.path.to_string(),
        Resolution::Ambiguous(list) => format!(
            "? {}",
            list.iter().map(|e| &*e.path).collect::<Vec<_>>().join(" ")
        ),
        Resolution::Missing => "-".into(),
    }
}

fn follow(c: &Corpus, from: &str, link: &str, scope: &Scope<'_>) -> String {
    let from = c.dir.by_path(from).map(|e| &**e);
    let resolved = match link.strip_prefix("[[") {
        Some(_) => c.dir.resolve(
            &Wikilink::parse(link).expect(link),
            LinkKind::Wikilink,
            from,
            scope,
        ),
        None => {
            let link = Wikilink {
                id: Some(link.to_owned()),
                ..Wikilink::default()
            };
            c.dir.resolve(&link, LinkKind::Markdown, from, scope)
        }
    };
    told(&resolved)
}

#[track_caller]
fn check(c: &Corpus, from: &str, links: &[(&str, &str)]) {
    for (link, expect) in links {
        assert_eq!(
            follow(c, from, link, &Scope::ALL),
            *expect,
            "{link} in {from}"
        );
    }
}

#[test]
fn names_that_differ_stay_apart() {
    let c = Corpus::vault(&[
        ("a b.md", ""),
        ("a_b.md", ""),
        ("a-b.md", ""),
        ("README.md", ""),
        ("readme.md", ""),
        ("x.md", ""),
        ("50%.md", ""),
    ]);
    check(
        &c,
        "x.md",
        &[
            ("[[a b]]", "a b.md"),
            ("[[a_b]]", "a_b.md"),
            ("[[a-b]]", "a-b.md"),
            ("[[a b.md]]", "a b.md"),
            ("[[README]]", "README.md"),
            ("[[readme]]", "readme.md"),
            ("[[ReadMe]]", "? README.md readme.md"),
            ("[[50%]]", "50%.md"),
            ("[[axb]]", "-"),
            ("readme.md", "readme.md"),
            ("Readme.md", "? README.md readme.md"),
        ],
    );
    assert_eq!(told(&c.dir.find("a_b", &Scope::ALL)), "a_b.md");
    assert_eq!(told(&c.dir.find("a_b.md", &Scope::ALL)), "a_b.md");
    let uid = c
        .dir
        .by_path("a-b.md")
        .map(|e| e.uid.to_string())
        .unwrap_or_default();
    assert_eq!(told(&c.dir.find(&uid, &Scope::ALL)), "a-b.md");
}

#[test]
fn one_name_for_two_pages_is_ambiguous() {
    let c = Corpus::vault(&[
        ("people/sam-lee.md", ""),
        ("vendors/Sam_Lee.md", ""),
        ("x.md", ""),
        ("solo/New-Idea.md", ""),
    ]);
    check(
        &c,
        "x.md",
        &[
            ("[[Sam Lee]]", "? people/sam-lee.md vendors/Sam_Lee.md"),
            ("[[new idea]]", "solo/New-Idea.md"),
        ],
    );
    assert_eq!(
        told(&c.dir.find("sam lee", &Scope::ALL)),
        "? people/sam-lee.md vendors/Sam_Lee.md"
    );
    assert_eq!(
        told(&c.dir.find("sam-lee", &Scope::ALL)),
        "people/sam-lee.md"
    );
}

#[test]
fn vault_links() {
    let c = Corpus::vault(&[
        ("name.md", ""),
        ("sub/name.md", ""),
        ("sub/page.md", "# Page title\n"),
        ("sub/deep/leaf.md", "---\naliases: [Blatt, Feuille]\n---\n"),
        ("other/leaf.md", ""),
        ("other/only.md", ""),
    ]);
    check(
        &c,
        "sub/page.md",
        &[
            ("[[name]]", "name.md"),
            ("[[sub/name]]", "sub/name.md"),
            ("[[Sub/Name.md]]", "sub/name.md"),
            ("[[deep/leaf]]", "sub/deep/leaf.md"),
            ("[[leaf]]", "? other/leaf.md sub/deep/leaf.md"),
            ("[[only]]", "other/only.md"),
            ("[[ONLY]]", "other/only.md"),
            ("[[page title]]", "sub/page.md"),
            ("[[blatt]]", "sub/deep/leaf.md"),
            ("[[#Page title]]", "sub/page.md"),
            ("[[note::only]]", "other/only.md"),
            ("[[nowhere]]", "-"),
            ("name", "sub/name.md"),
            ("../name.md", "name.md"),
            ("/name", "name.md"),
            ("deep/leaf.md", "sub/deep/leaf.md"),
            ("other/only.md", "other/only.md"),
            ("../../name.md", "-"),
            ("only.md", "-"),
        ],
    );
    check(
        &c,
        "other/only.md",
        &[("[[leaf]]", "other/leaf.md"), ("[[page]]", "sub/page.md")],
    );
}

#[test]
fn unicode_forms_of_one_name() {
    let c = Corpus::vault(&[
        ("Re\u{301}sume\u{301}.md", ""),
        ("（a）.md", ""),
        ("(a).md", ""),
    ]);
    check(
        &c,
        "(a).md",
        &[
            ("[[note::R\u{e9}sum\u{e9}]]", "Re\u{301}sume\u{301}.md"),
            ("[[R\u{e9}sum\u{e9}]]", "Re\u{301}sume\u{301}.md"),
            ("[[(a)]]", "(a).md"),
            ("[[（a）]]", "（a）.md"),
        ],
    );
}

fn skill(id: &str) -> String {
    format!("---\ntype: skill\nid: {id}\nskill: {id}\nrequired_frontmatter: [tier]\n---\n# {id}\n")
}

#[test]
fn tenant_links() {
    let customer = skill("customer");
    let c = Corpus::tenant(&[
        ("markdown/skills/customer.md", &customer),
        (
            "markdown/instances/customer/acme.md",
            "---\nskill: customer\nid: acme\ntitle: Acme Corp\n---\n",
        ),
        (
            "markdown/instances/meeting/acme.md",
            "---\nskill: meeting\nid: acme\n---\n",
        ),
        (
            "markdown/instances/meeting/m1.md",
            "---\nskill: meeting\nid: m1\nwith: '[[customer::acme]]'\n---\n",
        ),
    ]);
    check(
        &c,
        "markdown/instances/meeting/m1.md",
        &[
            ("[[customer::acme]]", "markdown/instances/customer/acme.md"),
            ("[[meeting::acme]]", "markdown/instances/meeting/acme.md"),
            ("[[customer::ACME]]", "markdown/instances/customer/acme.md"),
            (
                "[[customer::Acme Corp]]",
                "markdown/instances/customer/acme.md",
            ),
            (
                "[[acme]]",
                "? markdown/instances/customer/acme.md markdown/instances/meeting/acme.md",
            ),
            ("[[customer]]", "markdown/skills/customer.md"),
            ("[[customer::]]", "markdown/skills/customer.md"),
            ("[[skill::customer]]", "markdown/skills/customer.md"),
            ("[[vendor::acme]]", "-"),
            ("acme.md", "markdown/instances/meeting/acme.md"),
            ("../customer/acme", "markdown/instances/customer/acme.md"),
        ],
    );
    assert_eq!(
        told(&c.dir.find("[[customer::acme]]", &Scope::ALL)),
        "markdown/instances/customer/acme.md"
    );
    assert_eq!(c.dir.skills().len(), 1);
    assert!(c.dir.schema("customer", &Scope::ALL).is_some());
    assert!(c.dir.schema("meeting", &Scope::ALL).is_none());
}

#[test]
fn scenarios_replace_and_hide() {
    let c = Corpus::tenant(&[
        ("markdown/instances/a/x.md", "---\nskill: a\nid: x\n---\n"),
        (
            "markdown/instances/a/y.md",
            "---\nskill: a\nid: y\nuses: '[[a::x]]'\n---\n",
        ),
        (
            "markdown/scenarios/s/x.md",
            "---\nskill: a\nid: x\nscenario: s\ntitle: Other\n---\n",
        ),
        (
            "markdown/scenarios/s/new.md",
            "---\nskill: a\nid: new\nscenario: s\n---\n[[a::x]]",
        ),
        (
            "markdown/scenarios/t/x.md",
            "---\nskill: a\nid: x\nscenario: t\nhidden: true\n---\n",
        ),
    ]);
    let (base, over) = ("markdown/instances/a/x.md", "markdown/scenarios/s/x.md");
    let see = |scenario: Option<&str>, id: &str| {
        told(&c.dir.find(
            id,
            &Scope {
                scenario,
                visible: &|_| true,
            },
        ))
    };
    for id in ["[[a::x]]", base, "x"] {
        assert_eq!(see(None, id), base);
        assert_eq!(see(Some("s"), id), over);
        assert_eq!(see(Some("t"), id), "-");
        assert_eq!(see(Some("u"), id), base);
    }
    assert_eq!(see(None, over), "-");
    assert_eq!(see(None, "[[a::new]]"), "-");
    assert_eq!(see(Some("s"), "[[a::new]]"), "markdown/scenarios/s/new.md");
    assert_eq!(see(None, "Other"), "-");
    let sources = |path: &str, scenario: Option<&str>| {
        let scope = Scope {
            scenario,
            visible: &|_| true,
        };
        let target = c.dir.by_path(path).expect(path);
        c.dir
            .incoming(target, &scope)
            .iter()
            .map(|e| e.src.path.to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(sources(base, None), ["markdown/instances/a/y.md"]);
    assert_eq!(
        sources(over, Some("s")),
        ["markdown/instances/a/y.md", "markdown/scenarios/s/new.md"]
    );
    assert_eq!(sources(base, Some("s")), [""; 0]);
}

#[test]
fn tenant_pages_stand_over_packs() {
    let c = Corpus::tenant(&[
        (
            "markdown/base/p/skills/k.md",
            "---\ntype: skill\nskill: k\nid: k\nlayer: base@p@1\n---\n",
        ),
        (
            "markdown/skills/k.md",
            "---\ntype: skill\nskill: k\nid: k\n---\n",
        ),
        (
            "markdown/base/p/only.md",
            "---\nskill: k\nid: only\nlayer: base@p@1\n---\n",
        ),
    ]);
    let find = |id: &str| told(&c.dir.find(id, &Scope::ALL));
    assert_eq!(find("[[k::]]"), "markdown/skills/k.md");
    assert_eq!(
        find("markdown/base/p/skills/k.md"),
        "markdown/base/p/skills/k.md"
    );
    assert_eq!(find("[[k::only]]"), "markdown/base/p/only.md");
    let base = c.dir.by_path("markdown/base/p/skills/k.md").expect("base");
    assert!(!c.dir.effective(base, &Scope::ALL) && c.dir.seen(base, &Scope::ALL));
}

#[test]
fn what_is_hidden_has_no_influence() {
    let c = Corpus::vault(&[
        ("a/plan.md", ""),
        ("b/plan.md", ""),
        ("secret.md", "---\ncolour: red\nsize: big\n---\n[[a/plan]]"),
        ("x.md", "---\nsize: 3\n---\n[[plan]] [[secret]]"),
    ]);
    let scope = Scope {
        scenario: None,
        visible: &|e| &*e.path != "b/plan.md" && &*e.path != "secret.md",
    };
    assert_eq!(follow(&c, "x.md", "[[plan]]", &scope), "a/plan.md");
    assert_eq!(follow(&c, "x.md", "[[secret]]", &scope), "-");
    assert_eq!(told(&c.dir.find("secret.md", &scope)), "-");
    let page = c.dir.by_path("a/plan.md").expect("page");
    let sources: Vec<_> = c
        .dir
        .incoming(page, &scope)
        .iter()
        .map(|e| e.src.path.to_string())
        .collect();
    assert_eq!(sources, ["x.md"]);
    let ask = |filter: Value| {
        let seen = c
            .dir
            .compile_filter_for(filter.as_object().expect("object"), scope.visible);
        let all = c.dir.compile_filter(filter.as_object().expect("object"));
        (seen.map_err(|e| (e.code, e.nearest)), all.is_ok())
    };
    let (code, nearest) = ask(json!({"colour": "red"}))
        .0
        .expect_err("unknown to this reader");
    assert_eq!(code, "unknown_key");
    assert_ne!(
        nearest.as_deref(),
        Some("colour"),
        "names of hidden keys are not told"
    );
    assert!(ask(json!({"colour": "red"})).1);
    assert_eq!(
        ask(json!({"size": "big"})).0.map_err(|e| e.0),
        Err("type_mismatch")
    );
    assert!(ask(json!({"size": "big"})).1);
}

#[test]
fn link_counts_and_renames() {
    let mut c = Corpus::vault(&[
        ("a.md", "[[b]] [[gone]] ![[p.png]] [t](b.md) [[twin]]"),
        ("b.md", ""),
        ("p/twin.md", ""),
        ("q/twin.md", ""),
    ]);
    assert_eq!(
        c.dir.link_counts(),
        LinkCounts {
            links: 4,
            broken: 1,
            ambiguous: 1
        }
    );
    let b = c.dir.by_path("b.md").expect("b").clone();
    assert_eq!(c.dir.referrers(&b.facts, "b.md"), [c.no("a.md")]);
    let done = c.put_as(b.uid, "gone.md", "");
    assert!(done.relink && done.no == b.no);
    assert_eq!(
        c.dir.link_counts(),
        LinkCounts {
            links: 4,
            broken: 2,
            ambiguous: 1
        }
    );
    assert!(!c.put_as(b.uid, "gone.md", "text only").relink);
    c.dir.remove(b.uid);
    assert_eq!(
        (c.dir.number_of(b.uid), c.dir.by_uid(b.uid).is_none()),
        (Some(b.no), true)
    );
    assert_eq!(c.put_as(b.uid, "gone.md", "").no, b.no);
}

#[test]
fn ordered_lists_and_cursors() {
    let mut c = Corpus::new(escurel_md::Layout::Tenant);
    for i in (0..40).rev() {
        let at = if i % 4 == 0 {
            String::new()
        } else {
            format!("at: 2026-01-{:02}\n", i % 3 + 1)
        };
        c.put(
            &format!("markdown/instances/m/p{i:02}.md"),
            &format!("---\nskill: m\n{at}---\n"),
        );
    }
    c.delete("markdown/instances/m/p07.md");
    let all = |order: Order| {
        let mut out = Vec::new();
        c.dir.instances("m", order, None, &mut |e| {
            out.push(Cursor::of(e));
            ControlFlow::Continue(())
        });
        out
    };
    let (path, up, down) = (all(Order::Path), all(Order::AtAsc), all(Order::AtDesc));
    assert_eq!(
        (path.len(), up.len(), down.len(), c.dir.count("m")),
        (39, 39, 39, 39)
    );
    assert!(path.is_sorted_by_key(|c| c.path.clone()));
    let dated = up.iter().take_while(|c| c.at.is_some()).count();
    assert_eq!(dated, 29);
    assert!(
        up[..dated].is_sorted_by_key(|c| (c.at, c.path.clone()))
            && up[dated..].iter().all(|c| c.at.is_none())
    );
    assert!(down[..dated].iter().rev().eq(&up[..dated]) && down[dated..] == up[dated..]);
    for (order, whole) in [
        (Order::Path, path),
        (Order::AtAsc, up),
        (Order::AtDesc, down),
    ] {
        let mut paged: Vec<Cursor> = Vec::new();
        loop {
            let (after, before) = (paged.last().cloned(), paged.len());
            let after = after.filter(|_| order != Order::Path || before > 0);
            c.dir.instances("m", order, after.as_ref(), &mut |e| {
                paged.push(Cursor::of(e));
                if paged.len() - before == 7 {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            });
            if paged.len() == before {
                break;
            }
        }
        assert_eq!(paged, whole, "{order:?}");
    }
}

fn filtered(c: &Corpus, filter: &Value) -> Result<String, &'static str> {
    let filter = c
        .dir
        .compile_filter(filter.as_object().expect("object"))
        .map_err(|e| e.code)?;
    let pages = c.dir.filter_pages(&filter);
    let by_hand: Bitmap = c
        .dir
        .iter()
        .filter(|e| filter.matches(&e.facts))
        .map(|e| e.no)
        .collect();
    assert_eq!(pages, by_hand, "columns and pages disagree on {filter:?}");
    let mut stems: Vec<String> = pages
        .iter()
        .map(|no| names::stem(&c.path(no)).to_owned())
        .collect();
    stems.sort();
    Ok(stems.join(""))
}

#[test]
fn filters() {
    let c = Corpus::vault(&[
        (
            "a.md",
            "---\nn: 1\ntags: [x, y]\nat: 2026-04-01T10:00:00Z\nok: true\nv: {a: 1}\n---\n",
        ),
        (
            "b.md",
            "---\nn: 2.5\ntags: y\nat: 2026-04-02\nok: false\ns: open\n---\n",
        ),
        (
            "c.md",
            "---\nn: [5, 7]\nat: 2026-04-01T23:00:00-02:00\ns: in_review\nnote: ~\n---\n",
        ),
        ("d.md", "no header #x\n"),
        ("e.md", "---\nat: someday\ns: closed\nnote: hi\n---\n"),
    ]);
    let check = |filter: Value, expect: Result<&str, &'static str>| {
        assert_eq!(filtered(&c, &filter), expect.map(str::to_owned), "{filter}");
    };
    check(json!({}), Ok("abcde"));
    check(json!({"n": 1}), Ok("a"));
    check(json!({"n": 7}), Ok("c"));
    check(json!({"n": {">": 1}}), Ok("bc"));
    check(json!({"n": {">=": 1, "<": 3}}), Ok("ab"));
    check(json!({"n": {"in": [1, 5]}}), Ok("ac"));
    check(json!({"n": {"not": 1}}), Ok("bcde"));
    check(json!({"n": null}), Ok("de"));
    check(json!({"n": {"not": null}}), Ok("abc"));
    check(json!({"n": "1"}), Err("type_mismatch"));
    check(json!({"n": {">": true}}), Err("type_mismatch"));
    check(json!({"n": [1]}), Err("type_mismatch"));
    check(json!({"n": {}}), Err("type_mismatch"));
    check(json!({"n": {"=>": 1}}), Err("unknown_operator"));
    check(json!({"m": 1}), Err("unknown_key"));
    check(json!({"tags": "x"}), Ok("ad"));
    check(json!({"tags": {"not": "x"}}), Ok("bce"));
    check(json!({"ok": true}), Ok("a"));
    check(json!({"ok": {"not": true}}), Ok("bcde"));
    check(json!({"at": "2026-04-01"}), Ok("a"));
    check(json!({"at": {">=": "2026-04-02"}}), Ok("bc"));
    check(json!({"at": {">": "2026-04-01"}}), Ok("bc"));
    check(json!({"at": {"<=": "2026-04-01"}}), Ok("a"));
    check(json!({"at": {"<": "2026-04-02"}}), Ok("a"));
    check(json!({"at": {">=": "2026-04-02T12:00:00Z"}}), Ok("b"));
    check(json!({"at": "2026-04-02T01:00:00Z"}), Ok("c"));
    check(json!({"at": "someday"}), Ok("e"));
    check(json!({"s": {"in": ["open", "in_review"]}}), Ok("bc"));
    check(json!({"s": {">": "in"}}), Ok("bc"));
    check(json!({"s": "Open"}), Ok(""));
    check(json!({"s": {"not": ["open", "closed"]}}), Ok("acd"));
    check(json!({"note": null}), Ok("abcd"));
    check(json!({"v": "x"}), Err("type_mismatch"));
    check(json!({"v": {"not": null}}), Ok("a"));
    check(json!({"skill": "note", "n": {">": 0}}), Ok("abc"));
    check(json!({"type": "instance", "title": "d"}), Ok("d"));
    check(json!({"id": {"in": ["a", "e"]}}), Ok("ae"));
    let text = c
        .dir
        .compile_text_filter("n", "2.5", &|_| true)
        .expect("known");
    assert_eq!(
        c.dir
            .filter_pages(&text)
            .iter()
            .map(|no| c.path(no))
            .collect::<Vec<_>>(),
        ["b.md"]
    );
    assert_eq!(
        c.dir
            .compile_filter(json!({"nn": 1}).as_object().expect("object"))
            .map_err(|e| e.nearest),
        Err(Some("n".into()))
    );
}

const NAMES: [&str; 8] = [
    "alpha", "Alpha", "be ta", "be_ta", "gamma", "delta", "kappa", "README",
];

prop_compose! {
    fn page()(folder in 0..3usize, name in 0..8usize, skill in 0..3usize, links in prop::collection::vec((0..8usize, 0..4usize), 0..4),
        n in 0..5i64, status in 0..3usize, at in 0..4u32, title in 0..12usize) -> (String, String) {
        let folder = ["", "x/", "x/y/"][folder];
        let skill = ["note", "customer", "plan"][skill];
        let mut text = format!("---\nskill: {skill}\nn: {n}\nstatus: {}\n", ["open", "shut", "[open, new]"][status]);
        if at > 0 {
            text += &format!("at: 2026-01-0{at}\n");
        }
        if let Some(title) = NAMES.get(title) {
            text += &format!("title: {title}\n");
        }
        for (i, (target, form)) in links.iter().enumerate() {
            let target = NAMES[*target];
            let link = match form {
                0 => format!("[[{target}]]"),
                1 => format!("[[{skill}::{target}]]"),
                2 => format!("[[x/{target}]]"),
                _ => format!("[[#{target}]]"),
            };
            text += &format!("rel{i}: \"{link}\"\n");
        }
        text += "---\n";
        for (target, form) in links {
            let path = NAMES[target].replace(' ', "%20");
            text += &format!("[t]({}{path}.md)\n", ["", "../", "/x/", "y/"][form]);
        }
        (format!("{folder}{}.md", NAMES[name]), text)
    }
}

pub(crate) fn history() -> impl Strategy<Value = Vec<(bool, String, String)>> {
    prop::collection::vec(
        (prop::bool::weighted(0.8), page()).prop_map(|(keep, (path, text))| (keep, path, text)),
        1..40,
    )
}

pub(crate) fn replay(steps: &[(bool, String, String)]) -> Corpus {
    let mut corpus = Corpus::new(escurel_md::Layout::Vault);
    for (keep, path, text) in steps {
        if *keep {
            corpus.put(path, text);
        } else {
            corpus.delete(path);
        }
    }
    corpus
}

/// Everything that can be asked, as text.
fn answers(dir: &Directory) -> String {
    let mut out = format!("{} {:?}\n", dir.len(), dir.link_counts());
    let mut pages: Vec<_> = dir.iter().collect();
    pages.sort_by(|a, b| a.path.cmp(&b.path));
    for e in pages {
        out += &format!("{} {:?}\n", e.path, e.seq);
        for edge in dir.outgoing(e, &Scope::ALL) {
            out += &format!(" > {}\n", told(&edge.to));
        }
        for edge in dir.incoming(e, &Scope::ALL) {
            out += &format!(" < {} {:?}\n", edge.src.path, edge.link.line);
        }
    }
    for name in NAMES {
        out += &format!("{name} {}\n", told(&dir.find(name, &Scope::ALL)));
    }
    for skill in ["note", "customer", "plan"] {
        for order in [Order::Path, Order::AtAsc, Order::AtDesc] {
            dir.instances(skill, order, None, &mut |e| {
                out += &format!("{skill} {}\n", e.path);
                ControlFlow::Continue(())
            });
        }
    }
    for filter in [
        json!({"n": {">": 2}}),
        json!({"status": "open", "at": {">=": "2026-01-02"}}),
        json!({"status": {"not": "new"}}),
    ] {
        if let Ok(filter) = dir.compile_filter(filter.as_object().expect("object")) {
            let mut paths: Vec<_> = dir
                .filter_pages(&filter)
                .iter()
                .filter_map(|n| dir.get(n))
                .map(|e| e.path.to_string())
                .collect();
            paths.sort();
            out += &format!("{paths:?}\n");
        }
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn incremental_equals_rebuilt(steps in history(), seed in any::<u64>()) {
        let corpus = replay(&steps);
        let before = corpus.dir.clone();
        let told_before = answers(&before);
        let mut entries: Vec<_> = corpus.dir.iter().map(|e| EntryDraft::from((**e).clone())).collect();
        entries.sort_by_key(|e| rapidhash::v3::rapidhash_v3(&(seed ^ e.seq).to_le_bytes()));
        let mut rebuilt = Directory::new();
        entries.into_iter().for_each(|e| drop(rebuilt.upsert(e)));
        prop_assert_eq!(&told_before, &answers(&rebuilt));

        let folder = tempfile::tempdir().expect("temp");
        let file = folder.path().join("directory.bin");
        corpus.dir.save(&file, 7, 9).expect("save");
        let (loaded, seq, generation) = Directory::load(&file).expect("load").expect("there");
        prop_assert_eq!((seq, generation), (7, 9));
        prop_assert_eq!(&told_before, &answers(&loaded));
        prop_assert_eq!(loaded.capacity(), corpus.dir.capacity());

        // What a clone says does not change.
        let mut later = corpus;
        let paths: Vec<String> = later.dir.iter().map(|e| e.path.to_string()).collect();
        paths.iter().for_each(|p| later.delete(p));
        prop_assert_eq!(&told_before, &answers(&before));
        prop_assert_eq!(later.dir.len(), 0);
        prop_assert!(later.dir.columns().iter().next().is_none());
    }

    #[test]
    fn incoming_is_outgoing_turned_round(steps in history()) {
        let dir = replay(&steps).dir;
        let mut there = Vec::new();
        let mut back = Vec::new();
        for e in dir.iter() {
            for edge in dir.outgoing(e, &Scope::ALL) {
                if let Some(to) = edge.to.found() {
                    there.push((e.no, to.no, edge.link.line));
                }
            }
            back.extend(dir.incoming(e, &Scope::ALL).iter().map(|edge| (edge.src.no, e.no, edge.link.line)));
        }
        there.sort();
        back.sort();
        prop_assert_eq!(there, back);
    }
}

#[test]
fn damaged_files_are_refused() {
    let c = Corpus::vault(&[("a.md", "---\nk: v\n---\n[[b]]"), ("b.md", "")]);
    let folder = tempfile::tempdir().expect("temp");
    let file = folder.path().join("directory.bin");
    assert!(
        Directory::load(&file)
            .expect("absent is no error")
            .is_none()
    );
    c.dir.save(&file, 1, 2).expect("save");
    let good = std::fs::read(&file).expect("read");
    let code = |bytes: &[u8]| {
        std::fs::write(&file, bytes).expect("write");
        Directory::load(&file).err().map(|e| e.code())
    };
    assert_eq!(code(&good), None);
    for at in 0..good.len() {
        assert_eq!(code(&good[..at]), Some("index_damaged"), "cut at {at}");
        let mut flipped = good.clone();
        flipped[at] ^= 1 << (at % 8);
        assert!(code(&flipped).is_some(), "flipped at {at}");
    }
    let mut newer = good.clone();
    newer[8] = 99;
    let own = rapidhash::v3::rapidhash_v3(&newer[..56]);
    newer[56..64].copy_from_slice(&own.to_le_bytes());
    assert_eq!(code(&newer), Some("index_other_version"));
}

#[test]
fn odd_columns() {
    let mut c = Corpus::new(escurel_md::Layout::Vault);
    for i in 0..300 {
        c.put(
            &format!("p{i}.md"),
            &format!("---\nserial: {i}\nonce{i}: x\nflag: {}\n---\n", i % 2 == 0),
        );
    }
    assert_eq!(
        filtered(&c, &json!({"serial": {"<": 2}})),
        Ok("p0p1".into())
    );
    assert_eq!(filtered(&c, &json!({"once299": "x"})), Ok("p299".into()));
    for i in 0..300 {
        c.put(
            &format!("p{i}.md"),
            &format!("---\nserial: {}\n---\n", i + 1),
        );
    }
    assert_eq!(filtered(&c, &json!({"serial": {"<": 2}})), Ok("p0".into()));
    assert_eq!(filtered(&c, &json!({"flag": true})), Err("unknown_key"));
    c.delete("p0.md");
    assert_eq!(filtered(&c, &json!({"serial": {"<": 3}})), Ok("p1".into()));
    assert_eq!(
        filtered(&c, &json!({"serial": {"not": 5}})).map(|s| s.matches('p').count()),
        Ok(298)
    );
}
