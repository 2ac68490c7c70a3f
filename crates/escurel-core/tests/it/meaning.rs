//! Pages found by what they mean: beside words, never behind or against them.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, RwLock};

use escurel_access::{Caller, PageFacts, Policy, Verb};
use escurel_core::api::*;
use escurel_core::{Kb, OpenOptions, Vectors};
use escurel_search::{EmbedError, Embedder, Purpose};

use crate::support::*;

const DIMENSIONS: usize = 256;

/// A small model: each word has a direction, words of one group the same one.
#[derive(Default)]
struct Thesaurus {
    name: &'static str,
    embedded: AtomicUsize,
    down: AtomicBool,
}

const GROUPS: &[&[&str]] = &[
    &["car", "automobile", "vehicle"],
    &["flood", "inundation", "overflow"],
    &["pump", "compressor"],
];

impl Thesaurus {
    fn named(name: &'static str) -> Arc<Thesaurus> {
        Arc::new(Thesaurus {
            name,
            ..Thesaurus::default()
        })
    }

    fn vector(text: &str) -> Vec<f32> {
        let mut vector = vec![0.01f32; DIMENSIONS];
        for word in text.to_lowercase().split(|c: char| !c.is_alphanumeric()) {
            let group = GROUPS.iter().find(|group| group.contains(&word));
            let word = group.map_or(word, |group| group[0]);
            let place = word
                .bytes()
                .fold(7usize, |hash, b| hash.wrapping_mul(31) ^ usize::from(b));
            if !word.is_empty() {
                vector[place % DIMENSIONS] += 1.0;
            }
        }
        let norm = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
        vector.iter().map(|x| x / norm).collect()
    }
}

impl Embedder for Thesaurus {
    fn id(&self) -> &str {
        self.name
    }

    fn dimensions(&self) -> usize {
        DIMENSIONS
    }

    fn embed(&self, texts: &[&str], purpose: Purpose) -> Result<Vec<Vec<f32>>, EmbedError> {
        if self.down.load(Ordering::SeqCst) {
            return Err(EmbedError::retry("the model sleeps"));
        }
        if purpose == Purpose::Document {
            self.embedded.fetch_add(texts.len(), Ordering::SeqCst);
        }
        Ok(texts.iter().map(|text| Thesaurus::vector(text)).collect())
    }

    fn trust(&self, query: &str) -> f32 {
        if query.is_ascii() { 1.0 } else { 0.0 }
    }
}

fn open(vault: &Vault, model: &Arc<Thesaurus>) -> Arc<Kb> {
    vault.open_with(OpenOptions {
        vectors: Vectors::By(model.clone()),
        ..vault.options()
    })
}

fn lane(kb: &Kb) -> LaneState {
    search(kb, "anything").lanes.pop().unwrap()
}

fn settled(kb: &Kb) {
    eventually("the vector lane is fresh", || lane(kb).state == "fresh");
}

const PAGES: &[(&str, &str)] = &[
    ("garage.md", "# Garage\n\nWhere the automobile is kept.\n"),
    ("cellar.md", "# Cellar\n\nInundation twice a year.\n"),
    ("kitchen.md", "# Kitchen\n\nBread and salt.\n"),
];

#[test]
fn words_that_are_not_there_find_what_is_meant() {
    let vault = Vault::new(PAGES);
    let model = Thesaurus::named("one");
    let kb = open(&vault, &model);
    settled(&kb);
    assert_eq!(found(&kb, "car")[0], "garage.md");
    assert_eq!(found(&kb, "flood")[0], "cellar.md");
    let hit = search(&kb, "car").hits.remove(0);
    assert!(hit.why.similarity.unwrap() > 0.2, "{hit:?}");
    assert!(
        hit.snippet.contains("automobile") && hit.matches.is_empty(),
        "{hit:?}"
    );
    // A query that the model does not know is looked for by its words alone.
    let answer = search(&kb, "où automobile");
    assert_eq!((answer.lanes[1].state, answer.hits.len()), ("off", 1));
    assert_eq!(answer.hits[0].why.similarity, None);
}

