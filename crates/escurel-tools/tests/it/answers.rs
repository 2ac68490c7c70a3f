//! Answers over a small corpus whose right answers are known. Every answer is
//! also held against the tool's own output schema.

use std::sync::{Arc, LazyLock};

use escurel_access::Caller;
use escurel_core::{Code, Kb};
use escurel_tools::{Call, Catalog, DispatchError, dispatch, render_table};
use serde_json::{Value, json};

use crate::conform::problems;

const CORPUS: &[(&str, &str)] = &[
    (
        "markdown/skills/customer.md",
        "---\ntype: skill\nskill: customer\nid: customer\ntitle: Customer\ndescription: Who buys from us.\n\
         required_frontmatter: [tier, status]\noptional_frontmatter: [owner]\nautonomy: review\n\
         acl:\n  read: [public]\n  update: [sales]\n---\n# Customer\n",
    ),
    (
        "markdown/skills/meeting.md",
        "---\ntype: skill\nskill: meeting\nid: meeting\ntitle: Meeting\ndescription: What was said.\n\
         required_frontmatter: [at]\nparams:\n  - {name: window, kind: string, required: true, label: Window}\n---\n# Meeting\n",
    ),
    (
        "markdown/skills/decision.md",
        "---\ntype: skill\nskill: decision\nid: decision\ndescription: A choice that binds us.\nrequired_frontmatter: [at]\n---\n# Decision\n",
    ),
    (
        "markdown/skills/expectation.md",
        "---\ntype: skill\nskill: expectation\nid: expectation\ndescription: Something we count on.\nrequired_frontmatter: [at]\n---\n# Expectation\n",
    ),
    (
        "markdown/instances/customer/acme-corp.md",
        "---\ntype: instance\nskill: customer\nid: acme-corp\ntitle: Acme Corp\naliases: [Acme]\ntier: gold\nstatus: at_risk\n---\n\
         # Acme Corp\n\nBuys gauges for three harbours.\n\n## Signals\n\nThe renewal is in doubt since [[meeting::kickoff]]. ^blk-doubt\n\n## People\n\nNobody yet.\n",
    ),
    (
        "markdown/instances/customer/globex.md",
        "---\ntype: instance\nskill: customer\nid: globex\ntitle: Globex\ntier: silver\nstatus: active\n---\n# Globex\n\nBuys buoys. The renewal is certain.\n",
    ),
    (
        "markdown/instances/meeting/kickoff.md",
        "---\ntype: instance\nskill: meeting\nid: kickoff\ntitle: Kickoff\nat: 2026-01-10T09:00:00Z\nwith: \"[[customer::acme-corp]]\"\nsource: gmail\n---\n# Kickoff\n\nProcurement asked for prices per harbour.\n",
    ),
    (
        "markdown/instances/meeting/review.md",
        "---\ntype: instance\nskill: meeting\nid: review\ntitle: Status call\nat: 2026-04-12T10:00:00+02:00\nwith: \"[[customer::acme-corp]]\"\nsource: phone\n---\n# Review\n\nSee [[customer::acme-corp#Signals]] and [[customer::nobody]].\n",
    ),
    (
        "markdown/instances/meeting/wrapup.md",
        "---\ntype: instance\nskill: meeting\nid: wrapup\ntitle: Status call\nat: 2026-05-01\nsource: gmail\n---\n# Wrap-up\n\nThe harbour is closed.\n",
    ),
    (
        "markdown/instances/expectation/renewal-v1.md",
        "---\ntype: instance\nskill: expectation\nid: renewal-v1\ntitle: Acme renews\nat: 2026-01-20T08:00:00Z\nderived_from: \"[[meeting::kickoff]]\"\n---\n# Acme renews\n",
    ),
    (
        "markdown/instances/expectation/renewal-v2.md",
        "---\ntype: instance\nskill: expectation\nid: renewal-v2\ntitle: Acme leaves\nat: 2026-03-02T10:00:00Z\nsupersedes: \"[[expectation::renewal-v1]]\"\n---\n# Acme leaves\n",
    ),
    (
        "markdown/instances/decision/ship.md",
        "---\ntype: instance\nskill: decision\nid: ship\ntitle: Ship\nat: 2026-02-06T09:00:00Z\nmotivated_by: \"[[expectation::renewal-v1]]\"\n---\n# Ship\n",
    ),
];

