//! Properties of the whole table of tools.

use std::collections::BTreeSet;

use escurel_access::Caller;
use escurel_tools::{ArgKind, Catalog, Effect, Quota, Scope, commands, openapi};
use expect_test::{ExpectFile, expect_file};
use serde_json::Value;

use crate::conform::problems;

const NAMES: &[&str] = &[
    "search",
    "resolve",
    "expand",
    "neighbours",
    "list_skills",
    "list_instances",
    "validate",
    "update_page",
    "edit_page",
    "move_page",
    "delete_page",
    "restore_page",
    "open_session",
    "apply_op",
    "close_session",
    "list_op_authors",
    "provenance_ancestry",
    "provenance_report",
    "list_snapshots",
    "page_history",
    "diff_pages",
    "blame_page",
    "capture_event",
    "list_inbox",
    "list_events",
    "assign_event",
    "append_message",
    "list_messages",
    "erase",
    "admin_webhook_deliveries",
    "compact_lanes",
];

/// Those that only an administrator sees.
const ADMIN: &[&str] = &["erase", "admin_webhook_deliveries", "compact_lanes"];

fn scope(name: &str) -> &'static str {
    match ADMIN.contains(&name) {
        true => "admin",
        false => "agent",
    }
}

/// Those that move the state on.
const WRITING: &[&str] = &[
    "update_page",
    "edit_page",
    "move_page",
    "delete_page",
    "restore_page",
    "open_session",
    "apply_op",
    "close_session",
    "capture_event",
    "assign_event",
    "append_message",
    "erase",
    "compact_lanes",
];

fn execution(name: &str) -> &'static str {
    match WRITING.contains(&name) {
        true => "orchestration",
        false => "deterministic",
    }
}

fn listed(caller: &Caller, labels: bool) -> Vec<Value> {
    serde_json::from_str(&Catalog::standard().list_json(caller, labels)).unwrap()
}

fn tools() -> Vec<Value> {
    listed(&Caller::local(), false)
}

/// The snapshot, with one key per line so that a change is a readable diff.
fn check_file(expect: ExpectFile, value: &Value) {
    expect.assert_eq(&(serde_json::to_string_pretty(value).unwrap() + "\n"));
}

#[test]
fn names_are_the_known_ones_and_short() {
    let names: Vec<&str> = Catalog::standard()
        .entries()
        .iter()
        .map(|e| e.spec.name)
        .collect();
    assert_eq!(names, NAMES);
    let specs = || Catalog::standard().entries().iter().map(|e| &e.spec);
    let all: Vec<&str> = specs()
        .flat_map(|s| s.aliases.iter().copied().chain([s.name]))
        .collect();
    assert_eq!(
        all.len(),
        all.iter().collect::<BTreeSet<_>>().len(),
        "a name stands for two tools"
    );
    for name in all {
        assert!(
            name.len() <= 32 && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'),
            "{name}"
        );
    }
}

#[test]
fn policies_are_consistent() {
    for entry in Catalog::standard().entries() {
        let spec = &entry.spec;
        assert_eq!(
            spec.effect == Effect::Read,
            spec.quota == Quota::Query || spec.quota == Quota::Free,
            "{}",
            spec.name
        );
        assert!(!spec.examples.is_empty(), "{} shows no example", spec.name);
    }
    let agent = Caller::agent("a", []);
    assert!(
        Catalog::standard()
            .visible(&agent)
            .all(|e| e.spec.scope == Scope::Agent)
    );
}

#[test]
fn entries_have_what_clients_need() {
    for tool in tools() {
        let name = tool["name"].as_str().unwrap().to_owned();
        assert!(
            !has_null(&tool),
            "{name}: an absent field is left out, not null"
        );
        assert!(
            tool.get("execution").is_none() && tool.get("scope").is_none(),
            "{name}"
        );
        let kind = &tool["_meta"]["escurel/execution"];
        assert_eq!(kind, execution(&name), "{name}");
        assert_eq!(tool["_meta"]["escurel/scope"], scope(&name), "{name}");
        let reads = !WRITING.contains(&name.as_str());
        assert_eq!(tool["annotations"]["readOnlyHint"], reads, "{name}");
        let description = tool["description"].as_str().unwrap();
        assert!(
            description.len() > 80 && description.len() < 2_000,
            "{name}: {}",
            description.len()
        );
        assert!(
            description.split('.').next().unwrap().len() < 90,
            "{name}: the first sentence is short"
        );
    }
    for tool in listed(&Caller::local(), true) {
        assert!(tool["execution"].is_string() && tool["scope"].is_string());
    }
}

fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.iter().any(has_null),
        Value::Object(map) => map.values().any(has_null),
        _ => false,
    }
}

