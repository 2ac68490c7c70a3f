//! `tools/list` and `tools/call`.

use serde_json::{Value, json};

use crate::support::{ACME, both, code, legacy, modern};

#[test]
fn every_tool_fits_every_client() {
    let tools = both("tools/list", json!({}))["tools"]
        .as_array()
        .unwrap()
        .clone();
    assert!(tools.len() >= 10);
    for tool in &tools {
        let name = tool["name"].as_str().unwrap();
        assert!(
            name.len() <= 40
                && name
                    .bytes()
                    .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_'),
            "{name}"
        );
        assert_eq!(tool["inputSchema"]["type"], "object", "{name}");
        let text = tool.to_string();
        assert!(
            !text.contains("\"$ref\"") && !text.contains("\"$defs\""),
            "{name}: schemas are inlined"
        );
        for word in ["oneOf", "anyOf", "allOf"] {
            assert!(
                tool["inputSchema"].get(word).is_none(),
                "{name}: {word} at the root"
            );
        }
        assert_ne!(
            tool["outputSchema"]["additionalProperties"], false,
            "{name}"
        );
        assert!(
            tool.get("execution").is_none() && tool.get("scope").is_none(),
            "{name}"
        );
        assert!(
            tool["_meta"]["escurel/execution"].is_string()
                && tool["_meta"]["escurel/scope"].is_string(),
            "{name}"
        );
        assert!(
            tool.as_object().unwrap().values().all(|v| !v.is_null()),
            "{name}: absent facts are left out"
        );
    }
    let labelled = both("tools/list", json!({"labels": "top_level"}));
    assert!(
        labelled["tools"][0]["execution"].is_string() && labelled["tools"][0]["scope"].is_string()
    );
}

#[test]
fn success_is_the_same_as_text_and_as_data() {
    for (tool, arguments) in [
        ("list_skills", json!({})),
        ("search", json!({"q": "renewal"})),
        ("expand", json!({"page_id": ACME})),
        ("resolve", json!({"wikilink": "[[customer::acme]]"})),
    ] {
        let result = both("tools/call", json!({"name": tool, "arguments": arguments}));
        assert!(result.get("isError").is_none(), "{result}");
        assert_eq!(result["content"].as_array().map(Vec::len), Some(1));
        let text = result["content"][0]["text"].as_str().unwrap();
        let data: Value = serde_json::from_str(text).unwrap();
        assert_eq!(data, result["structuredContent"], "{tool}");
        assert!(data.is_object());
    }
}

#[test]
fn refusals_are_results_that_the_model_sees() {
    for (tool, arguments, code, location) in [
        (
            "search",
            json!({"q": "x", "kk": 3}),
            "unknown_argument",
            Some("kk"),
        ),
        (
            "search",
            json!({"q": "x", "k": "many"}),
            "invalid_argument",
            Some("k"),
        ),
        (
            "search",
            json!({"q": "x", "filter": [1]}),
            "invalid_argument",
            Some("filter"),
        ),
        ("expand", json!({}), "invalid_argument", Some("page_id")),
        (
            "list_instances",
            json!({"skill_id": "custmer"}),
            "skill_not_found",
            None,
        ),
    ] {
        let result = both("tools/call", json!({"name": tool, "arguments": arguments}));
        assert_eq!(result["isError"], true, "{tool} {result}");
        assert!(result.get("structuredContent").is_none());
        let error = &result["_meta"]["escurel/error"];
        assert_eq!(
            (error["code"].as_str(), error["retryable"].as_bool()),
            (Some(code), Some(false)),
            "{result}"
        );
        if let Some(location) = location {
            assert_eq!(error["location"], location, "{result}");
        }
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(
            text.starts_with(&format!("{code}: ")) && text.ends_with(['.', '?']),
            "{text}"
        );
    }
}

#[test]
fn arguments_that_arrive_as_text_are_read() {
    let result = both(
        "tools/call",
        json!({"name": "search", "arguments": {"q": "renewal", "k": "3", "filter": "{}"}}),
    );
    assert!(result.get("isError").is_none(), "{result}");
    for absent in [
        json!({"name": "list_skills"}),
        json!({"name": "list_skills", "arguments": null}),
    ] {
        assert!(both("tools/call", absent).get("isError").is_none());
    }
}

#[test]
fn calls_that_are_no_calls_are_errors() {
    for (params, name) in [
        (json!({"name": "serch", "arguments": {}}), "unknown_tool"),
        (
            json!({"name": "search", "arguments": [1]}),
            "invalid_argument",
        ),
        (
            json!({"name": "search", "arguments": "{}"}),
            "invalid_argument",
        ),
        (json!({"name": 5}), "invalid_argument"),
        (json!({}), "invalid_argument"),
    ] {
        for (status, answer) in [
            legacy("tools/call", params.clone()),
            modern("tools/call", params.clone()),
        ] {
            assert_eq!((status, code(&answer)), (200, -32602), "{params} {answer}");
            assert_eq!(answer["error"]["data"]["code"], name, "{answer}");
        }
    }
    let (_, answer) = legacy("tools/call", json!({"name": "serch", "arguments": {}}));
    assert!(
        answer["error"]["message"]
            .as_str()
            .unwrap()
            .contains("search"),
        "{answer}"
    );
    let long = "x".repeat(100_000);
    let (_, answer) = legacy("tools/call", json!({"name": long, "arguments": {}}));
    assert!(
        answer.to_string().len() < 1000,
        "what a stranger sent is not echoed whole"
    );
}
