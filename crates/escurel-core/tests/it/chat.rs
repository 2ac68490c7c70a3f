//! Conversations.

use std::sync::Arc;

use escurel_access::Caller;
use escurel_core::Code;
use escurel_core::Kb;
use escurel_core::api::{Message, MessagesRequest, NewMessage};

use crate::support::*;

fn new(group: &str, id: &str, content: &str) -> NewMessage {
    NewMessage {
        chat_group_id: group.into(),
        msg_id: Some(id.into()),
        content: content.into(),
        ..NewMessage::default()
    }
}

fn append(kb: &Kb, caller: &Caller, message: &NewMessage) -> Message {
    kb.append_message(caller, message).unwrap()
}

fn of(group: &str) -> MessagesRequest {
    MessagesRequest {
        chat_group_id: group.into(),
        limit: 500,
        ..MessagesRequest::default()
    }
}

fn ids(kb: &Kb, request: &MessagesRequest) -> Vec<String> {
    let page = kb.list_messages(&me(), request).unwrap();
    page.messages.into_iter().map(|m| m.msg_id).collect()
}

#[test]
fn a_message_has_its_verified_author_and_is_stored_once() {
    let kb = Kb::in_memory(&[]);
    let ann = Caller::agent("ann", []);
    let given = NewMessage {
        role: Some("assistant".into()),
        at: Some("2026-01-02T03:04:05+01:00".into()),
        metadata: serde_json::json!({"author": "mallory"})
            .as_object()
            .cloned(),
        ..new("g", "m1", "Hello.")
    };
    let message = append(&kb, &ann, &given);
    assert_eq!(
        (&*message.author, &*message.at),
        ("ann", "2026-01-02T02:04:05Z")
    );
    assert_eq!(message.content.as_deref(), Some("Hello."));
    let again = append(&kb, &Caller::agent("bob", []), &new("g", "m1", "Other."));
    assert_eq!(again, message);
    assert_eq!(
        append(&kb, &ann, &new("h", "m1", "Other."))
            .content
            .as_deref(),
        Some("Other.")
    );
    assert_eq!(
        kb.list_messages(&me(), &of("g")).unwrap().messages,
        [message]
    );
    assert_eq!(ids(&kb, &of("nobody")), Vec::<String>::new());
    let unnamed = NewMessage {
        msg_id: None,
        ..new("g", "", "x")
    };
    let unnamed = append(&kb, &ann, &unnamed);
    assert_eq!(
        (unnamed.msg_id.len(), unnamed.role.as_deref()),
        (26, Some("user"))
    );
}

#[test]
fn messages_are_listed_both_ways_in_bounds_and_in_pages() {
    let kb = Kb::in_memory(&[]);
    for n in 0..300 {
        let day = (n * 11) % 28 + 1;
        let message = NewMessage {
            at: Some(format!("2026-02-{day:02}")),
            ..new("g", &format!("m{n:03}"), "x")
        };
        append(&kb, &me(), &message);
        append(&kb, &me(), &new("g2", &format!("m{n:03}"), "other"));
    }
    let mut expected: Vec<(i32, String)> = (0..300)
        .map(|n| ((n * 11) % 28 + 1, format!("m{n:03}")))
        .collect();
    expected.sort();
    let within = |from, to| -> Vec<String> {
        let days = expected.iter().filter(|(day, _)| (from..=to).contains(day));
        days.map(|(_, id)| id.clone()).collect()
    };
    for newest_first in [false, true] {
        let order = |mut ids: Vec<String>| {
            if newest_first {
                ids.reverse();
            }
            ids
        };
        let request = MessagesRequest {
            newest_first,
            ..of("g")
        };
        assert_eq!(ids(&kb, &request), order(within(1, 28)));
        let bounded = MessagesRequest {
            since: Some("2026-02-05".into()),
            until: Some("2026-02-09".into()),
            ..request.clone()
        };
        assert_eq!(ids(&kb, &bounded), order(within(5, 9)));
        let (mut all, mut cursor) = (Vec::new(), None);
        loop {
            let request = MessagesRequest {
                limit: 7,
                cursor,
                ..bounded.clone()
            };
            let page = kb.list_messages(&me(), &request).unwrap();
            all.extend(page.messages.into_iter().map(|m| m.msg_id));
            cursor = page.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(all, order(within(5, 9)));
    }
    let first = MessagesRequest {
        limit: 1,
        ..of("g")
    };
    let cursor = kb.list_messages(&me(), &first).unwrap().next_cursor;
    let foreign = MessagesRequest { cursor, ..of("g2") };
    let refusal = kb.list_messages(&me(), &foreign).unwrap_err();
    assert_eq!(refusal.code, Code::CursorInvalid);
}

#[test]
fn messages_survive_restarts_and_the_loss_of_the_index() {
    let vault = Vault::new(&[("a.md", "# A\n")]);
    let kb = vault.open();
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let kb: &Arc<Kb> = &kb;
            scope.spawn(move || {
                for n in 0..20 {
                    append(
                        kb,
                        &me(),
                        &new("g", &format!("m{n}"), &format!("by {writer}")),
                    );
                }
            });
        }
    });
    let expected = kb.list_messages(&me(), &of("g")).unwrap().messages;
    assert_eq!(expected.len(), 20);
    kb.close();
    drop(kb);
    for lost in ["", "tables.bin", "."] {
        match lost {
            "" => {}
            "." => std::fs::remove_dir_all(vault.index()).unwrap(),
            file => std::fs::remove_file(vault.index().join(file)).unwrap(),
        }
        let kb = vault.open();
        assert_eq!(
            kb.list_messages(&me(), &of("g")).unwrap().messages,
            expected
        );
        verify_clean(&kb);
        kb.close();
    }
}

#[test]
fn what_cannot_be_kept_is_refused_by_name() {
    let kb = Kb::in_memory(&[]);
    let refused = |message: NewMessage, at: &str| {
        let refusal = kb.append_message(&me(), &message).unwrap_err();
        assert_eq!(refusal.location.as_deref(), Some(at), "{refusal}");
    };
    refused(new("", "m", "x"), "chat_group_id");
    refused(new("g", "a\u{7}", "x"), "msg_id");
    refused(new("g", "m", &"x".repeat((1 << 20) + 1)), "content");
    let role = NewMessage {
        role: Some("x".repeat(65)),
        ..new("g", "m", "x")
    };
    refused(role, "role");
    let at = NewMessage {
        at: Some("soon".into()),
        ..new("g", "m", "x")
    };
    refused(at, "at");
}