const ACME: &str = "markdown/instances/customer/acme-corp.md";
const KICKOFF: &str = "markdown/instances/meeting/kickoff.md";
const REVIEW: &str = "markdown/instances/meeting/review.md";
const V1: &str = "markdown/instances/expectation/renewal-v1.md";
const V2: &str = "markdown/instances/expectation/renewal-v2.md";
const SHIP: &str = "markdown/instances/decision/ship.md";

static KB: LazyLock<Arc<Kb>> = LazyLock::new(|| Kb::in_memory(CORPUS));

fn run(caller: &Caller, name: &str, arguments: Value) -> Result<Value, DispatchError> {
    let answer = dispatch(
        Catalog::standard(),
        &Call { kb: &KB, caller },
        name,
        arguments,
    )?;
    Ok(serde_json::from_str(&answer).unwrap())
}

/// The answer, which satisfies the tool's output schema.
#[track_caller]
fn ask(name: &str, arguments: Value) -> Value {
    ask_as(&Caller::local(), name, arguments)
}

#[track_caller]
fn ask_as(caller: &Caller, name: &str, arguments: Value) -> Value {
    let answer =
        run(caller, name, arguments.clone()).unwrap_or_else(|e| panic!("{name} {arguments}: {e}"));
    let list: Vec<Value> =
        serde_json::from_str(&Catalog::standard().list_json(caller, false)).unwrap();
    let tool = list.iter().find(|t| t["name"] == name).unwrap();
    assert_eq!(
        problems(&tool["outputSchema"], &answer),
        Vec::<String>::new(),
        "{name} {arguments}"
    );
    render_table(name, &answer);
    answer
}

#[track_caller]
fn refused(name: &str, arguments: Value, code: Code) {
    match run(&Caller::local(), name, arguments.clone()) {
        Err(DispatchError::Refused(r)) => assert_eq!(r.code, code, "{name} {arguments}: {r}"),
        other => panic!("{name} {arguments}: {other:?}"),
    }
}

/// The texts at `field` of the list at `list`.
fn texts<'a>(answer: &'a Value, list: &str, field: &str) -> Vec<&'a str> {
    let items = answer[list].as_array().map_or(&[][..], Vec::as_slice);
    items
        .iter()
        .map(|i| i[field].as_str().unwrap_or("null"))
        .collect()
}

#[test]
fn search_ranks_and_narrows() {
    let check = |arguments: Value, expect: &[&str]| {
        let answer = ask("search", arguments.clone());
        let mut slugs = texts(&answer, "hits", "slug");
        slugs.sort_unstable();
        slugs.dedup();
        assert_eq!(slugs, expect, "{arguments}");
    };
    check(
        json!({"q": "renewal", "skill": "customer"}),
        &["acme-corp", "globex"],
    );
    check(
        json!({"q": "renewal", "skill": "customer", "filter": {"status": "at_risk"}}),
        &["acme-corp"],
    );
    check(
        json!({"q": "renewal", "skill": "customer", "filter": {"tier": {"in": ["silver"]}}, "k": 1}),
        &["globex"],
    );
    check(
        json!({"queries": ["buoys", "procurement"], "granularity": "page", "page_type": "instance"}),
        &["globex", "kickoff"],
    );
    check(
        json!({"q": "harbour", "filter": {"at": {">=": "2026-04-01"}}, "page_type": "instance"}),
        &["wrapup"],
    );
    check(
        json!({"q": "renewal", "page_id": "[[customer::globex]]"}),
        &["globex"],
    );
    check(json!({"q": "xyzzy"}), &[]);
}