#[test]
fn what_is_edited_deleted_and_brought_back_is_found_as_it_is_now() {
    let vault = Vault::new(PAGES);
    let model = Thesaurus::named("one");
    let kb = open(&vault, &model);
    settled(&kb);
    vault.write("kitchen.md", "# Kitchen\n\nThe overflow of the sink.\n");
    eventually("the new meaning is found", || {
        found(&kb, "flood").contains(&"kitchen.md".to_owned())
    });
    settled(&kb);
    let best = |query: &str| search(&kb, query).hits[0].page.page_id.clone();
    vault.write("garage.md", "# Garage\n\nOld paint.\n");
    eventually("the old meaning is gone", || {
        search(&kb, "car")
            .hits
            .iter()
            .all(|hit| hit.why.similarity.is_none_or(|s| s < 0.3))
    });
    settled(&kb);
    let before = model.embedded.load(Ordering::SeqCst);
    std::fs::remove_file(vault.path("cellar.md")).unwrap();
    eventually("a deleted page is no hit", || {
        !found(&kb, "flood").contains(&"cellar.md".to_owned())
    });
    vault.write("cellar.md", PAGES[1].1);
    eventually("the same bytes are found again", || {
        found(&kb, "flood").contains(&"cellar.md".to_owned())
    });
    settled(&kb);
    assert_eq!(best("inundation"), "cellar.md");
    assert_eq!(
        model.embedded.load(Ordering::SeqCst),
        before,
        "an unchanged text was embedded again"
    );
    for hit in search(&kb, "flood").hits {
        assert!(text_of(&kb, &hit.page.page_id).is_some());
    }
}

#[test]
fn what_was_meant_then_is_found_without_embedding_it_again() {
    let vault = Vault::new(PAGES);
    let model = Thesaurus::named("one");
    let kb = open(&vault, &model);
    settled(&kb);
    let before = now();
    vault.write("garage.md", "# Garage\n\nOld paint.\n");
    eventually("the edit is taken up", || {
        found(&kb, "automobile").is_empty() || {
            let hits = search(&kb, "automobile").hits;
            hits.iter().all(|hit| hit.why.lexical_rank.is_none())
        }
    });
    settled(&kb);
    let embedded = model.embedded.load(Ordering::SeqCst);
    let then = |query: &str| {
        let request = SearchRequest {
            queries: vec![query.to_owned()],
            k: 1,
            as_of: Some(before.clone()),
            ..SearchRequest::default()
        };
        kb.search(&me(), &request).unwrap()
    };
    let answer = then("car");
    assert_eq!(answer.hits[0].page.page_id, "garage.md");
    assert!(
        answer.hits[0].why.similarity.unwrap() > 0.2,
        "{:?}",
        answer.hits
    );
    assert!(answer.hits[0].snippet.contains("automobile"));
    assert_eq!(answer.lanes[1].state, "fresh");
    assert_eq!(model.embedded.load(Ordering::SeqCst), embedded);
}

#[test]
fn no_text_is_embedded_twice_across_starts_and_rebuilds_and_another_model_begins_anew() {
    let vault = Vault::new(PAGES);
    let model = Thesaurus::named("one");
    let embedded = || model.embedded.load(Ordering::SeqCst);
    let kb = open(&vault, &model);
    settled(&kb);
    let (all, answer) = (embedded(), found(&kb, "car"));
    assert!(all >= PAGES.len());
    kb.close();
    drop(kb);
    for what in ["nothing", "vectors.bin", "index"] {
        let gone = vault.index().join("vectors.bin");
        match what {
            "nothing" => {}
            "vectors.bin" => {
                let bytes = std::fs::read(&gone).unwrap();
                std::fs::write(&gone, &bytes[..bytes.len() / 2]).unwrap();
            }
            _ => std::fs::remove_dir_all(vault.index()).unwrap(),
        }
        let kb = open(&vault, &model);
        settled(&kb);
        assert_eq!(found(&kb, "car"), answer, "without {what}");
        assert_eq!(embedded(), all, "without {what}");
        kb.close();
    }
    let other = Thesaurus::named("two");
    let kb = open(&vault, &other);
    settled(&kb);
    assert_eq!(found(&kb, "car"), answer);
    assert_eq!(other.embedded.load(Ordering::SeqCst), all);
}

