//! Search in what stood at an earlier instant.

use std::sync::Arc;

use escurel_access::{Caller, PageFacts, Policy, Verb};
use escurel_core::api::*;
use escurel_core::{Code, Kb, OpenOptions};

use crate::support::*;

fn at(kb: &Kb, caller: &Caller, query: &str, time: &str) -> SearchAnswer {
    let request = SearchRequest {
        queries: vec![query.to_owned()],
        k: 10,
        as_of: Some(time.to_owned()),
        ..SearchRequest::default()
    };
    kb.search(caller, &request).unwrap()
}

fn paths(answer: &SearchAnswer) -> Vec<&str> {
    let hits = answer.hits.iter();
    hits.map(|hit| hit.page.page_id.as_str()).collect()
}

#[test]
fn what_stood_then_is_found_and_nothing_else() {
    let vault = Vault::new(&[
        ("kept.md", "the kestrel nests in the tower\n"),
        ("edited.md", "---\nstatus: open\n---\nthe kestrel hunts\n"),
        ("deleted.md", "a kestrel egg\n"),
        ("moved.md", "kestrel feathers, many of them\n"),
    ]);
    let kb = vault.open();
    let before = now();
    vault.write("edited.md", "---\nstatus: done\n---\nthe heron hunts\n");
    vault.write("new.md", "a kestrel and a heron\n");
    std::fs::remove_file(vault.path("deleted.md")).unwrap();
    std::fs::rename(vault.path("moved.md"), vault.path("elsewhere.md")).unwrap();
    eventually("the edits are taken up", || {
        let mut found = found(&kb, "kestrel");
        found.sort_unstable();
        found == ["elsewhere.md", "kept.md", "new.md"]
    });
    let after = now();
    for _ in 0..2 {
        let then = at(&kb, &me(), "kestrel", &before);
        let mut found = paths(&then);
        found.sort_unstable();
        assert_eq!(found, ["deleted.md", "edited.md", "kept.md", "moved.md"]);
        assert!(paths(&at(&kb, &me(), "heron", &before)).is_empty());
        assert_eq!(paths(&at(&kb, &me(), "kestrel", &after)).len(), 3);
        assert!(paths(&at(&kb, &me(), "kestrel", "1999-01-01")).is_empty());
        assert_eq!(found_now(&kb).len(), 3);
    }
    let edited = at(&kb, &me(), "hunts", &before).hits.remove(0);
    assert_eq!(edited.page.version, 1);
    assert!(edited.snippet.contains("kestrel"), "{edited:?}");
    // Filters speak of then, too.
    let filtered = |time: &str, status: &str| {
        let request = SearchRequest {
            queries: vec!["hunts".to_owned()],
            k: 1,
            as_of: Some(time.to_owned()),
            filter: Some([("status".to_owned(), status.into())].into_iter().collect()),
            ..SearchRequest::default()
        };
        kb.search(&me(), &request).unwrap().hits.len()
    };
    assert_eq!(filtered(&before, "open"), 1);
    assert_eq!(filtered(&before, "done"), 0);
    assert_eq!(filtered(&after, "done"), 1);
    let request = SearchRequest {
        queries: vec!["x".to_owned()],
        k: 1,
        as_of: Some("yesterday".to_owned()),
        ..SearchRequest::default()
    };
    assert_eq!(
        kb.search(&me(), &request).unwrap_err().code,
        Code::TimeInvalid
    );
}

fn found_now(kb: &Kb) -> Vec<String> {
    found(kb, "kestrel")
}

struct Secrets;

impl Policy for Secrets {
    fn reads_everything(&self, caller: &Caller) -> bool {
        caller.is_admin()
    }

    fn may(&self, caller: &Caller, _: Verb, page: &PageFacts<'_>) -> bool {
        caller.is_admin() || (page.frontmatter)().get("secret").is_none()
    }
}

/// Rights are those of today where there is a today, and hidden texts have no say in scores.
#[test]
fn who_may_look_back_is_decided_as_it_stands() {
    let vault = Vault::new(&[
        ("a.md", "kestrel kestrel\n"),
        ("b.md", "---\nsecret: yes\n---\nkestrel falcon\n"),
        ("c.md", "---\nsecret: yes\n---\nkestrel\n"),
        ("d.md", "the falcon and the kestrel\n"),
    ]);
    let kb = vault.open_with(OpenOptions {
        policy: Arc::new(Secrets),
        ..vault.options()
    });
    let agent = Caller::agent("ana", []);
    let before = now();
    vault.write("a.md", "---\nsecret: yes\n---\nkestrel kestrel\n");
    vault.write("b.md", "kestrel falcon\n");
    std::fs::remove_file(vault.path("c.md")).unwrap();
    eventually("the edits are taken up", || found_now(&kb).len() == 3);
    assert_eq!(paths(&at(&kb, &agent, "kestrel", &before)).len(), 2);
    let seen = at(&kb, &agent, "kestrel", &before);
    let mut found = paths(&seen);
    found.sort_unstable();
    assert_eq!(found, ["b.md", "d.md"]);
    assert_eq!(paths(&at(&kb, &me(), "kestrel", &before)).len(), 4);

    let alone = Vault::new(&[
        ("b.md", "---\nsecret: yes\n---\nkestrel falcon\n"),
        ("d.md", "the falcon and the kestrel\n"),
    ]);
    let alone = alone.open();
    for query in ["kestrel", "falcon", "falcom ", "the kestr"] {
        let expect = at(&alone, &me(), query, &now());
        let scores = |answer: &SearchAnswer| {
            let hits = answer.hits.iter();
            hits.map(|h| (h.page.page_id.clone(), h.score))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            scores(&at(&kb, &agent, query, &before)),
            scores(&expect),
            "{query}"
        );
    }
}