#[test]
fn search_explains_itself_when_asked() {
    let arguments = json!({
        "q": "renewel doubt after:2025", "explain": true, "k": 3, "page_type": "instance",
        "filter": {"at": null, "tier": {"in": ["gold"]}},
    });
    assert_eq!(
        ask("search", arguments)["hits"],
        json!([]),
        "no customer has a day"
    );
    let answer = ask(
        "search",
        json!({"q": "renewel doubt", "explain": true, "skill": "customer", "filter": {"tier": {"in": ["gold"]}}}),
    );
    let explain = &answer["hits"][0]["explain"];
    assert_eq!(explain["lexical"]["rank"], 1);
    assert_eq!(explain["lexical"]["approximate"], false);
    assert!(explain["lexical"]["coverage"].as_f64().unwrap() > 0.5);
    assert_eq!(explain["vector"], Value::Null);
    assert_eq!(
        explain["filters"],
        json!(["skill = customer", "tier in [\"gold\"]"])
    );
    let note = "no text has renewel; similar words were looked for";
    assert_eq!(answer["notes"], json!([note]));
    let plain = ask("search", json!({"q": "doubt"}));
    assert_eq!(plain["hits"][0].get("explain"), None);
}

#[test]
fn search_says_where_and_how() {
    let answer = ask("search", json!({"q": "doubt", "k": 1}));
    let hit = &answer["hits"][0];
    assert_eq!(
        (&hit["page_id"], &hit["page_type"], &answer["granularity"]),
        (&json!(ACME), &json!("instance"), &json!("block"))
    );
    let snippet: Vec<char> = hit["snippet"].as_str().unwrap().chars().collect();
    let at = |i: usize| usize::try_from(hit["matches"][0][i].as_u64().unwrap()).unwrap();
    assert_eq!(
        snippet[at(0)..at(1)]
            .iter()
            .collect::<String>()
            .to_lowercase(),
        "doubt"
    );
    assert!(hit.as_object().unwrap().contains_key("similarity"));
    refused(
        "search",
        json!({"q": "x", "filter": {"statu": "open"}}),
        Code::FilterUnknownKey,
    );
    refused(
        "search",
        json!({"q": "x", "filter": {"status": {"~": "open"}}}),
        Code::FilterUnknownOperator,
    );
}

#[test]
fn resolve_tells_pages_from_names() {
    let check = |wikilink: &str, page: Option<&str>| {
        let answer = ask("resolve", json!({ "wikilink": wikilink }));
        assert_eq!(answer["page"]["page_id"].as_str(), page, "{wikilink}");
        assert_eq!(answer["exists"], page.is_some(), "{wikilink}");
        answer
    };
    let typed = check("[[customer::acme-corp]]", Some(ACME));
    let parts = json!({"skill": "customer", "id": "acme-corp", "anchor": null, "version": null, "alias": null});
    assert_eq!(typed["parsed"], parts);
    assert_eq!(typed["page"]["version"], "v1");
    check("[[Acme]]", Some(ACME));
    check("[[customer]]", Some("markdown/skills/customer.md"));
    check("[[customer::nobody]]", None);
    assert_eq!(
        check("[[customer::acme-corp#Signals]]", Some(ACME))["anchor_exists"],
        true
    );
    assert_eq!(
        check("[[customer::acme-corp#Nothing]]", Some(ACME))["anchor_exists"],
        false
    );
    let twice = check("[[Status call]]", None);
    assert_eq!(
        twice["candidates"].as_array().map(Vec::len),
        Some(2),
        "{twice}"
    );
}

#[test]
fn expand_reads_pages_and_parts() {
    let page = ask("expand", json!({"page_id": "[[customer::acme-corp]]"}));
    assert_eq!(page["page"]["page_id"], ACME);
    assert_eq!(page["frontmatter"]["status"], "at_risk");
    assert!(page["body"].as_str().unwrap().contains("three harbours"));
    assert_eq!(texts(&page, "wikilinks_out", "page_id"), [KICKOFF]);
    assert_eq!(
        (
            &page["backend_projection"],
            &page["chunks_total"],
            &page["chunks_truncated"]
        ),
        (&Value::Null, &Value::Null, &json!(false))
    );
    let part = ask("expand", json!({"page_id": ACME, "anchor": "Signals"}));
    let body = part["body"].as_str().unwrap();
    assert!(
        body.contains("in doubt") && !body.contains("Nobody yet"),
        "{body}"
    );
    assert_eq!(
        ask("expand", json!({"page_id": "[[customer::nobody]]"})),
        json!({"page": null})
    );
    refused(
        "expand",
        json!({"page_id": ACME, "anchor": "nothing"}),
        Code::AnchorNotFound,
    );
    refused(
        "expand",
        json!({"page_id": ACME, "as_of": "yesterday"}),
        Code::TimeInvalid,
    );
}