#[test]
fn without_its_model_the_lane_says_so_and_words_go_on() {
    let vault = Vault::new(PAGES);
    let model = Thesaurus::named("one");
    model.down.store(true, Ordering::SeqCst);
    let kb = open(&vault, &model);
    let answer = search(&kb, "bread");
    assert_eq!(answer.hits[0].page.page_id, "kitchen.md");
    assert_eq!(answer.lanes[1].state, "off");
    assert!(
        answer.lanes[1]
            .detail
            .as_deref()
            .unwrap()
            .contains("sleeps")
    );
    model.down.store(false, Ordering::SeqCst);
    settled(&kb);
    assert_eq!(found(&kb, "car")[0], "garage.md");
    let off = vault_off();
    assert_eq!(search(&off, "bread").lanes[1].state, "off");
}

fn vault_off() -> Arc<Kb> {
    Kb::in_memory(&[("a.md", "bread\n")])
}

#[test]
fn filters_and_operators_rule_this_lane_too() {
    let mut files: Vec<(String, String)> = (0..300)
        .map(|n| {
            (
                format!("big/{n}.md"),
                format!("# Note {n}\n\nA car, number {n}.\n"),
            )
        })
        .collect();
    files.push((
        "tiny/a.md".into(),
        "---\ntags: [rare]\n---\n# A\n\nAn automobile.\n".into(),
    ));
    files.push((
        "tiny/b.md".into(),
        "---\ntags: [rare]\n---\n# B\n\nA vehicle with a trailer.\n".into(),
    ));
    let files: Vec<(&str, &str)> = files
        .iter()
        .map(|(p, t)| (p.as_str(), t.as_str()))
        .collect();
    let vault = Vault::new(&files);
    let kb = open(&vault, &Thesaurus::named("one"));
    settled(&kb);
    let mut rare = found(&kb, "car tag:rare");
    rare.sort();
    assert_eq!(rare, ["tiny/a.md", "tiny/b.md"]);
    assert_eq!(found(&kb, "car tag:rare -trailer"), ["tiny/a.md"]);
    let only = SearchRequest {
        queries: vec!["car".into()],
        k: 10,
        page_id: Some("tiny/b.md".into()),
        ..SearchRequest::default()
    };
    let hits = kb.search(&me(), &only).unwrap().hits;
    assert!(!hits.is_empty() && hits.iter().all(|hit| hit.page.page_id == "tiny/b.md"));
    assert_eq!(found(&kb, "car").len(), 20);
}

/// Hides pages of skill `secret` from guests.
struct Secrets;

impl Policy for Secrets {
    fn reads_everything(&self, caller: &Caller) -> bool {
        caller.is_admin()
    }

    fn may(&self, caller: &Caller, _: Verb, page: &PageFacts<'_>) -> bool {
        caller.is_admin() || page.skill != "secret"
    }
}

#[test]
fn who_may_not_see_a_page_gets_the_same_answer_as_without_it() {
    let shown = [
        ("a.md", "# A\n\nThe car and the flood.\n"),
        ("b.md", "# B\n\nBread.\n"),
    ];
    let hidden = [
        (
            "c.md",
            "---\nskill: secret\nid: c\n---\n# C\n\nautomobile automobile\n",
        ),
        ("d.md", "---\nskill: secret\nid: d\n---\n# D\n\ncar\n"),
    ];
    let all: Vec<_> = shown.iter().chain(&hidden).copied().collect();
    let answers = [&all[..], &shown[..]].map(|files| {
        let vault = Vault::new(files);
        let kb = vault.open_with(OpenOptions {
            vectors: Vectors::By(Thesaurus::named("one")),
            policy: Arc::new(Secrets),
            ..vault.options()
        });
        settled(&kb);
        let stranger = Caller::agent("guest", []);
        let request = SearchRequest {
            queries: vec!["vehicle".into()],
            k: 10,
            ..SearchRequest::default()
        };
        let hits = kb.search(&stranger, &request).unwrap().hits;
        hits.into_iter()
            .map(|hit| (hit.page.page_id, hit.why.similarity, hit.score))
            .collect::<Vec<_>>()
    });
    assert_eq!(answers[0], answers[1]);
    assert!(!answers[0].is_empty());
}

/// Hides from each guest what is listed for him.
#[derive(Default)]
struct Grants {
    hidden: RwLock<Vec<(String, String)>>,
    revision: AtomicU64,
}

