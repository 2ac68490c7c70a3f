//! The demo corpus, asked as an agent would.

use std::path::Path;
use std::sync::Arc;

use escurel_core::api::*;
use escurel_core::{Code, Kb, OpenOptions};

use crate::support::*;

struct Demo {
    _dir: tempfile::TempDir,
    kb: Arc<Kb>,
}

fn demo() -> Demo {
    let dir = tempfile::tempdir().unwrap();
    let tenant = dir.path().join("data/tenants/default");
    copy_tree(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("../../markdown"),
        &tenant.join("markdown"),
    );
    let options = OpenOptions {
        cache_home: Some(dir.path().join("cache")),
        ..OpenOptions::default()
    };
    let kb = Kb::open(&dir.path().join("data"), options).unwrap();
    assert!(kb.wait_ready(&mut |_| {}));
    Demo { _dir: dir, kb }
}

fn short(path: &str) -> String {
    path.trim_start_matches("markdown/instances/")
        .trim_end_matches(".md")
        .replace('/', "::")
}

#[test]
fn the_demo_is_whole() {
    let demo = demo();
    let status = demo.kb.status();
    assert_eq!(
        (status.broken_links, status.ambiguous_links, status.errors),
        (0, 0, 0)
    );
    assert!(status.pages > 80 && status.links > 400, "{status:?}");
    verify_clean(&demo.kb);
}

#[test]
fn questions_find_their_pages() {
    let demo = demo();
    let mut failed = Vec::new();
    for (question, page) in [
        (
            "Why is the enclosure sealed so that batteries cannot be changed?",
            "decision::sealed-enclosure",
        ),
        (
            "How long do the cells last in cold harbours?",
            "result::winter-battery-trial",
        ),
        (
            "Why did Acme cut its order to 18 gauges?",
            "meeting::acme-quarterly-2025-06",
        ),
        ("A gauge sends no data at night", "runbook::gauge-silent"),
        (
            "storm gate close without a storm",
            "incident::osterhaff-false-surge-2025-04",
        ),
        (
            "ferry wake told apart from a surge",
            "decision::adaptive-wake-filter",
        ),
        (
            "How fast does the siren sound?",
            "result::tarn-drill-latency",
        ),
        ("May I work alone over water?", "policy::field-safety"),
        (
            "Medianfilter Sperrwerk zu spät",
            "meeting::osterhaff-wartung-2025-05",
        ),
        ("津波", "note::kashima-enquiry"),
        ("volume discount", "policy::discounting"),
    ] {
        let hits: Vec<_> = found(&demo.kb, question)
            .iter()
            .take(5)
            .map(|p| short(p))
            .collect();
        if !hits.iter().any(|hit| hit == page) {
            failed.push(format!("{question}: {hits:?}"));
        }
    }
    assert_eq!(failed, [] as [String; 0]);
}

#[test]
fn drift_and_abandoned_nodes_are_reported() {
    let demo = demo();
    let Report::Drift(rows) = demo
        .kb
        .provenance_report(&me(), ReportKind::Drift, None)
        .unwrap()
    else {
        panic!()
    };
    let drift: Vec<_> = rows
        .iter()
        .map(|r| (short(&r.decision_page_id), short(&r.expectation_page_id)))
        .collect();
    let expect = [
        (
            "decision::hire-field-engineer",
            "expectation::acme-renewal-v1",
        ),
        ("decision::sealed-enclosure", "expectation::ebb3-battery-v1"),
    ];
    assert_eq!(drift, expect.map(|(a, b)| (a.to_owned(), b.to_owned())));
    let Report::Abandoned(rows) = demo
        .kb
        .provenance_report(&me(), ReportKind::Abandoned, None)
        .unwrap()
    else {
        panic!()
    };
    assert_eq!(rows.len(), 7);
    assert!(rows.iter().all(|row| row.via == "supersedes"));
    let Report::Abandoned(rows) = demo
        .kb
        .provenance_report(&me(), ReportKind::Abandoned, Some("expectation"))
        .unwrap()
    else {
        panic!()
    };
    assert_eq!(rows.len(), 3);
}

