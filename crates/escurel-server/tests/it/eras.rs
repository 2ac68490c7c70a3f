//! Envelope, eras, statuses.

use escurel_server::mcp::Headers;
use serde_json::{Value, json};

use crate::support::{both, code, legacy, meta, modern, raw, request};

fn check_error(answer: (u16, Value), status: u16, number: i64, name: &str) {
    let (got, body) = answer;
    assert_eq!((got, code(&body)), (status, number), "{body}");
    assert_eq!(body["error"]["data"]["code"], name, "{body}");
    assert_eq!(body["error"]["data"]["retryable"], false);
    assert!(
        body["error"]["message"]
            .as_str()
            .is_some_and(|m| !m.is_empty())
    );
}

#[test]
fn notifications_get_202_and_nothing_else() {
    for method in [
        "notifications/initialized",
        "notifications/cancelled",
        "whatever",
    ] {
        let body = json!({"jsonrpc": "2.0", "method": method}).to_string();
        assert_eq!(raw(None, body.as_bytes()), (202, Value::Null));
        assert_eq!(
            raw(
                Some(Headers {
                    version: Some("2026-07-28"),
                    ..Headers::default()
                }),
                body.as_bytes()
            ),
            (202, Value::Null)
        );
    }
}

#[test]
fn unknown_methods() {
    check_error(legacy("nope", json!({})), 200, -32601, "method_not_found");
    check_error(modern("nope", json!({})), 404, -32601, "method_not_found");
    for removed in [
        "initialize",
        "ping",
        "logging/setLevel",
        "resources/subscribe",
        "resources/unsubscribe",
    ] {
        check_error(modern(removed, json!({})), 404, -32601, "method_not_found");
    }
    for never in [
        "server/nothing",
        "completion/complete",
        "logging/setLevel",
        "resources/subscribe",
        "tasks/list",
    ] {
        check_error(legacy(never, json!({})), 200, -32601, "method_not_found");
    }
}