impl Grants {
    fn hide(&self, pages: &[(&str, &str)]) {
        let owned = |(guest, path): &(&str, &str)| ((*guest).to_owned(), (*path).to_owned());
        *self.hidden.write().unwrap() = pages.iter().map(owned).collect();
        self.revision.fetch_add(1, Ordering::SeqCst);
    }
}

impl Policy for Grants {
    fn reads_everything(&self, caller: &Caller) -> bool {
        caller.is_admin()
    }

    fn may(&self, caller: &Caller, _: Verb, page: &PageFacts<'_>) -> bool {
        let hidden = self.hidden.read().unwrap();
        let is = |(guest, path): &(String, String)| *guest == caller.subject && path == page.path;
        caller.is_admin() || !hidden.iter().any(is)
    }

    fn revision(&self) -> u64 {
        self.revision.load(Ordering::SeqCst)
    }
}

fn open_granted(vault: &Vault, grants: &Arc<Grants>) -> Arc<Kb> {
    let kb = vault.open_with(OpenOptions {
        vectors: Vectors::By(Thesaurus::named("one")),
        policy: grants.clone(),
        ..vault.options()
    });
    settled(&kb);
    kb
}

/// All that an answer tells of its hits.
fn told(kb: &Kb, guest: &str, query: &str) -> Vec<(String, String, Option<f32>, f32)> {
    let request = SearchRequest {
        queries: vec![query.into()],
        k: 50,
        ..SearchRequest::default()
    };
    let hits = kb.search(&Caller::agent(guest, []), &request).unwrap().hits;
    hits.into_iter()
        .map(|hit| (hit.page.page_id, hit.snippet, hit.why.similarity, hit.score))
        .collect()
}

#[test]
fn a_revoked_grant_counts_from_the_next_answer_on() {
    let vault = Vault::new(PAGES);
    let grants = Arc::new(Grants::default());
    let kb = open_granted(&vault, &grants);
    let without = Vault::new(&PAGES[1..]);
    let without = open_granted(&without, &Arc::default());
    for query in ["automobile", "car", "kept twice bread"] {
        let before = told(&kb, "ana", query);
        assert!(before.iter().any(|hit| hit.0 == "garage.md"), "{before:?}");
        grants.hide(&[("ana", "garage.md")]);
        assert_eq!(told(&kb, "ana", query), told(&without, "ana", query));
        assert_eq!(told(&kb, "ben", query), before);
        grants.hide(&[]);
        assert_eq!(told(&kb, "ana", query), before);
    }
}

/// Two callers at once, each as if there were nothing but what he sees, to the bit.
#[test]
fn callers_never_count_in_each_others_scores() {
    const WORDS: &[&str] = &[
        "car",
        "automobile",
        "vehicle",
        "flood",
        "overflow",
        "pump",
        "bread",
        "salt",
        "garage",
    ];
    let mut state = 11u64;
    let mut draw = move |below: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) as usize % below
    };
    for round in 0..6 {
        let files: Vec<(String, String)> = (0..12)
            .map(|n| {
                let words: Vec<_> = (0..1 + draw(9)).map(|_| WORDS[draw(WORDS.len())]).collect();
                (
                    format!("p{n}.md"),
                    format!("# P{n}\n\n{}\n", words.join(" ")),
                )
            })
            .collect();
        let files: Vec<_> = files
            .iter()
            .map(|(p, t)| (p.as_str(), t.as_str()))
            .collect();
        let hidden: Vec<(&str, &str)> = ["ana", "ben"]
            .into_iter()
            .flat_map(|guest| files.iter().map(move |(path, _)| (guest, *path)))
            .filter(|_| draw(2) == 0)
            .collect();
        let grants = Arc::new(Grants::default());
        grants.hide(&hidden);
        let (vault, query) = (Vault::new(&files), WORDS[draw(WORDS.len())]);
        let kb = open_granted(&vault, &grants);
        for guest in ["ana", "ben"] {
            let seen: Vec<_> = files
                .iter()
                .copied()
                .filter(|(path, _)| !hidden.contains(&(guest, path)))
                .collect();
            let alone = Vault::new(&seen);
            let alone = open_granted(&alone, &Arc::default());
            for query in [query, "car flood", "bread -salt"] {
                let (told, expected) = (told(&kb, guest, query), told(&alone, guest, query));
                assert_eq!(told, expected, "round {round}, {guest}: {query}");
            }
        }
    }
}