#[test]
fn ancestry_walks_and_finds_paths() {
    let demo = demo();
    let relations = ["produced_by", "uses", "derived_from"]
        .map(str::to_owned)
        .to_vec();
    let request = AncestryRequest {
        page_id: "[[result::winter-battery-trial]]".into(),
        up: true,
        relations,
        ..Default::default()
    };
    let Ancestry::Walk(hops) = demo.kb.provenance_ancestry(&me(), &request).unwrap() else {
        panic!()
    };
    let hops: Vec<_> = hops.iter().map(|h| (short(&h.page_id), h.depth)).collect();
    for hop in [
        ("analysis::battery-drain-model", 1),
        ("dataset::winter-telemetry-2025", 2),
        ("dataset::raw-logger-dumps-2025", 3),
        ("runbook::logger-download", 4),
    ] {
        assert!(
            hops.contains(&(hop.0.to_owned(), hop.1)),
            "{hop:?} in {hops:?}"
        );
    }
    let path = AncestryRequest {
        page_id: "[[decision::battery-swap-programme]]".into(),
        to_page: Some("[[dataset::winter-telemetry-2025]]".into()),
        up: true,
        relations: ["motivated_by", "produced_by", "uses"]
            .map(str::to_owned)
            .to_vec(),
        ..Default::default()
    };
    let Ancestry::Path(Some(path)) = demo.kb.provenance_ancestry(&me(), &path).unwrap() else {
        panic!()
    };
    assert_eq!(path.len(), 5);
}

#[test]
fn the_past_can_be_expanded() {
    let demo = demo();
    let at = |id: &str| {
        demo.kb
            .expand(
                &me(),
                &ExpandRequest {
                    page_id: id.into(),
                    as_of: Some("2025-03-31".into()),
                    ..Default::default()
                },
            )
            .unwrap()
    };
    assert!(at("[[expectation::acme-renewal-v1]]").is_some());
    assert!(at("[[expectation::acme-renewal-v2]]").is_none());
}

#[test]
fn sections_and_blocks_can_be_expanded() {
    let demo = demo();
    let expand = |id: &str| {
        demo.kb.expand(
            &me(),
            &ExpandRequest {
                page_id: id.into(),
                ..Default::default()
            },
        )
    };
    let section = expand("[[policy::field-safety#Working over water]]")
        .unwrap()
        .unwrap();
    assert!(
        section.body.starts_with("## Working over water")
            || section.body.starts_with("# Working over water"),
        "{}",
        section.body
    );
    let block = expand("[[customer::acme-corp#^blk-acme-first-sign]]")
        .unwrap()
        .unwrap();
    assert_eq!(block.blocks.len(), 1);
    let missing = expand("[[policy::field-safety#No such heading]]").unwrap_err();
    assert_eq!(missing.code, Code::AnchorNotFound);
    assert!(
        missing.candidates.iter().any(|c| c == "working-over-water"),
        "{:?}",
        missing.candidates
    );
}

/// All parts of what `anchor` names, joined.
fn read_on(kb: &Kb, anchor: Option<&str>, max_chars: usize) -> String {
    let mut request = ExpandRequest {
        page_id: "long.md".into(),
        anchor: anchor.map(str::to_owned),
        max_chars,
        ..Default::default()
    };
    let mut text = String::new();
    loop {
        let part = kb.expand(&me(), &request).unwrap().unwrap();
        assert!(part.body.chars().count() <= max_chars);
        assert!(!part.body.is_empty(), "no progress at {:?}", request.anchor);
        text.push_str(&part.body);
        assert_eq!(part.truncated, part.next_anchor.is_some());
        let Some(next) = part.next_anchor else {
            return text;
        };
        assert_ne!(request.anchor.as_deref(), Some(&*next));
        request.anchor = Some(next);
    }
}

#[test]
fn a_long_page_can_be_read_on_without_a_gap_or_a_loop() {
    let paragraphs: String = (0..400)
        .map(|n| format!("Paragraph {n} about kestrels.\n\n"))
        .collect();
    let one_block = "an endless paragraph, ".repeat(900);
    let headings: String = (0..60)
        .map(|n| format!("## Part {n}\n\n{}\n\n", "wörter ".repeat(n)))
        .collect();
    let mixed = format!("# C+2\n\nintro\n\n{headings}{one_block}\n\n## Part 7\n\nend\n");
    for text in [&paragraphs, &one_block, &headings, &mixed] {
        let kb = Kb::in_memory(&[("long.md", text)]);
        for max_chars in [20, 97, 3_000, 40_000] {
            assert_eq!(read_on(&kb, None, max_chars), **text);
        }
    }
    let kb = Kb::in_memory(&[("long.md", &mixed)]);
    let section = read_on(&kb, Some("Part 40"), 100_000);
    assert!(section.starts_with("## Part 40") && !section.contains("Part 41"));
    assert_eq!(read_on(&kb, Some("Part 40"), 31), section);
    assert!(read_on(&kb, Some("C+2"), 100_000).starts_with("# C+2"));
    let beyond = ExpandRequest {
        page_id: "long.md".into(),
        anchor: Some("+99999999".into()),
        ..Default::default()
    };
    let refusal = kb.expand(&me(), &beyond).unwrap_err();
    assert_eq!(refusal.code, Code::AnchorNotFound);
}

