//! Another program is told of captured events, over real sockets.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use escurel_access::Caller;
use escurel_core::Kb;
use escurel_core::api::NewEvent;
use escurel_server::config::{Secret, Setting};
use escurel_server::webhook::{Sink, Webhook};
use escurel_test_http::{Reply, Request, TestServer};
use escurel_tools::{Call, Catalog, dispatch};
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;

const SECRET: &str = "tell nobody";

fn sink(url: &str, secret: Option<&str>) -> Sink {
    Sink {
        url: url.parse().unwrap(),
        secret: secret.and_then(Secret::parse),
        rest: Duration::from_millis(20),
        within: Duration::from_secs(2),
    }
}

fn capture(kb: &Kb, id: &str) {
    let event = NewEvent {
        event_id: Some(id.into()),
        body: Some("Grüße".into()),
        ..NewEvent::default()
    };
    kb.capture_event(&Caller::agent("ann", []), &event).unwrap();
}

fn deliveries(kb: &Kb) -> Value {
    let caller = Caller::local();
    let cx = Call {
        kb,
        caller: &caller,
    };
    let answer = dispatch(
        Catalog::standard(),
        &cx,
        "admin_webhook_deliveries",
        json!({}),
    );
    serde_json::from_str(&answer.unwrap()).unwrap()
}

fn eventually(what: &str, mut probe: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(10);
    while !probe() {
        assert!(Instant::now() < end, "never happened: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn settled(kb: &Kb, count: usize) -> Vec<Value> {
    let all = || deliveries(kb)["deliveries"].as_array().unwrap().clone();
    let done = |d: &Value| d["status"] != "retrying";
    eventually("all deliveries end", || {
        let all = all();
        all.len() == count && all.iter().all(done)
    });
    all()
}

fn signed(request: &Request) -> bool {
    let mut mac = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).unwrap();
    mac.update(&request.body);
    let hex = request.header("x-escurel-webhook-signature").unwrap();
    let hex = hex.strip_prefix("sha256=").unwrap();
    let bytes: Vec<u8> = (0..hex.len())
        .step_by(2)
        .map(|i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap())
        .collect();
    assert_eq!(hex, hex.to_lowercase());
    mac.verify_slice(&bytes).is_ok()
}

#[test]
fn each_event_is_posted_once_signed_as_it_is_stored() {
    let server = TestServer::start(|_| Reply::status(204));
    let kb = Kb::in_memory(&[]);
    let _webhook = Webhook::start(&kb, sink(&server.url("/hook"), Some(SECRET))).unwrap();
    capture(&kb, "e1");
    capture(&kb, "e1");
    capture(&kb, "e2");
    let log = settled(&kb, 2);
    assert_eq!(log[0]["event_id"], "e2", "newest first");
    assert_eq!(
        (&log[1]["status"], &log[1]["http_status"]),
        (&json!("delivered"), &json!(204))
    );
    let requests = server.requests();
    assert_eq!(requests.len(), 2);
    for (request, id) in requests.iter().zip(["e1", "e2"]) {
        assert_eq!((&*request.method, &*request.path), ("POST", "/hook"));
        assert_eq!(request.header("content-type"), Some("application/json"));
        assert!(signed(request));
        let body = request.json();
        assert_eq!(body["event_id"], id);
        assert_eq!(body["tenant_id"], "default");
        assert_eq!(body["body"], "Grüße");
        assert_eq!(body["status"], "inbox");
        assert_eq!(body["provenance"]["captured_by"], "ann");
    }
}

#[test]
fn a_sink_that_fails_is_tried_again_and_no_redirect_is_followed() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let server = TestServer::start(move |request| match &*request.path {
        "/elsewhere" => Reply::status(200),
        _ => match count.fetch_add(1, Ordering::SeqCst) {
            0 => Reply::status(500),
            1 => Reply::status(307).header("location", "/elsewhere"),
            _ => Reply::status(200),
        },
    });
    let kb = Kb::in_memory(&[]);
    let _webhook = Webhook::start(&kb, sink(&server.url("/hook"), None)).unwrap();
    capture(&kb, "e1");
    let log = settled(&kb, 1);
    assert_eq!(log[0]["status"], "delivered");
    assert_eq!(log[0]["attempts"], 3);
    let requests = server.requests();
    assert!(requests.iter().all(|request| request.path == "/hook"));
    assert!(requests[0].header("x-escurel-webhook-signature").is_none());
    assert!(requests.windows(2).all(|two| two[0].body == two[1].body));
}

#[test]
fn a_dead_sink_costs_no_capture_and_is_given_up() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/?token=hidden", port.local_addr().unwrap());
    drop(port);
    let kb = Kb::in_memory(&[]);
    let _webhook = Webhook::start(&kb, sink(&url, Some(SECRET))).unwrap();
    for n in 0..5 {
        capture(&kb, &format!("e{n}"));
    }
    let log = settled(&kb, 5);
    for delivery in &log {
        assert_eq!(delivery["status"], "failed", "{delivery}");
        assert_eq!(delivery["attempts"], 5);
        assert!(delivery["error"].is_string() && delivery.get("http_status").is_none());
    }
    let told = format!("{log:?}");
    assert!(!told.contains(SECRET) && !told.contains("hidden"), "{told}");
    let waiting = kb.list_inbox(&Caller::local(), 10, None).unwrap();
    assert_eq!(waiting.events.len(), 5);
}

#[test]
fn a_slow_sink_holds_neither_captures_nor_the_stop() {
    let server = TestServer::start(|_| Reply::status(200).after(Duration::from_secs(1)));
    let kb = Kb::in_memory(&[]);
    let slow = Sink {
        within: Duration::from_millis(1_200),
        ..sink(&server.url("/"), None)
    };
    let webhook = Webhook::start(&kb, slow).unwrap();
    let begun = Instant::now();
    for n in 0..50 {
        capture(&kb, &format!("e{n}"));
    }
    assert!(
        begun.elapsed() < Duration::from_millis(900),
        "{:?}",
        begun.elapsed()
    );
    drop(webhook);
    assert!(begun.elapsed() < Duration::from_secs(4));
    capture(&kb, "after");
    assert!(deliveries(&kb)["deliveries"].as_array().unwrap().len() < 5);
}

#[test]
fn without_a_webhook_the_log_says_so_and_is_for_administrators() {
    let kb = Kb::in_memory(&[]);
    capture(&kb, "e1");
    assert_eq!(
        deliveries(&kb),
        json!({"configured": false, "deliveries": []})
    );
    let caller = Caller::agent("ann", []);
    let cx = Call {
        kb: &kb,
        caller: &caller,
    };
    let refused = dispatch(
        Catalog::standard(),
        &cx,
        "admin_webhook_deliveries",
        json!({}),
    );
    assert_eq!(refused.unwrap_err().rpc_code(), Some(-32001));
}
