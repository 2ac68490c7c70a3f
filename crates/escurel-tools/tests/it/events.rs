//! Inbox and conversations through the tools: shapes, numbers, cursors.

use std::sync::{Arc, LazyLock};

use escurel_access::Caller;
use escurel_core::Kb;
use escurel_tools::{Call, Catalog, DispatchError, dispatch, render_table};
use serde_json::{Value, json};

use crate::conform::problems;

static KB: LazyLock<Arc<Kb>> = LazyLock::new(|| Kb::in_memory(&[("acme.md", "# Acme\n")]));

fn run(name: &str, arguments: Value) -> Result<Value, DispatchError> {
    let caller = Caller::local();
    let cx = Call {
        kb: &KB,
        caller: &caller,
    };
    let answer = dispatch(Catalog::standard(), &cx, name, arguments)?;
    Ok(serde_json::from_str(&answer).unwrap())
}

/// The answer, which satisfies the tool's output schema.
#[track_caller]
fn ask(name: &str, arguments: Value) -> Value {
    let answer = run(name, arguments).unwrap_or_else(|e| panic!("{name}: {e}"));
    let listed = Catalog::standard().list_json(&Caller::local(), false);
    let listed: Vec<Value> = serde_json::from_str(&listed).unwrap();
    let tool = listed.iter().find(|tool| tool["name"] == name).unwrap();
    let found = problems(&tool["outputSchema"], &answer);
    assert_eq!(found, Vec::<String>::new(), "{name}: {answer}");
    render_table(name, &answer);
    answer
}

#[track_caller]
fn number(name: &str, arguments: Value) -> (i64, Value) {
    let error = run(name, arguments).unwrap_err();
    (error.rpc_code().unwrap(), error.data()["code"].clone())
}

#[test]
fn an_event_goes_from_the_inbox_into_a_pages_history() {
    let event = ask(
        "capture_event",
        json!({"event_id": "e1", "at": "2026-01-01", "instance_page_id": "[[acme]]", "provenance": "{\"n\": 1}"}),
    );
    assert_eq!(
        event,
        json!({
            "event_id": "e1", "at": "2026-01-01T00:00:00Z", "source": null, "mime": null, "label_skill": null,
            "instance_page_id": "acme.md", "status": "inbox", "title": null, "body": null,
            "provenance": {"n": 1, "captured_by": "local"},
        })
    );
    ask(
        "capture_event",
        json!({"event_id": "e2", "at": "2026-01-02"}),
    );
    let first = ask("list_inbox", json!({"limit": 1}));
    assert_eq!(first["events"][0]["event_id"], "e2");
    let rest = ask(
        "list_inbox",
        json!({"limit": 1, "cursor": first["next_cursor"]}),
    );
    assert_eq!(rest["events"], json!([event]));
    assert!(rest.get("next_cursor").is_none(), "its absence is the end");

    let assigned = ask(
        "assign_event",
        json!({"event_id": "e1", "instance_page_id": "acme.md"}),
    );
    assert_eq!(assigned["status"], "processed");
    let history = ask("list_events", json!({"instance_page_id": "[[acme]]"}));
    assert_eq!(history["events"], json!([assigned]));
    let claim = |id: &str| {
        number(
            "assign_event",
            json!({"event_id": id, "instance_page_id": "acme.md"}),
        )
    };
    assert_eq!(claim("e1"), (-32602, json!("already_assigned")));
    assert_eq!(claim("none"), (-32602, json!("event_not_found")));
    for (tool, arguments) in [
        ("list_inbox", json!({"cursor": "zz"})),
        (
            "list_events",
            json!({"instance_page_id": "acme.md", "cursor": "zz"}),
        ),
        (
            "list_messages",
            json!({"chat_group_id": "g", "cursor": "zz"}),
        ),
    ] {
        assert_eq!(
            number(tool, arguments),
            (-32602, json!("cursor_invalid")),
            "{tool}"
        );
    }
}

#[test]
fn a_conversation_is_appended_to_and_listed() {
    let message = ask(
        "append_message",
        json!({"chat_group_id": "g", "msg_id": "m1", "content": "Hi.", "at": "2026-01-01", "embed": true}),
    );
    assert_eq!(
        message,
        json!({
            "chat_group_id": "g", "msg_id": "m1", "at": "2026-01-01T00:00:00Z", "author": "local", "role": "user",
            "content": "Hi.", "metadata": {}, "embedded": false,
        })
    );
    ask(
        "append_message",
        json!({"chat_group_id": "g", "msg_id": "m2", "content": "Ho.", "role": "assistant"}),
    );
    let newest = ask(
        "list_messages",
        json!({"chat_group_id": "g", "direction": "desc", "limit": 1}),
    );
    assert_eq!(newest["messages"][0]["msg_id"], "m2");
    let rest = json!({"chat_group_id": "g", "direction": "desc", "limit": 1, "cursor": newest["next_cursor"]});
    assert_eq!(ask("list_messages", rest)["messages"], json!([message]));
}