#[test]
fn bad_messages() {
    for (body, number, name) in [
        ("{", -32700, "parse_error"),
        ("[]", -32600, "invalid_request"),
        (
            r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#,
            -32600,
            "invalid_request",
        ),
        (
            r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
            -32600,
            "invalid_request",
        ),
        (
            r#"{"jsonrpc":"2.0","id":true,"method":"ping"}"#,
            -32600,
            "invalid_request",
        ),
    ] {
        let (status, answer) = raw(None, body.as_bytes());
        check_error((status, answer.clone()), 400, number, name);
        assert!(
            answer.get("id").is_none(),
            "an unreadable id is left out: {answer}"
        );
    }
    let (_, answer) = raw(None, br#"{"id":7,"method":"ping"}"#);
    assert_eq!(answer["id"], 7, "a readable id is echoed");
}

#[test]
fn ids_come_back_as_they_were() {
    for id in [
        json!(0),
        json!(-1),
        json!(""),
        json!("ü\"\\"),
        json!(9_007_199_254_740_993_u64),
    ] {
        let (_, answer) = raw(
            None,
            request(id.clone(), "ping", json!({}))
                .to_string()
                .as_bytes(),
        );
        assert_eq!(answer["id"], id);
        let (_, answer) = raw(
            None,
            request(id.clone(), "nope", json!({}))
                .to_string()
                .as_bytes(),
        );
        assert_eq!(answer["id"], id);
    }
}

#[test]
fn initialize_negotiates() {
    for (asked, settled) in [
        (json!("2025-11-25"), "2025-11-25"),
        (json!("2025-06-18"), "2025-06-18"),
        (json!("2025-03-26"), "2025-03-26"),
        (json!("2024-11-05"), "2024-11-05"),
        (json!("2026-07-28"), "2025-11-25"),
        (json!("1.0"), "2025-11-25"),
        (json!(5), "2025-11-25"),
        (Value::Null, "2025-11-25"),
    ] {
        let body = request(
            json!(0),
            "initialize",
            json!({"protocolVersion": asked, "capabilities": {}, "clientInfo": {}}),
        );
        let (status, answer) = raw(Some(Headers::default()), body.to_string().as_bytes());
        assert_eq!(
            (status, answer["result"]["protocolVersion"].as_str()),
            (200, Some(settled)),
            "{answer}"
        );
        let result = &answer["result"];
        assert_eq!(result["serverInfo"]["name"], "escurel");
        assert_eq!(
            result["capabilities"],
            json!({"tools": {}, "resources": {}, "prompts": {}})
        );
        assert!(
            result["instructions"]
                .as_str()
                .is_some_and(|text| text.contains("search") && text.contains("expand"))
        );
    }
}

#[test]
fn any_known_legacy_version_is_fine_afterwards() {
    for version in [
        None,
        Some("2024-11-05"),
        Some("2025-03-26"),
        Some("2025-06-18"),
        Some("2025-11-25"),
    ] {
        let body = request(json!(1), "ping", json!({})).to_string();
        let (status, answer) = raw(
            Some(Headers {
                version,
                ..Headers::default()
            }),
            body.as_bytes(),
        );
        assert_eq!((status, &answer["result"]), (200, &json!({})));
    }
    let body = request(json!(1), "ping", json!({})).to_string();
    let (status, _) = raw(
        Some(Headers {
            version: Some("1999-01-01"),
            ..Headers::default()
        }),
        body.as_bytes(),
    );
    assert_eq!(status, 400);
}

#[test]
fn discover() {
    let (status, answer) = modern("server/discover", json!({}));
    assert_eq!(status, 200);
    let result = &answer["result"];
    assert_eq!(result["supportedVersions"], json!(["2026-07-28"]));
    assert_eq!(
        result["capabilities"],
        json!({"tools": {}, "resources": {}, "prompts": {}})
    );
    assert!(
        result["ttlMs"].is_u64()
            && result["cacheScope"] == "public"
            && result["resultType"] == "complete"
    );
    assert_eq!(answer["id"], "m");
}

#[test]
fn modern_requests_must_describe_themselves() {
    let send = |version: Option<&str>, method: Option<&str>, name: Option<&str>, params: Value| {
        let body = request(json!(1), "tools/call", params).to_string();
        raw(
            Some(Headers {
                version,
                method,
                name,
            }),
            body.as_bytes(),
        )
    };
    let v = "2026-07-28";
    let call = |meta: Value| json!({"name": "list_skills", "arguments": {}, "_meta": meta});
    let (status, _) = send(
        Some(v),
        Some("tools/call"),
        Some("list_skills"),
        call(meta(v)),
    );
    assert_eq!(status, 200);
    check_error(
        send(
            Some(v),
            Some("tools/call"),
            Some("list_skills"),
            json!({"name": "list_skills"}),
        ),
        400,
        -32602,
        "meta_missing",
    );
    check_error(
        send(None, Some("tools/call"), Some("list_skills"), call(meta(v))),
        400,
        -32020,
        "header_mismatch",
    );
    check_error(
        send(
            Some("2025-11-25"),
            Some("tools/call"),
            Some("list_skills"),
            call(meta(v)),
        ),
        400,
        -32020,
        "header_mismatch",
    );
    let (status, answer) = send(
        Some("2099-01-01"),
        Some("tools/call"),
        Some("list_skills"),
        call(meta("2099-01-01")),
    );
    assert_eq!((status, code(&answer)), (400, -32022));
    assert_eq!(answer["error"]["data"]["supported"], json!([v]));
    assert_eq!(answer["error"]["data"]["requested"], "2099-01-01");
    let mut bare = meta(v);
    bare.as_object_mut()
        .unwrap()
        .remove("io.modelcontextprotocol/clientCapabilities");
    check_error(
        send(Some(v), Some("tools/call"), Some("list_skills"), call(bare)),
        400,
        -32602,
        "meta_missing",
    );
    let mut anonymous = meta(v);
    anonymous
        .as_object_mut()
        .unwrap()
        .remove("io.modelcontextprotocol/clientInfo");
    assert_eq!(
        send(
            Some(v),
            Some("tools/call"),
            Some("list_skills"),
            call(anonymous)
        )
        .0,
        200
    );
    for (method, name) in [
        (None, Some("list_skills")),
        (Some("Tools/Call"), Some("list_skills")),
        (Some("tools/call"), None),
        (Some("tools/call"), Some("List_skills")),
        (Some("tools/call"), Some("=?base64?!!?=")),
        (Some("tools/call"), Some("=?base64?/w==?=")),
    ] {
        check_error(
            send(Some(v), method, name, call(meta(v))),
            400,
            -32020,
            "header_mismatch",
        );
    }
    assert_eq!(
        send(
            Some(v),
            Some("tools/call"),
            Some("=?base64?bGlzdF9za2lsbHM=?="),
            call(meta(v))
        )
        .0,
        200
    );
}

#[test]
fn without_headers_the_body_decides() {
    let mut params = json!({"_meta": meta("2026-07-28")});
    let (_, answer) = raw(
        None,
        request(json!(1), "tools/list", params.clone())
            .to_string()
            .as_bytes(),
    );
    assert_eq!(answer["result"]["resultType"], "complete");
    params["_meta"] = meta("2030-01-01");
    let (_, answer) = raw(
        None,
        request(json!(1), "tools/list", params)
            .to_string()
            .as_bytes(),
    );
    assert_eq!(code(&answer), -32022);
    let (_, answer) = raw(
        None,
        request(json!(1), "tools/list", json!({}))
            .to_string()
            .as_bytes(),
    );
    assert!(answer["result"].get("resultType").is_none());
}

#[test]
fn prompts_are_an_empty_list() {
    assert_eq!(both("prompts/list", json!({}))["prompts"], json!([]));
    check_error(
        legacy("prompts/get", json!({"name": "x"})),
        200,
        -32602,
        "prompt_not_found",
    );
    check_error(
        modern("prompts/get", json!({"name": "x"})),
        200,
        -32602,
        "prompt_not_found",
    );
}

#[test]
fn lists_are_cacheable() {
    for method in [
        "tools/list",
        "prompts/list",
        "resources/list",
        "resources/templates/list",
    ] {
        let result = both(method, json!({}));
        assert!(result["ttlMs"].is_u64(), "{method}");
        assert!(
            ["public", "private"].contains(&result["cacheScope"].as_str().unwrap()),
            "{method}"
        );
        assert!(result.get("nextCursor").is_none(), "{method}");
        check_error(
            legacy(method, json!({"cursor": "bogus"})),
            200,
            -32602,
            "cursor_invalid",
        );
        check_error(
            modern(method, json!({"cursor": 5})),
            200,
            -32602,
            "cursor_invalid",
        );
    }
}
