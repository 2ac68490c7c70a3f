//! Arguments: what is accepted, what is refused and how it is said.

use std::sync::{Arc, LazyLock};

use escurel_access::Caller;
use escurel_core::{Code, Kb};
use escurel_tools::{Call, Catalog, DispatchError, dispatch};
use serde_json::{Value, json};

static KB: LazyLock<Arc<Kb>> = LazyLock::new(|| Kb::in_memory(&[]));

fn call(name: &str, arguments: Value) -> Result<Value, DispatchError> {
    let answer = dispatch(
        Catalog::standard(),
        &Call {
            kb: &KB,
            caller: &Caller::local(),
        },
        name,
        arguments,
    )?;
    Ok(serde_json::from_str(&answer).unwrap())
}

/// The call is refused before any page is looked at.
#[track_caller]
fn refused(name: &str, arguments: Value, code: Code, location: &str, says: &str) {
    match call(name, arguments.clone()) {
        Err(DispatchError::Refused(r)) => {
            assert_eq!(
                (r.code, r.location.as_deref()),
                (code, Some(location)),
                "{name} {arguments}: {r}"
            );
            assert!(r.to_string().contains(says), "{r}");
        }
        other => panic!("{name} {arguments}: {other:?}"),
    }
}

/// The arguments are well formed; what the pages say to them is not asked.
#[track_caller]
fn accepted(name: &str, arguments: Value) {
    if let Err(DispatchError::Refused(r)) = call(name, arguments.clone()) {
        let form = matches!(r.code, Code::InvalidArgument | Code::UnknownArgument);
        assert!(!form, "{name} {arguments}: {r}");
    }
}

#[test]
fn unknown_arguments_name_the_nearest() {
    let unknown = Code::UnknownArgument;
    refused("search", json!({"qery": "x"}), unknown, "qery", "queries");
    refused(
        "search",
        json!({"q": "x", "filters": {}}),
        unknown,
        "filters",
        "Did you mean filter?",
    );
    refused("expand", json!({"page": "x"}), unknown, "page", "page_id");
    refused(
        "list_skills",
        json!({"limit": 1}),
        unknown,
        "limit",
        "takes none",
    );
    refused(
        "list_instances",
        json!({"skill_id": "x", "limt": 5}),
        unknown,
        "limt",
        "Did you mean limit?",
    );
    refused(
        "neighbours",
        json!({"page_id": "x", "zzz": null}),
        unknown,
        "zzz",
        "It knows page_id",
    );
}

#[test]
fn mistyped_arguments_are_named() {
    let bad = Code::InvalidArgument;
    refused(
        "search",
        json!({"q": "x", "k": "ten"}),
        bad,
        "k",
        "k: expected an integer between 1 and 200, got \"ten\"",
    );
    refused(
        "search",
        json!({"q": "x", "k": 201}),
        bad,
        "k",
        "between 1 and 200",
    );
    refused(
        "search",
        json!({"q": "x", "k": 0}),
        bad,
        "k",
        "between 1 and 200",
    );
    refused(
        "search",
        json!({"q": ["x"]}),
        bad,
        "q",
        "q: expected a string, got a list",
    );
    refused(
        "search",
        json!({"q": "x", "granularity": "blok"}),
        bad,
        "granularity",
        "Did you mean block?",
    );
    refused(
        "search",
        json!({"q": "x", "filter": "status=open"}),
        bad,
        "filter",
        "expected an object",
    );
    refused(
        "search",
        json!({"q": "x", "queries": ["y", "z"]}),
        bad,
        "queries",
        "not both",
    );
    refused("search", json!({}), bad, "q", "required");
    refused(
        "search",
        json!({"queries": vec!["a"; 9]}),
        bad,
        "queries",
        "2 to 8",
    );
    refused(
        "search",
        json!({"queries": ["a"]}),
        bad,
        "queries",
        "2 to 8",
    );
    refused(
        "search",
        json!({"queries": ["a", 5]}),
        bad,
        "queries",
        "queries[1]: expected a string, got 5",
    );
    refused(
        "expand",
        json!({}),
        bad,
        "page_id",
        "page_id: required; expected a string",
    );
    refused(
        "expand",
        json!({"page_id": null}),
        bad,
        "page_id",
        "required",
    );
    refused(
        "expand",
        json!({"page_id": "x", "version": "latest"}),
        bad,
        "version",
        "such as v3",
    );
    refused(
        "expand",
        json!({"page_id": "x", "version": -1}),
        bad,
        "version",
        "such as v3",
    );
    refused(
        "resolve",
        json!({"wikilink": 7}),
        bad,
        "wikilink",
        "expected a string, got 7",
    );
    refused(
        "list_instances",
        json!({"skill_id": "x", "frontmatter_key": "a"}),
        bad,
        "frontmatter_value",
        "required when",
    );
    refused(
        "list_instances",
        json!({"skill_id": "x", "limit": 501}),
        bad,
        "limit",
        "between 1 and 500",
    );
    refused(
        "provenance_ancestry",
        json!({"page_id": "x", "direction": "sideways"}),
        bad,
        "direction",
        "\"up\", \"down\"",
    );
}

