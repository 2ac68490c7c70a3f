//! The key that makes a call happen once, on every tool that writes.

use escurel_access::Caller;
use escurel_core::{Code, Kb};
use escurel_tools::{Call, Catalog, DispatchError, Effect, dispatch};
use serde_json::{Value, json};

fn call(kb: &Kb, name: &str, arguments: Value) -> Result<String, DispatchError> {
    let caller = Caller::local();
    let cx = Call {
        kb,
        caller: &caller,
    };
    dispatch(Catalog::standard(), &cx, name, arguments)
}

#[track_caller]
fn refused(answer: Result<String, DispatchError>, code: Code) {
    match answer {
        Err(DispatchError::Refused(refusal)) => {
            let at = refusal.location.as_deref();
            assert_eq!((refusal.code, at), (code, Some("idempotency_key")));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn exactly_the_tools_that_write_take_a_key() {
    let listed = Catalog::standard().list_json(&Caller::local(), false);
    let listed: Vec<Value> = serde_json::from_str(&listed).unwrap();
    for (tool, entry) in listed.iter().zip(Catalog::standard().entries()) {
        let writes = entry.spec.effect != Effect::Read;
        let field = &tool["inputSchema"]["properties"]["idempotency_key"];
        assert_eq!(field.is_object(), writes, "{}", entry.spec.name);
    }
    let kb = Kb::in_memory(&[]);
    let answer = call(&kb, "list_skills", json!({"idempotency_key": "k"}));
    match answer {
        Err(DispatchError::Refused(refusal)) => assert_eq!(refusal.code, Code::UnknownArgument),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_same_call_gets_the_same_bytes_and_writes_once() {
    let kb = Kb::in_memory(&[("a.md", "# A\n\nold\n")]);
    let edit = |new: &str, key: Value| {
        let arguments =
            json!({"page_id": "a.md", "old_text": "old", "content": new, "idempotency_key": key});
        call(&kb, "edit_page", arguments)
    };
    let calls = [
        (
            "update_page",
            json!({"page_id": "b.md", "content": "# B\n"}),
        ),
        ("delete_page", json!({"page_id": "b.md"})),
        ("restore_page", json!({"page_id": "b.md", "version": "v1"})),
        ("move_page", json!({"page_id": "b.md", "to": "c.md"})),
        ("capture_event", json!({"body": "x"})),
        (
            "assign_event",
            json!({"event_id": "e", "instance_page_id": "a.md"}),
        ),
        (
            "append_message",
            json!({"chat_group_id": "g", "content": "x"}),
        ),
    ];
    call(&kb, "capture_event", json!({"event_id": "e"})).unwrap();
    for (n, (tool, arguments)) in calls.iter().enumerate() {
        let mut arguments = arguments.clone();
        arguments["idempotency_key"] = json!(format!("k{n}"));
        let before = kb.phase().journal_seq;
        let first = call(&kb, tool, arguments.clone()).unwrap_or_else(|e| panic!("{tool}: {e}"));
        let after = kb.phase().journal_seq;
        assert!(after >= before + 2, "{tool}: {first}");
        assert_eq!(call(&kb, tool, arguments.clone()).unwrap(), first, "{tool}");
        assert_eq!(kb.phase().journal_seq, after, "{tool} wrote again");
        arguments["idempotency_key"] = json!(format!("other{n}"));
        assert_ne!(call(&kb, tool, arguments).ok(), Some(first), "{tool}");
    }
    // An edit that could not be made twice.
    let first = edit("new", json!("edit")).unwrap();
    assert_eq!(edit("new", json!("edit")).unwrap(), first);
    refused(edit("newer", json!("edit")), Code::IdempotencyConflict);
    refused(edit("new", json!("")), Code::InvalidArgument);
    refused(edit("new", json!("x".repeat(201))), Code::InvalidArgument);
    assert!(edit("new", Value::Null).is_err(), "no key, no memory");
}

#[test]
fn a_look_is_not_remembered() {
    let kb = Kb::in_memory(&[("a.md", "# A\n")]);
    let write = |dry_run: bool| {
        let arguments = json!({"page_id": "a.md", "content": "# B\n", "dry_run": dry_run, "idempotency_key": "k"});
        let answer = call(&kb, "update_page", arguments).unwrap();
        serde_json::from_str::<Value>(&answer).unwrap()
    };
    let seq = kb.phase().journal_seq;
    assert_eq!(write(true)["dry_run"], true);
    assert_eq!(kb.phase().journal_seq, seq);
    assert_eq!(write(false)["new_version"], "v2");
    assert_eq!(write(false)["new_version"], "v2");
}
