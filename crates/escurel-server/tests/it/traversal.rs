//! Ids that try to leave the folder: the same answer at every door.

use serde_json::json;

use crate::http::post;
use crate::support::{both, code, legacy};

const IDS: &[&str] = &[
    "..%2F..%2Fx",
    "%252e%252e/x",
    "../../etc/passwd",
    "a/../../x",
    "a\\..\\b",
    "\\\\host\\s",
    "C:x",
    "x\u{0}.md",
    "．．/x",
    "skill::../x",
    "/etc/passwd",
    "./../x",
    "",
    ".",
    "..",
    ".escurel/lock",
];

/// Never a page, never an unexplained failure.
fn harmless(name: &str) -> bool {
    matches!(
        name,
        "page_id_invalid"
            | "page_not_found"
            | "invalid_argument"
            | "wikilink_malformed"
            | "ambiguous"
    )
}

#[test]
fn tools() {
    for id in IDS {
        let arguments = json!({"page_id": id});
        for tool in ["expand", "neighbours", "list_snapshots"] {
            let result = both("tools/call", json!({"name": tool, "arguments": arguments}));
            let refused = result["_meta"]["escurel/error"]["code"].as_str();
            let empty = result["structuredContent"].as_object().is_some_and(|o| {
                o.values().all(|v| {
                    v.is_null()
                        || v == &json!([])
                        || v == &json!(false)
                        || v.is_string()
                        || v == &json!({})
                })
            });
            assert!(
                refused.is_some_and(harmless) || (refused.is_none() && empty),
                "{tool} {id:?} {result}"
            );
        }
    }
}

#[test]
fn resources() {
    for id in IDS {
        for uri in [
            format!("escurel://page/{id}"),
            format!(
                "escurel://page/{}",
                id.replace('.', "%2e").replace('/', "%2F")
            ),
        ] {
            let (_, answer) = legacy("resources/read", json!({"uri": uri}));
            assert!(
                [-32602, -32002].contains(&code(&answer)),
                "{uri:?} {answer}"
            );
            assert!(
                answer["error"]["data"]["code"]
                    .as_str()
                    .is_some_and(harmless),
                "{uri:?} {answer}"
            );
        }
    }
}

#[tokio::test]
async fn plain_http() {
    for id in IDS {
        let (status, body) = post("/api/tools/expand", &json!({"page_id": id}).to_string()).await;
        let refused = body["error"]["code"].as_str();
        assert!(
            (status == 200 && refused.is_none() && body["page"].is_null())
                || (refused.is_some_and(harmless) && (400..500).contains(&status)),
            "{id:?} {status} {body}"
        );
    }
    for path in [
        "/api/tools/..%2F..%2Fx",
        "/api/tools/%2e%2e",
        "/api/tools/expand/../../x",
        "/api/tools/",
        "/api/tools/a%00b",
        "/api/tools/%ff",
    ] {
        let (status, body) = post(path, "{}").await;
        assert_eq!(status, 404, "{path} {body}");
        assert!(body["error"]["code"].is_string());
    }
}
