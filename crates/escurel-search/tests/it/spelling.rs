//! Words that are like those of the query: they help, and never come first.

use escurel_search::{AdmitAll, TextIndex};
use proptest::prelude::*;

use crate::{ask, page, pages};

fn index(texts: &[&str]) -> TextIndex {
    let index = TextIndex::in_memory();
    let pages = texts.iter().enumerate();
    index.add(
        pages
            .map(|(n, text)| page(n as u32 + 1, 1, "", &[text]))
            .collect(),
    );
    index
}

#[test]
fn a_wrong_letter_finds_the_word() {
    let index = index(&[
        "the renewal of the contract",
        "retrieval of documents",
        "harbour pilots",
        "Владивосток порт",
        "συμβόλαιο ανανέωση",
    ]);
    let check = |query: &str, expect: &[u32]| {
        assert_eq!(pages(&index, query), expect, "{query}");
    };
    check("renewla ", &[1]);
    check("retreival ", &[2]);
    check("harbuor ", &[3]);
    check("harbur ", &[3]);
    check("Владивсток ", &[4]);
    check("ανανεοση ", &[5]);
    check("xyzzyplugh ", &[]);
    check("harb0ur ", &[]);
    check("\"renewla\"", &[]);
    let answer = ask(&index.snapshot(), "harbuor pilots", 5, &AdmitAll);
    assert_eq!(
        answer.notes,
        ["no text has harbuor; similar words were looked for"]
    );
    assert_eq!(answer.hits[0].matches.len(), 2);
}

#[test]
fn a_beginning_finds_the_word() {
    let index = index(&[
        "the renewal of the contract",
        "rent of a boat",
        "foo_bar baz",
    ]);
    assert_eq!(pages(&index, "renew*"), [1]);
    assert_eq!(pages(&index, "contr"), [1]);
    assert_eq!(pages(&index, "the contr"), [1]);
    assert_eq!(pages(&index, "foo_ba"), [3]);
    // Not the last word, and not like one.
    assert!(pages(&index, "contr x").is_empty());
    let mut both = pages(&index, "ren*");
    both.sort_unstable();
    assert_eq!(both, [1, 2]);
}

#[test]
fn what_is_written_comes_first() {
    let long = format!("pomp {}", "water ".repeat(400));
    let index = index(&[
        "pump pump pump",
        &long,
        "pumps and a pump",
        "pumping station",
    ]);
    // A word that is there is none that is misspelt.
    assert_eq!(pages(&index, "pomp "), [2]);
    // What begins like it is asked for, and worth no less.
    assert_eq!(pages(&index, "pump*").len(), 3);
    let hits = ask(&index.snapshot(), "watr station ", 9, &AdmitAll).hits;
    let like: Vec<_> = hits
        .iter()
        .map(|hit| (hit.page, hit.why.approximate))
        .collect();
    assert_eq!(like, [(4, false), (2, true)]);
    // Nothing is lost to the typos of others.
    assert_eq!(pages(&index, "water pomq ")[0], 2);
}

const WORDS: [&str; 8] = [
    "pump", "pomp", "pumpe", "harbour", "harbor", "valve", "valves", "wave",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn never_before_an_exact_match(
        texts in prop::collection::vec(prop::collection::vec(0..8usize, 1..8), 1..30),
        query in prop::collection::vec(0..8usize, 1..3),
        end in "(ll| |s)",
    ) {
        let text = |words: &Vec<usize>| words.iter().map(|w| WORDS[*w]).collect::<Vec<_>>().join(" ");
        let texts: Vec<String> = texts.iter().map(text).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let query = format!("{}{end}", text(&query));
        let hits = ask(&index(&texts).snapshot(), &query, 50, &AdmitAll).hits;
        let first_like = hits.iter().position(|hit| hit.why.approximate).unwrap_or(hits.len());
        prop_assert!(hits[first_like..].iter().all(|hit| hit.why.approximate));
        prop_assert!(hits.windows(2).all(|pair| pair[0].score >= pair[1].score));
        let few = ask(&index(&texts).snapshot(), &query, 3, &AdmitAll).hits;
        let places = |hits: &[escurel_search::Hit]| hits.iter().take(3).map(|h| h.page).collect::<Vec<_>>();
        prop_assert_eq!(places(&hits), places(&few));
    }
}