#[test]
fn expand_cuts_and_goes_on() {
    let first = ask("expand", json!({"page_id": ACME, "max_chars": 60}));
    assert_eq!(first["truncated"], true);
    assert!(first["body"].as_str().unwrap().chars().count() <= 60);
    let next = ask(
        "expand",
        json!({"page_id": ACME, "anchor": first["next_anchor"].as_str().unwrap()}),
    );
    assert!(!next["body"].as_str().unwrap().is_empty());
}

#[test]
fn neighbours_are_links_both_ways() {
    let check = |direction: &str, expect: &[(&str, &str)]| {
        let answer = ask(
            "neighbours",
            json!({"page_id": ACME, "direction": direction}),
        );
        let mut pairs: Vec<_> = texts(&answer, "edges", "src_page")
            .into_iter()
            .zip(texts(&answer, "edges", "dst_page"))
            .collect();
        pairs.sort_unstable();
        assert_eq!(pairs, expect, "{direction}");
        assert_eq!(answer["truncated"], false);
    };
    check("out", &[(ACME, KICKOFF)]);
    check("in", &[(KICKOFF, ACME), (REVIEW, ACME), (REVIEW, ACME)]);
    let one = ask(
        "neighbours",
        json!({"page_id": ACME, "direction": "in", "limit": 1, "order_by": "at desc"}),
    );
    assert_eq!(
        (texts(&one, "edges", "src_page"), &one["truncated"]),
        (vec![REVIEW], &json!(true))
    );
    let narrowed = |arguments: Value| {
        ask("neighbours", arguments)["edges"]
            .as_array()
            .map(Vec::len)
    };
    assert_eq!(
        narrowed(json!({"page_id": ACME, "link_skill_in": ["meeting", "decision"]})),
        Some(4)
    );
    assert_eq!(
        narrowed(json!({"page_id": ACME, "link_skill_in": ["meeting"], "direction": "out"})),
        Some(1)
    );
    assert_eq!(
        narrowed(json!({"page_id": ACME, "link_skill": "decision"})),
        Some(0)
    );
}

#[test]
fn skills_are_listed_as_declared() {
    let answer = ask("list_skills", json!({}));
    let skill = |answer: &Value, id: &str| {
        let mut found = answer["skills"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|s| s["id"] == id);
        found
            .next()
            .unwrap_or_else(|| panic!("{id} is not listed"))
            .clone()
    };
    let customer = skill(&answer, "customer");
    assert_eq!(
        (&customer["autonomy"], &customer["is_event_typed"]),
        (&json!("review"), &json!(false))
    );
    assert_eq!(
        (&customer["instances"], &customer["layer"]),
        (&json!(2), &json!("overlay"))
    );
    assert_eq!(customer["backend"], json!({"kind": "markdown"}));
    let capabilities = json!({"writable": true, "granularity": "block", "search": "hybrid", "supports_crdt": true});
    assert_eq!(customer["capabilities"], capabilities);
    assert_eq!(
        customer["acl"],
        json!({"read": ["public"], "update": ["sales"]})
    );
    assert!(customer.get("params").is_none());
    let meeting = skill(&answer, "meeting");
    let params = json!([{"name": "window", "kind": "string", "required": true, "label": "Window"}]);
    assert_eq!(
        (&meeting["params"], &meeting["is_event_typed"]),
        (&params, &json!(true))
    );
    assert!(meeting.get("autonomy").is_none());
    let agents = ask_as(&Caller::agent("a", []), "list_skills", json!({}));
    assert!(
        skill(&agents, "customer").get("acl").is_none(),
        "group names are for administrators"
    );
}