#[test]
fn schemas_are_plain_and_every_field_is_documented() {
    for tool in tools() {
        let name = tool["name"].as_str().unwrap().to_owned();
        for side in ["inputSchema", "outputSchema"] {
            assert_eq!(tool[side]["type"], "object", "{name}");
            assert!(tool[side]["properties"].is_object(), "{name}");
            plain(&tool[side], &format!("{name}.{side}"));
        }
    }
}

fn plain(schema: &Value, at: &str) {
    for keyword in [
        "$ref", "$defs", "$schema", "oneOf", "anyOf", "allOf", "const", "format", "title",
    ] {
        assert!(schema.get(keyword).is_none(), "{at}: {keyword}");
    }
    assert_ne!(schema["additionalProperties"], Value::Bool(false), "{at}");
    if schema.get("enum").is_some() {
        assert_eq!(schema["type"], "string", "{at}");
    }
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let at = format!("{at}.{name}");
        let described = field["description"]
            .as_str()
            .is_some_and(|d| d.ends_with('.') || d.ends_with('?'));
        // What a list of objects holds is said at the object.
        let said = described || field["items"]["description"].is_string();
        let obvious = matches!(
            name.as_str(),
            "page_type" | "severity" | "granularity" | "kind" | "state" | "status"
        );
        assert!(said || obvious, "{at} is not documented");
        plain(field, &at);
    }
    if schema["items"].is_object() {
        plain(&schema["items"], &format!("{at}[]"));
    }
}

#[test]
fn examples_satisfy_their_schema() {
    for (tool, entry) in tools().iter().zip(Catalog::standard().entries()) {
        for (shows, arguments) in entry.spec.examples {
            let arguments: Value = serde_json::from_str(arguments).unwrap();
            assert_eq!(
                problems(&tool["inputSchema"], &arguments),
                Vec::<String>::new(),
                "{}: {shows}",
                entry.spec.name
            );
            assert!(tool["description"].as_str().unwrap().contains(shows));
        }
    }
}

#[test]
fn the_whole_list_is_a_snapshot() {
    check_file(
        expect_file!["expect/tools_list.json"],
        &Value::Array(tools()),
    );
}

#[test]
fn openapi_is_a_snapshot_and_has_every_tool() {
    let document = openapi(Catalog::standard());
    for name in NAMES {
        let operation = &document["paths"][format!("/api/tools/{name}")]["post"];
        assert_eq!(operation["operationId"], *name);
        assert_eq!(operation["x-escurel-execution"], execution(name));
        assert_eq!(operation["x-escurel-scope"], scope(name));
    }
    check_file(expect_file!["expect/openapi.json"], &document);
}

#[test]
fn commands_cover_every_argument() {
    let commands = commands(Catalog::standard());
    for (command, tool) in commands.iter().zip(tools()) {
        assert_eq!(command.name.replace('-', "_"), tool["name"]);
        let properties = tool["inputSchema"]["properties"].as_object().unwrap();
        assert_eq!(command.args().count(), properties.len(), "{}", command.name);
        assert!(
            command.args().all(|a| !a.help.is_empty()),
            "{}",
            command.name
        );
        assert!(!command.about.is_empty() && !command.about.contains('\n'));
    }
    let search = &commands[0];
    let given = [
        ("q", vec!["acme".to_owned()]),
        ("k", vec!["5".to_owned()]),
        ("queries", vec!["a".to_owned(), "b".to_owned()]),
    ];
    let expect = serde_json::json!({"q": "acme", "k": "5", "queries": ["a", "b"]});
    assert_eq!(search.arguments(given), expect);
    let kinds: Vec<(&str, &ArgKind)> = search.args().map(|a| (a.flag.as_str(), &a.kind)).collect();
    assert!(
        kinds.contains(&("page-id", &ArgKind::Text)) && kinds.contains(&("filter", &ArgKind::Json))
    );
    let lines: Vec<&str> = search
        .examples
        .iter()
        .map(|(_, line)| line.as_str())
        .collect();
    assert!(
        lines.contains(&"search 'prices per harbour' --page-id '[[customer::acme-corp]]'"),
        "{lines:?}"
    );
}

#[test]
fn a_value_on_the_command_line_is_json_or_text() {
    let commands = commands(Catalog::standard());
    let edit = commands.iter().find(|c| c.name == "edit-page").unwrap();
    for (given, expected) in [
        ("open", serde_json::json!("open")),
        ("3", serde_json::json!(3)),
        ("-0.5", serde_json::json!(-0.5)),
        ("\"3\"", serde_json::json!("3")),
        ("null", serde_json::json!(null)),
        ("[a, b]", serde_json::json!("[a, b]")),
        ("[\"a\"]", serde_json::json!(["a"])),
        ("2025-06-26", serde_json::json!("2025-06-26")),
    ] {
        let arguments = edit.arguments([("value", vec![given.to_owned()])]);
        assert_eq!(arguments["value"], expected, "{given}");
    }
}
