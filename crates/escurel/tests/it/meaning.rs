//! Pages by meaning through the server, while pages, the model and the process
//! change. The provider answers one dimension for each thing that a text is
//! about, under any word for it.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use escurel_test_http::{Reply, Request, TestServer};
use serde_json::{Value, json};

use crate::support::{PATIENCE, Place, Server, call};

/// Words that mean the same.
const THINGS: &[&[&str]] = &[
    &["ship", "vessel"],
    &["bread", "loaf"],
    &["court", "tribunal"],
    &["rain", "drizzle"],
];

fn embedding(text: &str, dimensions: usize) -> Vec<f32> {
    let text = text.to_lowercase();
    let mut vector = vec![0.01; dimensions];
    for (n, things) in THINGS.iter().enumerate() {
        let mut words = text.split(|c: char| !c.is_alphanumeric());
        let said = words.any(|word| things.contains(&word));
        vector[n] += f32::from(u8::from(said));
    }
    vector
}

fn answer(request: &Request) -> Reply {
    let asked = request.json();
    let dimensions = if asked["model"] == "two" { 12 } else { 8 };
    let texts = asked["input"].as_array().cloned().unwrap_or_default();
    let row = |(index, text): (usize, &Value)| {
        let vector = embedding(text.as_str().unwrap_or_default(), dimensions);
        json!({"object": "embedding", "index": index, "embedding": vector})
    };
    let rows: Vec<Value> = texts.iter().enumerate().map(row).collect();
    Reply::json(&json!({"object": "list", "data": rows, "model": "m", "usage": {}}))
}

/// How often each text was sent to the provider.
fn sent(provider: &TestServer) -> HashMap<String, usize> {
    let mut sent = HashMap::new();
    for request in provider.requests() {
        let texts = request.json()["input"].as_array().cloned();
        for text in texts.unwrap_or_default() {
            let text = text.as_str().unwrap_or_default().to_owned();
            *sent.entry(text).or_default() += 1;
        }
    }
    sent
}

fn serve(place: &Place, provider: &TestServer, model: &str, dimensions: &str) -> Server {
    let url = provider.url("/v1");
    let server = Server::start(
        place,
        &[
            place.vault(),
            "--embedding-provider",
            "openai",
            "--embedding-url",
            &url,
            "--embedding-model",
            model,
            "--embedding-dimensions",
            dimensions,
        ],
    );
    server.wait_ready();
    server
}

fn search(server: &Server, q: &str) -> Value {
    let answer = call(&server.address, "search", json!({"q": q, "k": 5}));
    answer["structuredContent"].clone()
}

fn vector_state(answer: &Value) -> Value {
    let lanes = answer["lanes"].as_array().unwrap();
    let lane = lanes.iter().find(|lane| lane["lane"] == "vector").unwrap();
    lane["state"].clone()
}

/// Pages of an answer that are about it, by their words or by their meaning.
fn found(server: &Server, q: &str) -> Vec<String> {
    let answer = search(server, q);
    let hits = answer["hits"].as_array().unwrap().iter();
    hits.filter(|hit| {
        let words = hit["snippet"].to_string().to_lowercase().contains(q);
        words || hit["similarity"].as_f64().unwrap_or(0.0) > 0.8
    })
    .map(|hit| hit["page_id"].as_str().unwrap().to_owned())
    .collect()
}

/// Until everything can be found by meaning; every hit opens.
fn settled(server: &Server) {
    let end = Instant::now() + PATIENCE;
    while vector_state(&search(server, "anything at all")) != "fresh" {
        assert!(Instant::now() < end, "vectors never became fresh");
        std::thread::sleep(Duration::from_millis(20));
    }
    for hit in search(server, "vessel")["hits"].as_array().unwrap() {
        let page = call(
            &server.address,
            "expand",
            json!({"page_id": hit["page_id"]}),
        );
        let opened = &page["structuredContent"]["page"]["page_id"];
        assert_eq!(*opened, hit["page_id"]);
    }
}

