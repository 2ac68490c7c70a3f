//! Live editing over the WebSocket of the real binary.

use std::net::TcpStream;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use escurel_live::Document;
use serde_json::{Value, json};
use tungstenite::stream::MaybeTlsStream;
use tungstenite::{Message, WebSocket};

use crate::support::{PATIENCE, Place, Server, call};

type Socket = WebSocket<MaybeTlsStream<TcpStream>>;

fn connect(server: &Server) -> Socket {
    let (mut socket, _) = tungstenite::connect(format!("ws://{}/ws", server.address)).unwrap();
    if let MaybeTlsStream::Plain(stream) = socket.get_mut() {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
    }
    socket
}

fn send(socket: &mut Socket, frame: &Value) {
    socket.send(Message::text(frame.to_string())).unwrap();
}

fn next(socket: &mut Socket) -> Value {
    loop {
        match socket.read().unwrap() {
            Message::Text(text) => return serde_json::from_str(&text).unwrap(),
            Message::Close(frame) => {
                return json!({ "type": "(close)", "code": frame.map(|f| u16::from(f.code)) });
            }
            _ => {}
        }
    }
}

fn bytes(value: &Value) -> Vec<u8> {
    STANDARD.decode(value.as_str().unwrap()).unwrap()
}

/// A client on a page: its document, its socket.
struct Editor {
    session: String,
    lineage: Value,
    document: Document,
    socket: Socket,
}

impl Editor {
    fn open(server: &Server, page_id: &str, peer: u64) -> Editor {
        let opened = called(server, "open_session", json!({ "page_id": page_id }));
        let document = Document::load(&bytes(&opened["snapshot"])).unwrap();
        document.write_as(peer).unwrap();
        assert_eq!(opened["ws_url"], "/ws");
        let session = opened["session"].as_str().unwrap().to_owned();
        let mut editor = Editor {
            session,
            lineage: opened["lineage"].clone(),
            document,
            socket: connect(server),
        };
        editor.hello();
        editor
    }

    fn hello(&mut self) {
        let have = STANDARD.encode(self.document.version());
        let hello = json!({"type": "hello", "session": self.session, "lineage": self.lineage, "have": have});
        send(&mut self.socket, &hello);
        let answer = next(&mut self.socket);
        assert_eq!(answer["type"], "hello_ack", "{answer}");
        self.document.import(&bytes(&answer["update"])).unwrap();
    }

    fn types(&mut self, from: &str, to: &str) -> Value {
        let before = self.document.version();
        let text = self.document.text().replacen(from, to, 1);
        self.document.set_text(&text).unwrap();
        let op = STANDARD.encode(self.document.since(&before).unwrap());
        send(
            &mut self.socket,
            &json!({"type": "op", "session": self.session, "op": op}),
        );
        json!(op)
    }

    /// Takes frames up to one of this type, and what peers changed on the way.
    fn until(&mut self, kind: &str) -> Value {
        loop {
            let frame = next(&mut self.socket);
            if frame["type"] == "peer_op" {
                self.document.import(&bytes(&frame["op"])).unwrap();
            }
            if frame["type"] == kind {
                return frame;
            }
            assert_eq!(frame["type"], "peer_op", "{frame}");
        }
    }
}

#[test]
fn two_editors_and_a_kill_between() {
    let place = Place::new();
    let mut server = Server::start(&place, &[place.vault()]);
    server.wait_ready();
    let (mut ann, mut bob) = (
        Editor::open(&server, "sued.md", 1),
        Editor::open(&server, "sued.md", 2),
    );
    ann.types("Quiet", "Not quiet 🛶");
    let ack = ann.until("op_ack");
    assert_eq!(ack["merged_version"], "v2");
    assert_eq!(ack["content"], "# Süd\n\nNot quiet 🛶.\n");
    let heard = bob.until("peer_op");
    assert_eq!(heard["content"], ack["content"]);
    assert_eq!(heard["session"], bob.session);
    send(
        &mut bob.socket,
        &json!({"type": "presence", "session": "forged", "user": "bob"}),
    );
    assert_eq!(bob.until("error")["code"], "unknown_session");
    let seen =
        json!({"type": "presence", "session": bob.session, "user": "bob", "cursor": 3, "evil": 1});
    send(&mut bob.socket, &seen);
    let told = ann.until("presence");
    let expected = json!({"type": "presence", "session": ann.session, "user": "bob", "cursor": 3});
    assert_eq!(told, expected);

    let shown = called(&server, "expand", json!({"page_id": "sued.md"}));
    assert_eq!(shown["page"]["uncommitted"], true);
    server.signal("KILL");
    server.exit_code();
    let server = Server::start(&place, &[place.vault()]);
    server.wait_ready();
    for editor in [&mut ann, &mut bob] {
        editor.socket = connect(&server);
        editor.hello();
    }
    bob.types("Süd", "Süden");
    bob.until("op_ack");
    ann.until("peer_op");
    assert_eq!(ann.document.text(), "# Süden\n\nNot quiet 🛶.\n");
    let (session, commit) = (&ann.session, true);
    let close = json!({"type": "close", "session": session, "commit": commit});
    send(&mut ann.socket, &close);
    let closed = ann.until("closed");
    assert!(
        closed["ok"] == true && closed["final_version"] == "v2",
        "{closed}"
    );
    let file = std::fs::read_to_string(place.vault.join("sued.md")).unwrap();
    assert_eq!(file, ann.document.text());
    std::fs::write(place.vault.join("sued.md"), file.replace("Not", "Hardly")).unwrap();
    let outside = bob.until("peer_op");
    assert_eq!(outside["content"], "# Süden\n\nHardly quiet 🛶.\n");
}

