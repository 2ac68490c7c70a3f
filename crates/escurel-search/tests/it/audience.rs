//! What somebody cannot see has no influence on what they get.

use std::collections::BTreeSet;
use std::sync::Arc;

use escurel_search::{AdmitAll, Audience, Candidates, Doc, Hit, Query, TextIndex};
use proptest::prelude::*;

use crate::page;

struct Who(BTreeSet<u32>);

impl Candidates for Who {
    fn admits(&self, page: u32, _: u64) -> bool {
        self.0.contains(&page)
    }
}

impl Audience for Who {
    fn hears(&self, page: u32, seq: u64) -> bool {
        self.admits(page, seq)
    }

    fn id(&self) -> usize {
        self as *const Who as usize
    }
}

fn ask(index: &TextIndex, text: &str, who: Option<&Arc<Who>>) -> Vec<Hit> {
    let all: &dyn Candidates = &AdmitAll;
    let query = Query {
        texts: &[text.to_string()],
        k: 50,
        by_page: false,
        candidates: who.map_or(all, |who| who.as_ref()),
        audience: who.map(|who| who.clone() as Arc<dyn Audience>),
        only_page: None,
        vectors: None,
        reranker: None,
    };
    index.snapshot().search(&query).expect("an answer").hits
}

const WORDS: [&str; 8] = [
    "pump", "pomp", "harbour", "harbours", "tide", "tides", "secret", "潮汐",
];

fn docs() -> impl Strategy<Value = Vec<Doc>> {
    let unit = prop::collection::vec(0..8usize, 1..10);
    prop::collection::vec(unit, 1..20).prop_map(|units| {
        let text = |words: Vec<usize>| {
            words
                .iter()
                .map(|w| WORDS[*w])
                .collect::<Vec<_>>()
                .join(" ")
        };
        let doc = |(n, words)| page(n as u32, 1, WORDS[n % 8], &[&text(words)]);
        units.into_iter().enumerate().map(doc).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// An index of everything answers somebody as one of their pages alone would.
    #[test]
    fn hidden_pages_do_not_exist(
        docs in docs(),
        visible in prop::collection::btree_set(0..20u32, 0..12),
        words in prop::collection::vec(0..8usize, 1..4),
        end in "(a| |e)",
        committed in 0..20usize,
        again in prop::collection::vec(0..20usize, 0..3),
    ) {
        let words: Vec<&str> = words.iter().map(|w| WORDS[*w]).collect();
        let query = format!("{}{end}", words.join(" "));
        let index = TextIndex::in_memory();
        let (files, memory) = docs.split_at(committed.min(docs.len()));
        index.add_bulk(files.to_vec()).expect("bulk");
        index.commit(1).expect("commit");
        index.add(memory.to_vec());
        for doc in again.iter().filter_map(|n| docs.get(*n)) {
            index.add(vec![doc.clone()]);
        }
        let alone = TextIndex::in_memory();
        alone.add(docs.iter().filter(|doc| visible.contains(&doc.page)).cloned().collect());
        let who = Arc::new(Who(visible));
        let expect = ask(&alone, &query, None);
        for _ in 0..2 {
            prop_assert_eq!(&ask(&index, &query, Some(&who)), &expect);
        }
    }
}

#[test]
fn a_word_that_only_others_have_is_unknown() {
    let index = TextIndex::in_memory();
    index.add(vec![
        page(1, 1, "", &["the harbour pilot"]),
        page(2, 1, "", &["the harbout code"]),
    ]);
    let who = Arc::new(Who([1].into()));
    let hits = ask(&index, "harbout ", Some(&who));
    assert_eq!(hits.iter().map(|hit| hit.page).collect::<Vec<_>>(), [1]);
    assert!(hits[0].why.approximate);
}
