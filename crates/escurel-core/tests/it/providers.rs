//! The vector lane with a provider over HTTP.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use escurel_core::api::*;
use escurel_core::{Kb, OpenOptions, Vectors};
use escurel_search::{OpenAi, Patience, RemoteSettings};
use escurel_test_http::{Reply, Request, TestServer};
use serde_json::json;

use crate::support::*;

const PAGES: &[(&str, &str)] = &[
    ("a.md", "# A\n\nThe renewal is at risk.\n"),
    ("b.md", "# B\n\nBread and salt.\n"),
];

fn open(vault: &Vault, server: &TestServer, model: &str, dimensions: usize) -> Arc<Kb> {
    let settings = RemoteSettings {
        url: Some(server.url("/v1")),
        model: Some(model.to_owned()),
        dimensions: Some(dimensions),
        api_key: Some("sk-s3cret".to_owned()),
        patience: Patience {
            query: Duration::from_secs(5),
            document: Duration::from_secs(20),
        },
    };
    vault.open_with(OpenOptions {
        vectors: Vectors::By(Arc::new(OpenAi::new(&settings).unwrap())),
        ..vault.options()
    })
}

fn inputs(request: &Request) -> usize {
    request.json()["input"].as_array().map_or(0, Vec::len)
}

/// A vector of this length for each text.
fn answer(request: &Request, dimensions: usize) -> Reply {
    let one = json!({"embedding": vec![1.0; dimensions]});
    Reply::json(&json!({"data": vec![one; inputs(request)]}))
}

fn status(kb: &Kb) -> VectorStatus {
    kb.overview().vectors
}

fn settled(kb: &Kb) {
    eventually("every page has its vectors", || status(kb).state == "fresh");
}

#[test]
fn another_model_or_length_embeds_every_text_anew_and_the_old_one_none() {
    let vault = Vault::new(PAGES);
    let dimensions = Arc::new(AtomicUsize::new(0));
    let length = Arc::clone(&dimensions);
    let server = TestServer::start(move |request| answer(request, length.load(Ordering::SeqCst)));
    let embedded = |model: &str, length: usize| {
        dimensions.store(length, Ordering::SeqCst);
        let before = server.requests().len();
        let kb = open(&vault, &server, model, length);
        settled(&kb);
        let asked = server.requests().split_off(before);
        let texts = asked.iter().map(inputs).sum::<usize>();
        assert_eq!(status(&kb).embedded, texts as u64);
        assert!(search(&kb, "renewal").hits[0].why.similarity.unwrap() > 0.9);
        kb.close();
        texts
    };
    let all = embedded("one", 8);
    assert!(all >= PAGES.len());
    assert_eq!(embedded("one", 12), all, "another length");
    assert_eq!(embedded("two", 12), all, "another model");
    assert_eq!(embedded("one", 8), 0, "as it was");
    assert_eq!(embedded("two", 12), 0, "as it was");
}

#[test]
fn a_provider_that_is_not_there_costs_nothing_but_its_lane() {
    let vault = Vault::new(PAGES);
    let gone = TestServer::start(|_| Reply::status(200));
    let settings = RemoteSettings {
        url: Some(gone.url("/v1")),
        model: Some("one".to_owned()),
        dimensions: Some(8),
        ..RemoteSettings::default()
    };
    drop(gone);
    let kb = vault.open_with(OpenOptions {
        vectors: Vectors::By(Arc::new(OpenAi::new(&settings).unwrap())),
        ..vault.options()
    });
    let found = search(&kb, "renewal");
    assert_eq!(found.hits[0].page.page_id, "a.md");
    let lane = &found.lanes[1];
    let told = lane.detail.as_deref().unwrap();
    assert!(
        lane.state == "off" && told.contains("cannot be reached"),
        "{told}"
    );
    let now = kb.overview();
    assert!(now.ready);
    assert_eq!(now.vectors.state, "off");
    eventually("the pages are counted", || status(&kb).waiting >= 2);
}

#[test]
fn a_provider_that_is_busy_is_asked_again() {
    let vault = Vault::new(PAGES);
    let asked = AtomicUsize::new(0);
    let server = TestServer::start(move |request| match asked.fetch_add(1, Ordering::SeqCst) {
        0 => Reply::status(429).header("retry-after", "0"),
        1 => Reply::status(503),
        _ => answer(request, 8),
    });
    let kb = open(&vault, &server, "one", 8);
    let mut most = 0;
    kb.watch_vectors(&mut |vectors| most = most.max(vectors.waiting));
    assert_eq!((status(&kb).state, status(&kb).waiting), ("fresh", 0));
    assert!(most >= PAGES.len() as u64);
    assert!(search(&kb, "renewal").hits[0].why.similarity.is_some());
}

#[test]
fn closing_does_not_wait_for_a_provider_that_is_silent() {
    let vault = Vault::new(PAGES);
    let server = TestServer::start(|_| Reply::status(200).after(Duration::from_secs(15)));
    let kb = open(&vault, &server, "one", 8);
    eventually("it is asked", || !server.requests().is_empty());
    let begun = std::time::Instant::now();
    kb.close();
    assert!(begun.elapsed() < Duration::from_secs(12));
}

#[test]
fn a_query_that_found_nobody_spares_the_next_ones_the_wait() {
    let vault = Vault::new(PAGES);
    let server = TestServer::start(|request| match request.json()["input"][0].as_str() {
        Some("bread") => Reply::status(503),
        _ => answer(request, 8),
    });
    let kb = open(&vault, &server, "one", 8);
    settled(&kb);
    assert!(search(&kb, "renewal").hits[0].why.similarity.is_some());
    assert_eq!(search(&kb, "bread").lanes[1].state, "off");
    let before = server.requests().len();
    for query in ["bread", "salt"] {
        assert_eq!(search(&kb, query).hits[0].page.page_id, "b.md");
    }
    assert_eq!(
        search(&kb, "renewal").lanes[1].state,
        "fresh",
        "it is known"
    );
    assert_eq!(server.requests().len(), before);
    assert!(status(&kb).reason.unwrap().contains("503"));
}

#[test]
fn a_refusal_is_told_and_not_repeated() {
    let vault = Vault::new(PAGES);
    let server = TestServer::start(|_| {
        let told = json!({"error": {"message": "no such key: sk-s3cret"}});
        Reply::json(&told).with_status(401)
    });
    let kb = open(&vault, &server, "one", 8);
    kb.watch_vectors(&mut |_| {});
    let now = status(&kb);
    let told = now.reason.unwrap();
    assert_eq!((now.state, now.embedded), ("lagging", 0));
    assert!(now.waiting >= PAGES.len() as u64);
    for part in ["openai answered with status 401", "restart"] {
        assert!(told.contains(part), "{told}");
    }
    assert!(!told.contains("s3cret"), "{told}");
    let asked = server.requests().len();
    vault.write("c.md", "# C\n\nMore.\n");
    eventually("words find it", || {
        found(&kb, "more").contains(&"c.md".to_owned())
    });
    let later = server.requests().split_off(asked);
    assert!(
        later.iter().all(|request| inputs(request) == 1),
        "{later:?}"
    );
}
