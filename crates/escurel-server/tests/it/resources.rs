//! Pages as resources.

use escurel_access::Caller;
use escurel_core::Kb;
use escurel_server::Service;
use escurel_server::mcp::{Context, handle};
use serde_json::{Value, json};

use crate::support::{both, code, legacy, modern, request};

#[test]
fn every_page_is_listed_and_can_be_read() {
    let result = both("resources/list", json!({}));
    let resources = result["resources"].as_array().unwrap();
    assert!(resources.len() >= 4);
    for resource in resources {
        let uri = resource["uri"].as_str().unwrap();
        assert!(
            uri.starts_with("escurel://page/") && uri.is_ascii() && !uri.contains(' '),
            "{uri}"
        );
        assert_eq!(resource["mimeType"], "text/markdown");
        assert!(resource["name"].is_string() && resource["title"].is_string());
        let read = both_read(uri);
        assert_eq!(read["contents"].as_array().map(Vec::len), Some(1));
        assert_eq!(read["contents"][0]["uri"], uri);
        assert!(
            read["contents"][0]["text"]
                .as_str()
                .is_some_and(|text| text.contains('#'))
        );
    }
    let uris: Vec<&str> = resources.iter().filter_map(|r| r["uri"].as_str()).collect();
    assert!(
        uris.contains(&"escurel://page/markdown/instances/customer/s%C3%BCd.md"),
        "{uris:?}"
    );
    assert!(
        uris.contains(&"escurel://page/markdown/instances/customer/50%25%20off.md"),
        "{uris:?}"
    );
}

fn both_read(uri: &str) -> Value {
    both("resources/read", json!({"uri": uri}))
}

#[test]
fn a_uri_may_be_spelled_unencoded() {
    let text =
        both_read("escurel://page/markdown/instances/customer/süd.md")["contents"][0]["text"]
            .clone();
    assert!(text.as_str().unwrap().contains("Söhne"));
}

#[test]
fn the_template_is_for_whole_paths() {
    let templates = both("resources/templates/list", json!({}));
    assert_eq!(
        templates["resourceTemplates"][0]["uriTemplate"],
        "escurel://page/{+path}"
    );
}

#[test]
fn missing_pages_are_errors_of_the_era() {
    for uri in [
        "escurel://page/markdown/none.md",
        "escurel://page/%ff",
        "escurel://page/%",
        "file:///etc/passwd",
        "nonsense",
        "",
    ] {
        let (status, answer) = legacy("resources/read", json!({"uri": uri}));
        assert_eq!((status, code(&answer)), (200, -32002), "{uri} {answer}");
        let (status, answer) = modern("resources/read", json!({"uri": uri}));
        assert_eq!((status, code(&answer)), (200, -32602), "{uri} {answer}");
        assert_eq!(answer["error"]["data"]["code"], "page_not_found");
    }
    let (_, answer) = legacy("resources/read", json!({}));
    assert_eq!(code(&answer), -32602);
}

#[test]
fn long_lists_come_in_parts_that_end() {
    let pages: Vec<(String, String)> = (0..450)
        .map(|n| (format!("n/{n:04}.md"), format!("# N{n}\n")))
        .collect();
    let pages: Vec<(&str, &str)> = pages
        .iter()
        .map(|(p, t)| (p.as_str(), t.as_str()))
        .collect();
    let service = Service::new(Kb::in_memory(&pages), false);
    let caller = Caller::local();
    let (mut seen, mut cursor, mut rounds) = (Vec::new(), None::<String>, 0);
    loop {
        let params = cursor.as_ref().map_or(json!({}), |c| json!({"cursor": c}));
        let body = request(json!(1), "resources/list", params).to_string();
        let reply = handle(
            Context {
                service: &service,
                caller: &caller,
            },
            None,
            body.as_bytes(),
        );
        let answer: Value = serde_json::from_str(&reply.body.unwrap()).unwrap();
        let found = answer["result"]["resources"].as_array().unwrap();
        seen.extend(found.iter().map(|r| r["uri"].as_str().unwrap().to_owned()));
        rounds += 1;
        match answer["result"].get("nextCursor") {
            Some(next) => cursor = Some(next.as_str().unwrap().to_owned()),
            None => break,
        }
        assert!(rounds < 10, "the cursor does not advance");
    }
    let total = seen.len();
    seen.sort();
    seen.dedup();
    assert_eq!(total, seen.len(), "each page once");
    assert!(
        (450..470).contains(&total) && rounds == 3,
        "{total} in {rounds}"
    );
}