#[test]
fn plain_meaning_is_accepted() {
    accepted(
        "search",
        json!({"q": "x", "k": "5", "filter": "{\"status\": \"open\"}", "page_type": null}),
    );
    accepted("search", json!({"queries": "[\"a\", \"b\"]", "k": 5.0}));
    accepted(
        "search",
        json!({"q": "x", "as_of": null, "scenario": null, "page_id": null, "queries": null}),
    );
    accepted(
        "expand",
        json!({"page_id": "x", "full": "true", "version": "v3"}),
    );
    accepted("expand", json!({"page_id": "x", "version": 3}));
    accepted("list_skills", Value::Null);
    accepted("list_skills", json!("{}"));
    accepted(
        "provenance_ancestry",
        json!({"from_page": "x", "to_page_id": "y", "max_hops": 99}),
    );
    accepted(
        "provenance_ancestry",
        json!({"from_page_id": "x", "page_id": null, "max_hops": u64::MAX >> 1}),
    );
    accepted(
        "list_instances",
        json!({"skill_id": "x", "frontmatter_key": "n", "frontmatter_value": 3}),
    );
    accepted("neighbors", json!({"page_id": "x", "link_skill_in": []}));
}

#[test]
fn an_argument_given_twice_is_refused() {
    let both = json!({"page_id": "x", "from_page": "y"});
    refused(
        "provenance_ancestry",
        both,
        Code::InvalidArgument,
        "page_id",
        "given twice",
    );
    accepted(
        "provenance_ancestry",
        json!({"page_id": "x", "from_page": "x"}),
    );
}

#[test]
fn numbers_only_where_the_contract_has_them() {
    let check = |name: &str, arguments: Value, number: Option<i64>, code: &str| {
        let error = call(name, arguments).unwrap_err();
        assert_eq!(error.rpc_code(), number, "{name}: {error}");
        assert_eq!(error.data()["code"], code, "{name}: {error}");
        assert_eq!(error.data()["retryable"], false);
    };
    check(
        "provenance_report",
        json!({"kind": "churn"}),
        Some(-32602),
        "invalid_argument",
    );
    check(
        "provenance_report",
        json!({"kind": "drift", "skil": "x"}),
        None,
        "unknown_argument",
    );
    check("serch", json!({}), Some(-32602), "unknown_tool");
    check("search", json!({"q": 1}), None, "invalid_argument");
}

#[test]
fn an_unknown_tool_names_the_nearest() {
    let check = |name: &str, expect: Option<&str>| match call(name, json!({})) {
        Err(DispatchError::UnknownTool {
            name: echoed,
            nearest,
        }) => {
            assert_eq!(nearest.as_deref(), expect, "{name}");
            assert!(echoed.chars().count() <= 64);
        }
        other => panic!("{other:?}"),
    };
    check("serch", Some("search"));
    check("list-skills", Some("list_skills"));
    check("", None);
    check(&"é".repeat(10_000), None);
}

#[test]
fn arguments_that_are_no_object() {
    for arguments in [json!([]), json!(5), json!("[]"), json!(true), json!("{")] {
        let error = call("search", arguments).unwrap_err();
        assert!(
            error.to_string().contains("arguments: expected an object"),
            "{error}"
        );
    }
}

#[test]
fn huge_and_deep_values_are_answered_shortly() {
    let huge = "x".repeat(3 << 20);
    let mut deep = json!(1);
    for _ in 0..100 {
        deep = json!({ "not": deep });
    }
    accepted("search", json!({"q": "x", "filter": {"status": deep}}));
    let keys: serde_json::Map<String, Value> =
        (0..20_000).map(|i| (format!("k{i}"), json!(i))).collect();
    let calls = [
        ("search", json!({"q": "x", "k": huge})),
        ("search", Value::String(huge.clone())),
        (
            "search",
            json!({"q": "x", "filter": "{\"a\":".repeat(50_000)}),
        ),
        ("search", json!({huge.clone(): 1})),
        ("search", Value::Object(keys)),
        ("expand", json!({"page_id": "x", "version": huge})),
        ("provenance_report", json!({"kind": huge})),
    ];
    for (name, arguments) in calls {
        let error = call(name, arguments).unwrap_err();
        let text = error.to_string() + &error.data().to_string();
        assert!(text.len() < 1_000, "{name}: {} bytes", text.len());
    }
}