fn eventually(server: &Server, q: &str, pages: &[&str]) {
    let end = Instant::now() + PATIENCE;
    while found(server, q) != pages {
        assert!(Instant::now() < end, "{q}: {:?}", found(server, q));
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn every_lane_follows_the_disk_and_the_model() {
    let place = Place::new();
    let provider = TestServer::start(answer);
    let page = place.vault.join("voyage.md");
    let ship = "# Voyage\n\nThe ship leaves on Monday.\n";
    std::fs::write(&page, ship).unwrap();
    let mut server = serve(&place, &provider, "one", "8");
    settled(&server);
    assert_eq!(found(&server, "ship"), ["voyage.md"], "by word");
    assert_eq!(found(&server, "vessel"), ["voyage.md"], "by meaning");

    std::fs::write(&page, "# Voyage\n\nThe bread is for Monday.\n").unwrap();
    eventually(&server, "bread", &["voyage.md"]);
    eventually(&server, "loaf", &["voyage.md"]);
    for gone in ["ship", "vessel"] {
        assert!(found(&server, gone).is_empty(), "{gone}");
    }

    std::fs::remove_file(&page).unwrap();
    for gone in ["bread", "loaf"] {
        eventually(&server, gone, &[]);
    }
    let before = sent(&provider);
    std::fs::write(&page, ship).unwrap();
    eventually(&server, "vessel", &["voyage.md"]);
    settled(&server);
    let after = sent(&provider);
    let again = before
        .iter()
        .find(|(text, n)| after[*text] > **n && text.contains("Voyage"));
    assert_eq!(again, None, "the same bytes are not embedded again");

    server.signal("TERM");
    assert_eq!(server.exit_code(), Some(0));
    let before = sent(&provider);
    let server = serve(&place, &provider, "two", "12");
    settled(&server);
    assert_eq!(
        found(&server, "vessel"),
        ["voyage.md"],
        "by the other model"
    );
    let after = sent(&provider);
    let text = after.keys().find(|text| text.contains("leaves on Monday"));
    let text = text.unwrap();
    assert_eq!(after[text], before[text] + 1, "embedded by the other model");
}

#[test]
fn a_kill_while_embedding_costs_no_more_than_what_was_on_its_way() {
    const PAGES: usize = 400;
    let place = Place::new();
    for n in 0..PAGES {
        let text = format!("# Log {n}\n\nEntry number {n} tells of a quiet day.\n");
        std::fs::write(place.vault.join(format!("log-{n}.md")), text).unwrap();
    }
    std::fs::write(
        place.vault.join("storm.md"),
        "# Storm\n\nNothing but drizzle.\n",
    )
    .unwrap();
    let provider = TestServer::start(|request| answer(request).after(Duration::from_millis(60)));
    let mut server = serve(&place, &provider, "one", "8");
    let end = Instant::now() + PATIENCE;
    while sent(&provider).len() < PAGES / 4 {
        assert!(Instant::now() < end, "nothing is embedded");
        std::thread::sleep(Duration::from_millis(5));
    }
    let lagging = search(&server, "drizzle");
    assert_eq!(vector_state(&lagging), "lagging", "{lagging}");
    assert_eq!(lagging["hits"][0]["page_id"], "storm.md");
    server.signal("KILL");
    server.exit_code();
    let before = sent(&provider);

    let server = serve(&place, &provider, "one", "8");
    settled(&server);
    assert_eq!(found(&server, "rain"), ["storm.md"], "by meaning");
    let after = sent(&provider);
    let twice = after
        .iter()
        .filter(|(text, n)| **n > 1 && text.contains("Log"));
    let twice = twice.count();
    assert!(
        twice * 2 < before.len(),
        "{twice} of {} texts were embedded again",
        before.len()
    );
    let logs = after.keys().filter(|text| text.contains("quiet day"));
    assert!(logs.count() >= PAGES);
}