#[test]
fn lists_page_through_everything_once() {
    let demo = demo();
    let mut request = InstancesRequest {
        skill_id: "decision".into(),
        order: InstanceOrder::AtDesc,
        limit: 2,
        ..Default::default()
    };
    let mut seen = Vec::new();
    loop {
        let page = demo.kb.list_instances(&me(), &request).unwrap();
        seen.extend(
            page.instances
                .into_iter()
                .map(|i| (i.at.unwrap(), i.page.page_id)),
        );
        request.cursor = page.next_cursor;
        if request.cursor.is_none() {
            break;
        }
    }
    let mut unique: Vec<_> = seen.iter().map(|(_, id)| id).collect();
    unique.sort();
    unique.dedup();
    assert_eq!((seen.len(), unique.len()), (9, 9));
    let bad = InstancesRequest {
        cursor: Some("zz".into()),
        ..request.clone()
    };
    assert_eq!(
        demo.kb.list_instances(&me(), &bad).unwrap_err().code,
        Code::CursorInvalid
    );
    let unknown = InstancesRequest {
        skill_id: "decison".into(),
        ..request
    };
    assert_eq!(
        demo.kb
            .list_instances(&me(), &unknown)
            .unwrap_err()
            .candidates,
        ["decision"]
    );
}

#[test]
fn filters_narrow_before_ranking() {
    let mut files = vec![("tiny/a.md".to_owned(), "---\nplace: tiny\n---\npump\n".to_owned()), ("tiny/b.md".to_owned(), "---\nplace: tiny\n---\nA long page that says pump once among many other words that do not matter here.\n".to_owned())];
    files.extend((0..2_000).map(|n| {
        (
            format!("big/{n}.md"),
            "---\nplace: big\n---\npump pump pump pump\n".to_owned(),
        )
    }));
    let files: Vec<(&str, &str)> = files
        .iter()
        .map(|(p, t)| (p.as_str(), t.as_str()))
        .collect();
    let kb = Kb::in_memory(&files);
    let filter = serde_json::json!({"place": "tiny"}).as_object().cloned();
    let request = SearchRequest {
        queries: vec!["pump".into()],
        k: 10,
        filter,
        ..Default::default()
    };
    let mut hits: Vec<_> = kb
        .search(&me(), &request)
        .unwrap()
        .hits
        .into_iter()
        .map(|h| h.page.page_id)
        .collect();
    hits.sort();
    assert_eq!(hits, ["tiny/a.md", "tiny/b.md"]);
    let bad = SearchRequest {
        filter: serde_json::json!({"plce": "tiny"}).as_object().cloned(),
        ..request.clone()
    };
    let refusal = kb.search(&me(), &bad).unwrap_err();
    assert_eq!(
        (refusal.code, refusal.candidates.as_slice()),
        (Code::FilterUnknownKey, &["place".to_owned()][..])
    );
}