#[test]
fn instances_come_in_order_and_in_pages() {
    let check = |arguments: Value, expect: &[&str]| {
        assert_eq!(
            texts(
                &ask("list_instances", arguments.clone()),
                "instances",
                "slug"
            ),
            expect,
            "{arguments}"
        );
    };
    check(
        json!({"skill_id": "meeting", "order_by": "at asc"}),
        &["kickoff", "review", "wrapup"],
    );
    check(
        json!({"skill_id": "meeting", "order_by": "at desc", "limit": 2}),
        &["wrapup", "review"],
    );
    check(
        json!({"skill_id": "meeting", "frontmatter_key": "source", "frontmatter_value": "gmail"}),
        &["kickoff", "wrapup"],
    );
    let mut seen = Vec::new();
    let mut cursor = Value::Null;
    for _ in 0..9 {
        let page = ask(
            "list_instances",
            json!({"skill_id": "meeting", "limit": 1, "cursor": cursor}),
        );
        seen.extend(
            texts(&page, "instances", "slug")
                .into_iter()
                .map(str::to_owned),
        );
        cursor = page["next_cursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!(seen, ["kickoff", "review", "wrapup"]);
    let dated = ask(
        "list_instances",
        json!({"skill_id": "meeting", "order_by": "at asc"}),
    );
    assert!(dated["instances"][0]["at"].is_string() && dated["next_cursor"].is_null());
}

#[test]
fn a_cursor_that_is_none_is_a_numbered_error() {
    let error = run(
        &Caller::local(),
        "list_instances",
        json!({"skill_id": "meeting", "cursor": "!"}),
    )
    .unwrap_err();
    assert_eq!(
        (error.rpc_code(), &error.data()["code"]),
        (Some(-32602), &json!("cursor_invalid")),
        "{error}"
    );
}

#[test]
fn drafts_are_judged() {
    let good = "---\ntype: instance\nskill: meeting\nid: next\nat: 2026-06-01\n---\n# Next\n\n[[customer::acme-corp#Signals]]\n";
    assert_eq!(ask("validate", json!({"content": good}))["ok"], true);
    let bad = "---\ntype: instance\nskill: meetin\nid: next\n---\n# Next\n";
    let verdict = ask("validate", json!({"content": bad}));
    assert_eq!(verdict["ok"], false);
    assert!(
        texts(&verdict, "issues", "code").contains(&"unknown_skill"),
        "{verdict}"
    );
}

#[test]
fn ancestry_walks_and_finds_paths() {
    let up = ask("provenance_ancestry", json!({"page_id": SHIP}));
    let hops = up["hops"].as_array().unwrap();
    let expect = json!([
        {"page_id": V1, "skill": "expectation", "relation": "motivated_by", "depth": 1},
        {"page_id": KICKOFF, "skill": "meeting", "relation": "derived_from", "depth": 2},
    ]);
    assert_eq!(&json!(hops[..2.min(hops.len())]), &expect);
    let down = ask(
        "provenance_ancestry",
        json!({"from_page": KICKOFF, "direction": "down", "relations": ["derived_from"]}),
    );
    assert_eq!(texts(&down, "hops", "page_id"), [V1]);
    let path = ask(
        "provenance_ancestry",
        json!({"page_id": SHIP, "to_page_id": KICKOFF}),
    );
    assert_eq!(
        path,
        json!({"reachable": true, "path": [SHIP, V1, KICKOFF], "depth": 2})
    );
    let none = ask(
        "provenance_ancestry",
        json!({"page_id": KICKOFF, "to_page": V2}),
    );
    assert_eq!(none, json!({"reachable": false}));
}

#[test]
fn reports_tell_drift_and_abandonment() {
    let drift = ask("provenance_report", json!({"kind": "drift"}));
    let row = json!({
        "decision_page_id": SHIP, "decision_skill": "decision", "expectation_page_id": V1, "superseding_page_id": V2,
        "decided_at": "2026-02-06T09:00:00Z", "superseded_at": "2026-03-02T10:00:00Z",
    });
    assert_eq!(drift, json!({"kind": "drift", "rows": [row]}));
    let abandoned = ask(
        "provenance_report",
        json!({"kind": "abandoned", "skill": "expectation"}),
    );
    let row = json!({"page_id": V1, "skill": "expectation", "via": "supersedes"});
    assert_eq!(abandoned, json!({"kind": "abandoned", "rows": [row]}));
}

#[test]
fn histories_are_absent_for_what_is_absent() {
    let one = ask("list_snapshots", json!({"page_id": ACME}));
    assert_eq!(one["snapshots"].as_array().map(Vec::len), Some(1));
    assert_eq!(
        ask("list_snapshots", json!({"page_id": "[[customer::nobody]]"})),
        json!({"snapshots": []})
    );
}