#[test]
fn frames_that_cannot_be_worked_with_are_named() {
    let place = Place::new();
    let server = Server::start(&place, &[place.vault()]);
    server.wait_ready();
    for (frame, code, end) in [
        ("not json", "invalid_frame", 0),
        ("[1]", "invalid_frame", 0),
        (r#"{"type": "op"}"#, "hello_missing", 1007),
        (r#"{"type": "hello"}"#, "invalid_frame", 1007),
        (
            r#"{"type": "hello", "session": "sess_0"}"#,
            "unknown_session",
            1007,
        ),
    ] {
        let mut socket = connect(&server);
        socket.send(Message::text(frame)).unwrap();
        let answer = next(&mut socket);
        assert_eq!(answer["code"], code, "{frame}: {answer}");
        let closed = next(&mut socket);
        assert_eq!(closed["type"], "(close)", "{frame}");
        assert!(end == 0 || closed["code"] == end, "{frame}: {closed}");
    }
    let mut ann = Editor::open(&server, "sued.md", 1);
    send(&mut ann.socket, &json!({"type": "dance"}));
    assert_eq!(ann.until("error")["code"], "unknown_frame");
    let op = json!({"type": "op", "session": ann.session, "op": "bG9ybw=="});
    send(&mut ann.socket, &op);
    assert_eq!(ann.until("error")["code"], "op_invalid");
    assert_eq!(ann.until("(close)")["code"], 1007);
    let mut stranger = connect(&server);
    let hello = json!({"type": "hello", "session": ann.session, "lineage": "another"});
    send(&mut stranger, &hello);
    let told = next(&mut stranger);
    assert_eq!(
        (&told["type"], &told["reason"]),
        (&json!("resync_required"), &json!("lineage"))
    );
}

#[test]
fn a_kept_search_is_sent_again_when_its_answer_changes() {
    let place = Place::new();
    let server = Server::start(&place, &[place.vault()]);
    server.wait_ready();
    let mut socket = connect(&server);
    send(
        &mut socket,
        &json!({"type": "hello", "presence_only": true}),
    );
    send(
        &mut socket,
        &json!({"type": "search_subscribe", "subscription_id": "a", "q": ""}),
    );
    assert_eq!(next(&mut socket)["code"], "invalid_subscription");
    send(
        &mut socket,
        &json!({"type": "search_subscribe", "subscription_id": "a", "q": "zeppelin", "k": 3}),
    );
    let first = next(&mut socket);
    assert_eq!(
        first,
        json!({"type": "search_event", "subscription_id": "a", "hits": []})
    );
    std::fs::write(place.vault.join("new.md"), "# New\n\nA zeppelin.\n").unwrap();
    let second = next(&mut socket);
    assert_eq!(second["hits"][0]["page_id"], "new.md", "{second}");
    send(&mut socket, &json!({"type": "op"}));
    assert_eq!(next(&mut socket)["code"], "unknown_frame");
}

fn called(server: &Server, tool: &str, arguments: Value) -> Value {
    call(&server.address, tool, arguments)["structuredContent"].clone()
}

#[test]
fn events_are_told_as_they_come_and_again_to_who_was_away() {
    let place = Place::new();
    let server = Server::start(&place, &[place.vault()]);
    server.wait_ready();
    let capture = |id: &str| {
        called(
            &server,
            "capture_event",
            json!({"event_id": id, "title": id}),
        )
    };
    let mut socket = connect(&server);
    let hello = json!({"type": "hello", "presence_only": true});
    send(&mut socket, &hello);
    let follow = json!({"type": "event_subscribe", "subscription_id": "in"});
    send(&mut socket, &follow);
    let ack = next(&mut socket);
    assert_eq!(
        ack,
        json!({"type": "event_subscribe_ack", "subscription_id": "in"})
    );
    let stored = capture("a1");
    let told = next(&mut socket);
    assert_eq!(
        told,
        json!({"type": "event", "subscription_id": "in", "event": stored})
    );
    drop(socket);
    capture("a2");
    capture("a3");
    capture("a3");
    called(
        &server,
        "assign_event",
        json!({"event_id": "a2", "instance_page_id": "acme.md"}),
    );
    let mut socket = connect(&server);
    send(&mut socket, &hello);
    let resume =
        json!({"type": "event_subscribe", "subscription_id": "in", "since_event_id": "a1"});
    send(&mut socket, &resume);
    assert_eq!(next(&mut socket)["type"], "event_subscribe_ack");
    let replayed = next(&mut socket);
    assert!(
        replayed["replayed"] == true && replayed["event"]["event_id"] == "a3",
        "{replayed}"
    );
    capture("a4");
    assert_eq!(next(&mut socket)["event"]["event_id"], "a4", "told once");
}
