//! Filters before ranking, and one order however the documents came in.

use std::collections::BTreeMap;

use escurel_search::{AdmitAll, Candidates, Doc, EmbedError, Hit, Query, Reranker, TextIndex};
use proptest::prelude::*;

use crate::{Live, ask, page};

const WORDS: [&str; 8] = [
    "pump", "tide", "harbour", "log", "the", "潮汐", "valve", "pressure",
];

struct Only(Vec<u32>);

impl Candidates for Only {
    fn admits(&self, page: u32, _seq: u64) -> bool {
        self.0.contains(&page)
    }
}

fn text(words: &[usize]) -> String {
    words
        .iter()
        .map(|word| WORDS[word % WORDS.len()])
        .collect::<Vec<_>>()
        .join(" ")
}

fn corpus() -> impl Strategy<Value = Vec<Doc>> {
    let unit = prop::collection::vec(0..8usize, 0..12);
    let units = prop::collection::vec(unit, 1..4);
    prop::collection::vec(units, 1..14).prop_map(|pages| {
        let doc = |(number, units): (usize, Vec<Vec<usize>>)| {
            let texts: Vec<String> = units.iter().map(|unit| text(unit)).collect();
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            page(
                number as u32,
                1,
                texts[0].split(' ').next().unwrap_or(""),
                &texts,
            )
        };
        pages.into_iter().enumerate().map(doc).collect()
    })
}

fn question() -> impl Strategy<Value = String> {
    prop::collection::vec(0..8usize, 1..5).prop_map(|words| text(&words))
}

fn same(left: &[Hit], right: &[Hit]) {
    let place = |hit: &Hit| (hit.page, hit.snippet.clone());
    let left_places: Vec<_> = left.iter().map(place).collect();
    assert_eq!(left_places, right.iter().map(place).collect::<Vec<_>>());
    for (left, right) in left.iter().zip(right) {
        assert!(
            (left.score - right.score).abs() <= 1e-5 * left.score,
            "{left:?} {right:?}"
        );
    }
}

fn bulk(docs: &[Doc]) -> TextIndex {
    let index = TextIndex::in_memory();
    index.add_bulk(docs.to_vec()).expect("bulk");
    index.commit(1).expect("commit");
    index
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn a_filtered_answer_is_the_filter_of_the_whole(
        docs in corpus(), query in question(), allowed in prop::collection::vec(0..14u32, 0..6), k in 1..8usize,
    ) {
        let index = bulk(&docs);
        let snapshot = index.snapshot();
        let some = Only(allowed);
        let mut whole = ask(&snapshot, &query, 200, &AdmitAll).hits;
        whole.retain(|hit| some.admits(hit.page, 1));
        whole.truncate(k);
        same(&whole, &ask(&snapshot, &query, k, &some).hits);
    }

    #[test]
    fn however_documents_come_in(docs in corpus(), query in question(), cuts in prop::collection::vec(0..3u8, 14)) {
        let rebuilt = ask(&bulk(&docs).snapshot(), &query, 200, &AdmitAll).hits;
        let memory = TextIndex::in_memory();
        memory.add(docs.clone());
        same(&rebuilt, &ask(&memory.snapshot(), &query, 200, &AdmitAll).hits);
        let mixed = TextIndex::in_memory();
        for (number, doc) in docs.iter().enumerate().rev() {
            match cuts[number] {
                0 => mixed.add_bulk(vec![doc.clone()]).expect("bulk"),
                _ => mixed.add(vec![doc.clone()]),
            }
            if cuts[number] < 2 {
                mixed.commit(number as u64 + 1).expect("commit");
            }
        }
        same(&rebuilt, &ask(&mixed.snapshot(), &query, 200, &AdmitAll).hits);
        mixed.commit(100).expect("commit");
        same(&rebuilt, &ask(&mixed.snapshot(), &query, 200, &AdmitAll).hits);
        mixed.settle();
        same(&rebuilt, &ask(&mixed.snapshot(), &query, 200, &AdmitAll).hits);
        prop_assert_eq!(mixed.all_docs().expect("docs"), memory.all_docs().expect("docs"));
    }

    #[test]
    fn old_versions_do_not_come_back(docs in corpus(), query in question(), changed in prop::collection::vec(0..14u32, 1..6)) {
        let index = bulk(&docs);
        let mut live = Live(docs.iter().map(|doc| (doc.page, 1)).collect());
        for page in changed.iter().filter(|page| (**page as usize) < docs.len()) {
            let doc = Doc { seq: 2, units: docs[0].units.clone(), ..docs[*page as usize].clone() };
            index.add(vec![doc]);
            live.0.insert(*page, 2);
        }
        let before = ask(&index.snapshot(), &query, 200, &live).hits;
        live.0.iter().for_each(|(page, seq)| index.forget(*page, *seq));
        index.commit(2).expect("commit");
        let after = ask(&index.snapshot(), &query, 200, &live).hits;
        let sorted = |hits: &[Hit]| {
            let mut places: Vec<_> = hits.iter().map(|hit| (hit.page, hit.snippet.clone())).collect();
            places.sort();
            places
        };
        prop_assert_eq!(sorted(&before), sorted(&after));
        prop_assert_eq!(index.all_docs().expect("docs"), live.0.into_iter().collect::<Vec<_>>());
    }
}