#[test]
fn the_built_in_skills_are_there_and_can_be_shadowed() {
    let kb = Kb::in_memory(&[("a.md", "# A\n")]);
    let ids = |kb: &Kb| {
        kb.list_skills(&me())
            .unwrap()
            .into_iter()
            .map(|s| s.schema.id.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(ids(&kb), ["escurel", "note"]);
    assert!(text_of(&kb, "[[escurel]]").unwrap().contains("search"));
    let own = Kb::in_memory(&[(
        "note.md",
        "---\ntype: skill\nskill: note\nid: note\ndescription: ours\n---\n# Ours\n",
    )]);
    let skills = own.list_skills(&me()).unwrap();
    let note = skills.iter().find(|s| s.schema.id == "note").unwrap();
    assert_eq!(
        (note.schema.description.as_str(), note.shadows.is_some()),
        ("ours", true)
    );
    assert_eq!(page(&own, "[[note]]").unwrap().page_id, "note.md");
    let listed: Vec<_> = own
        .list_pages(&me(), None, 10)
        .unwrap()
        .into_iter()
        .map(|p| p.page_id)
        .collect();
    assert_eq!(listed, ["builtin:skills/escurel.md", "note.md"]);
}

#[test]
fn drafts_are_validated_against_what_exists() {
    let kb = Kb::in_memory(&[("a.md", "# A\n\n## Real\n")]);
    let codes = |text: &str| {
        kb.validate(&me(), text, None)
            .unwrap()
            .iter()
            .map(|i| i.code)
            .collect::<Vec<_>>()
    };
    assert_eq!(codes("See [[a#Real]].\n"), [] as [&str; 0]);
    assert_eq!(codes("See [[a#Fake]].\n"), ["anchor_missing"]);
    assert_eq!(codes("See [[nothing]].\n"), ["link_unresolved"]);
    assert_eq!(codes("---\nskill: ghost\n---\n"), ["unknown_skill"]);
}

#[test]
fn while_a_folder_is_indexed_nothing_is_called_absent_or_complete() {
    let store = std::sync::Arc::new(escurel_store::MemStore::new(escurel_store::Env::system()));
    for n in 0..3_000 {
        store.put_file(&format!("p{n}.md"), b"A kestrel hovers.\n");
    }
    let policy = std::sync::Arc::new(escurel_access::OpenPolicy);
    let kb = Kb::over(store, escurel_md::Layout::Vault, policy).unwrap();
    let all = InstancesRequest {
        skill_id: "note".into(),
        limit: 500,
        ..Default::default()
    };
    let page = ExpandRequest {
        page_id: "p2999.md".into(),
        ..Default::default()
    };
    let words = SearchRequest {
        queries: vec!["kestrel".into()],
        k: 10,
        ..Default::default()
    };
    loop {
        let ready = kb.phase().ready;
        match kb.list_instances(&me(), &all) {
            Ok(list) => assert_eq!(list.instances.len(), 500),
            Err(refusal) => assert_eq!(refusal.code, Code::Indexing),
        }
        match kb.expand(&me(), &page) {
            Ok(found) => assert!(found.is_some()),
            Err(refusal) => assert_eq!(refusal.code, Code::Indexing),
        }
        let found = kb.search(&me(), &words).unwrap();
        assert!(found.hits.len() == 10 || found.lanes.iter().all(|l| l.state != "fresh"));
        if ready {
            break;
        }
    }
    assert!(kb.expand(&me(), &page).unwrap().is_some());
}

#[test]
fn pages_with_names_that_no_new_page_can_get_are_read() {
    for name in ["new\nline.md", "100%20.md", "a\\xFFb.md"] {
        let kb = Kb::in_memory(&[(name, "# Odd\n")]);
        let page = ExpandRequest {
            page_id: name.into(),
            ..Default::default()
        };
        assert!(kb.expand(&me(), &page).unwrap().is_some(), "{name}");
    }
}

#[test]
fn a_cursor_belongs_to_one_listing() {
    let demo = demo();
    let request = InstancesRequest {
        skill_id: "decision".into(),
        order: InstanceOrder::AtDesc,
        limit: 2,
        ..Default::default()
    };
    let cursor = demo.kb.list_instances(&me(), &request).unwrap().next_cursor;
    let ask = |change: &dyn Fn(&mut InstancesRequest)| {
        let mut next = InstancesRequest {
            cursor: cursor.clone(),
            ..request.clone()
        };
        change(&mut next);
        demo.kb.list_instances(&me(), &next).map_err(|r| r.code)
    };
    assert!(ask(&|_| {}).is_ok());
    assert!(ask(&|r| r.limit = 5).is_ok());
    let altered = |c: &mut String| {
        let last = c.pop();
        c.push(if last == Some('0') { '1' } else { '0' });
    };
    let foreign: [&dyn Fn(&mut InstancesRequest); 5] = [
        &|r| r.skill_id = "meeting".into(),
        &|r| r.order = InstanceOrder::AtAsc,
        &|r| r.frontmatter = Some(("status".into(), "standing".into())),
        &|r| r.as_of = Some("2025-06-01".into()),
        &|r| r.cursor.iter_mut().for_each(altered),
    ];
    for (n, change) in foreign.into_iter().enumerate() {
        assert_eq!(ask(change).err(), Some(Code::CursorInvalid), "change {n}");
    }
}

#[test]
fn a_scenario_that_no_page_has_is_told() {
    let kb = Kb::in_memory(&[
        ("a.md", "kestrel\n"),
        ("b.md", "---\nscenario: merger\n---\nkestrel\n"),
    ]);
    let search = |scenario: &str| {
        let request = SearchRequest {
            queries: vec!["kestrel".into()],
            k: 5,
            scenario: Some(scenario.into()),
            ..Default::default()
        };
        kb.search(&me(), &request).unwrap().notes.join(" ")
    };
    assert!(search("merge").contains("`merge`") && search("merge").contains("merger"));
    assert_eq!(search("merger"), "");
    let expand = |scenario: &str| {
        let request = ExpandRequest {
            page_id: "a.md".into(),
            scenario: Some(scenario.into()),
            ..Default::default()
        };
        kb.expand(&me(), &request).map(|page| page.is_some())
    };
    assert!(expand("merger").unwrap() && expand("").unwrap());
    let refused = expand("merge").unwrap_err();
    assert_eq!(refused.code, Code::InvalidArgument);
    assert_eq!(refused.location.as_deref(), Some("scenario"));
    assert_eq!(refused.candidates, ["merger"]);
}

#[test]
fn a_cut_text_comes_with_its_own_links_only() {
    let body: String = (0..2_000)
        .map(|n| format!("Paragraph {n} about [[page-{n}]].\n\n"))
        .collect();
    let text = format!("---\nowner: \"[[somebody]]\"\n---\n{body}");
    let kb = Kb::in_memory(&[("long.md", &text)]);
    let expand = |max_chars: usize| {
        let request = ExpandRequest {
            page_id: "long.md".into(),
            max_chars,
            ..Default::default()
        };
        kb.expand(&me(), &request).unwrap().unwrap()
    };
    let part = expand(1_000);
    assert!(part.truncated);
    let of_header = part.links.iter().filter(|l| l.relation.is_some()).count();
    assert_eq!(of_header, 1);
    assert_eq!(part.links.len() - 1, part.body.matches("[[").count());
    assert_eq!(part.blocks.len(), part.body.matches("Paragraph").count());
    assert_eq!(expand(1_000_000).links.len(), 2_001);
}

#[test]
fn two_pages_of_one_name_are_found_out() {
    let twin = "---\nskill: note\nid: twin\n---\nSee [[note::twin]].\n";
    let kb = Kb::in_memory(&[
        ("a/one.md", twin),
        ("b/two.md", twin),
        (
            "what-if.md",
            "---\nskill: note\nid: twin\nscenario: s\n---\n",
        ),
        ("alone.md", "---\nskill: note\nid: alone\n---\n"),
    ]);
    let codes = |text: &str, page_id: Option<&str>| {
        let found = kb.validate(&me(), text, page_id).unwrap();
        found.iter().map(|i| i.code).collect::<Vec<_>>()
    };
    let alone = "---\nskill: note\nid: alone\n---\n";
    assert_eq!(codes(alone, Some("alone.md")), [] as [&str; 0]);
    assert_eq!(codes(alone, None), ["duplicate_id"]);
    assert_eq!(codes(alone, Some("new.md")), ["duplicate_id"]);
    let found = kb.validate(&me(), twin, Some("a/one.md")).unwrap();
    assert_eq!(found[0].code, "duplicate_id");
    assert!(
        found[0].message.contains("b/two.md"),
        "{}",
        found[0].message
    );
    assert_eq!(found[1].code, "link_ambiguous");
    let suggestion = found[1].suggestion.as_deref().unwrap();
    assert_eq!(suggestion, "Write one of: [[a/one.md]], [[b/two.md]].");
    assert_eq!(page(&kb, "[[a/one.md]]").unwrap().page_id, "a/one.md");
    let request = ExpandRequest {
        page_id: "b/two.md".into(),
        ..Default::default()
    };
    let shown = kb.expand(&me(), &request).unwrap().unwrap();
    let shown: Vec<_> = shown.issues.iter().map(|i| i.code).collect();
    assert_eq!(shown, ["duplicate_id"]);
}