/// One write: a page, its new text or none, and what follows it.
type Step = (u32, Vec<Vec<usize>>, u8);

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let unit = prop::collection::vec(0..8usize, 0..9);
    let units = prop::collection::vec(unit, 0..4);
    prop::collection::vec((0..9u32, units, 0..8u8), 1..40)
}

fn take(index: &TextIndex, live: &mut BTreeMap<u32, Doc>, number: usize, step: &Step) {
    let seq = number as u64 + 1;
    let (at, units, then) = step;
    if units.is_empty() {
        index.forget(*at, seq + 1);
        live.remove(at);
    } else {
        let texts: Vec<String> = units.iter().map(|unit| text(unit)).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let title = WORDS[number % WORDS.len()];
        let doc = Doc {
            fields_text: title.into(),
            ..page(*at, seq, title, &texts)
        };
        index.forget(*at, seq);
        match then {
            0 => index.add_bulk(vec![doc.clone()]).expect("bulk"),
            _ => index.add(vec![doc.clone()]),
        }
        live.insert(*at, doc);
    }
    if *then < 3 {
        index.commit(seq).expect("commit");
    }
    if *then == 1 {
        index.settle();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_history_of_writes_leaves_no_trace_in_scores(steps in steps(), query in question()) {
        let index = TextIndex::in_memory();
        let mut live: BTreeMap<u32, Doc> = BTreeMap::new();
        for (number, step) in steps.iter().enumerate() {
            take(&index, &mut live, number, step);
        }
        let scratch = TextIndex::in_memory();
        scratch.add_bulk(live.values().cloned().collect()).expect("bulk");
        scratch.commit(1).expect("commit");
        let admitted = Live(live.values().map(|doc| (doc.page, doc.seq)).collect());
        let expected = ask(&scratch.snapshot(), &query, 200, &admitted).hits;
        let check = || same(&expected, &ask(&index.snapshot(), &query, 200, &admitted).hits);
        check();
        index.commit(100).expect("commit");
        check();
        index.settle();
        check();
    }
}

/// Enough rewritten pages that what is left out is remembered per term.
#[test]
fn many_rewritten_pages_leave_no_trace_in_scores() {
    let index = TextIndex::in_memory();
    let doc = |n: u32, seq: u64| {
        let word = |n: u64| WORDS[(n % 8) as usize];
        let n64 = u64::from(n) + seq;
        page(
            n,
            seq,
            word(n64),
            &[&format!(
                "{} {} {}",
                word(n64 / 2),
                word(n64 / 5),
                word(seq)
            )],
        )
    };
    index
        .add_bulk((0..3000).map(|n| doc(n, 1)).collect())
        .expect("bulk");
    index.commit(1).expect("commit");
    let mut live = Live((0..3000).map(|n| (n, 1)).collect());
    for (round, seq) in (2..=5u64).enumerate() {
        for n in (0..60).map(|n| n * 7 + round as u32) {
            index.forget(n, seq);
            index.add(vec![doc(n, seq)]);
            live.0.insert(n, seq);
        }
        if seq != 5 {
            index.commit(seq).expect("commit");
        }
        ask(&index.snapshot(), "pump valve tide", 5, &live);
    }
    let scratch = bulk(
        &live
            .0
            .iter()
            .map(|(n, seq)| doc(*n, *seq))
            .collect::<Vec<_>>(),
    );
    for query in ["pump", "valve tide", "pressure harbour log"] {
        let expected = ask(&scratch.snapshot(), query, 200, &live).hits;
        same(&expected, &ask(&index.snapshot(), query, 200, &live).hits);
    }
}

#[test]
fn two_of_twenty_thousand() {
    let index = TextIndex::in_memory();
    let docs = (0..20_000).map(|number| page(number, 1, "pump", &["the pump of a big folder"]));
    index.add_bulk(docs.collect()).expect("bulk");
    index.commit(1).expect("commit");
    let tiny = Only(vec![7, 19_999]);
    for by_page in [false, true] {
        let texts = ["pump".to_string()];
        let query = Query {
            texts: &texts,
            k: 10,
            by_page,
            candidates: &tiny,
            audience: None,
            only_page: None,
            vectors: None,
            reranker: None,
        };
        let hits = index.snapshot().search(&query).expect("answer").hits;
        assert_eq!(
            hits.iter().map(|hit| hit.page).collect::<Vec<_>>(),
            [7, 19_999]
        );
    }
    let hits = ask(&index.snapshot(), "pump", 10, &AdmitAll).hits;
    assert_eq!(
        hits.iter().map(|hit| hit.page).collect::<Vec<_>>(),
        (0..10).collect::<Vec<_>>()
    );
}

#[test]
fn deep_answers_begin_like_short_ones() {
    let index = TextIndex::in_memory();
    let word = |n: u32| WORDS[(n as usize * 7 + n as usize / 3) % 8];
    let docs = (0..2000).map(|n| {
        page(
            n,
            1,
            word(n),
            &[&format!("{} {} {}", word(n / 2), word(n / 5), word(n / 11))],
        )
    });
    index.add_bulk(docs.collect()).expect("bulk");
    index.commit(1).expect("commit");
    let deep = ask(&index.snapshot(), "pump tide valve", 200, &AdmitAll).hits;
    assert_eq!(deep.len(), 200);
    assert!(deep.windows(2).all(|pair| pair[0].score >= pair[1].score));
}

/// Likes long texts.
struct Longest;

impl Reranker for Longest {
    fn judge(&self, _: &str, texts: &[&str]) -> Result<Vec<f32>, EmbedError> {
        if texts.iter().any(|text| text.contains("broken")) {
            return Err(EmbedError::retry("asleep"));
        }
        Ok(texts.iter().map(|text| text.len() as f32).collect())
    }
}

#[test]
fn a_second_opinion_orders_what_was_found() {
    let index = TextIndex::in_memory();
    index.add(vec![
        page(1, 1, "", &["pump"]),
        page(2, 1, "", &["pump and some more words"]),
        page(
            3,
            1,
            "",
            &["no such word, but very long, longer than all of the others"],
        ),
    ]);
    let ask = |text: &str| {
        let query = Query {
            texts: &[text.to_string()],
            k: 1,
            by_page: false,
            candidates: &AdmitAll,
            audience: None,
            only_page: None,
            vectors: None,
            reranker: Some(&Longest),
        };
        let answer = index.snapshot().search(&query).expect("an answer");
        (answer.hits[0].page, answer.notes)
    };
    assert_eq!(ask("pump"), (2, vec![]));
    index.add(vec![page(
        4,
        1,
        "",
        &["broken pump, long enough to be the first of all"],
    )]);
    assert_eq!(
        ask("pump"),
        (1, vec!["the reranker did not answer: asleep".to_string()])
    );
}
