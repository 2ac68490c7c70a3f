//! Operators, frontmatter, scopes and grouping.

use escurel_search::{AdmitAll, Candidates, Doc, Query, SearchError, TextIndex};

use crate::{ask, page, pages};

fn index() -> TextIndex {
    let index = TextIndex::in_memory();
    let tagged = Doc {
        tags: vec!["Big One".into(), "red".into()],
        aliases: vec!["Old Faithful".into()],
        fields_text: "owner Karla status waiting".into(),
        skill: "Customer".into(),
        ..page(
            1,
            1,
            "Pump station",
            &["high tide at the pump", "second part"],
        )
    };
    index.add(vec![
        tagged,
        page(2, 1, "Tide tables", &["the tide is high, says the pump"]),
        page(3, 1, "Other", &["pump pump pump"]),
    ]);
    index
}

#[test]
fn operators() {
    let index = index();
    let check = |query: &str, expect: &[u32]| {
        let mut found = pages(&index, query);
        found.sort_unstable();
        found.dedup();
        assert_eq!(found, expect, "{query:?}");
    };
    for _ in 0..2 {
        check("\"high tide\"", &[1]);
        // Exclusions are of units: the second part of page 1 has no tide.
        check("pump -tide", &[1, 3]);
        check("at -tide pump -\"second part\"", &[3]);
        check("pump -\"high tide\" -part", &[2, 3]);
        check("pump skill:customer", &[1]);
        check("pump SKILL:note", &[2, 3]);
        check("pump skill:note skill:customer", &[1, 2, 3]);
        check("tag:\"big one\"", &[1]);
        check("tag:RED", &[1]);
        check("tag:#red tag:\"Big One\" pump", &[1]);
        check("pump -tag:red", &[2, 3]);
        check("karla", &[1]);
        check("old faithful", &[1]);
        check("\"high tide\" \"old faithful\"", &[1]);
        index.commit(1).expect("commit");
    }
}

#[test]
fn an_exact_pair_and_a_title_rank_first() {
    assert_eq!(pages(&index(), "tide tables"), [2, 1]);
    let filler = "one two three four five six";
    let index = TextIndex::in_memory();
    index.add(vec![
        page(1, 1, "", &[&format!("water {filler} level")]),
        page(2, 1, "", &[&format!("{filler} water level")]),
    ]);
    assert_eq!(pages(&index, "water level"), [2, 1]);
}

#[test]
fn one_page_only() {
    let index = index();
    for _ in 0..2 {
        let texts = ["pump part".to_string()];
        let query = Query {
            texts: &texts,
            k: 5,
            by_page: false,
            candidates: &AdmitAll,
            audience: None,
            only_page: Some(1),
            vectors: None,
            reranker: None,
        };
        let hits = index.snapshot().search(&query).expect("answer").hits;
        assert_eq!(hits.iter().map(|hit| hit.page).collect::<Vec<_>>(), [1, 1]);
        index.commit(1).expect("commit");
    }
}

#[test]
fn pages_are_found_to_the_last() {
    let index = TextIndex::in_memory();
    let many = vec!["pump pump pump"; 3000];
    index
        .add_bulk(vec![page(0, 1, "pump", &many)])
        .expect("bulk");
    let few = (1..=20).map(|n| page(n, 1, "", &["a pump among many other words of a text"]));
    index.add_bulk(few.collect()).expect("bulk");
    index.commit(1).expect("commit");
    let texts = ["pump".to_string()];
    let query = Query {
        texts: &texts,
        k: 10,
        by_page: true,
        candidates: &AdmitAll,
        audience: None,
        only_page: None,
        vectors: None,
        reranker: None,
    };
    let hits = index.snapshot().search(&query).expect("answer").hits;
    let found: Vec<u32> = hits.iter().map(|hit| hit.page).collect();
    assert_eq!(found, (0..10).collect::<Vec<_>>());
}

#[test]
fn several_texts_are_joined() {
    let index = index();
    let texts = [
        "tide tables".to_string(),
        "pump station".to_string(),
        "???".to_string(),
    ];
    for by_page in [false, true] {
        let query = Query {
            texts: &texts,
            k: 10,
            by_page,
            candidates: &AdmitAll,
            audience: None,
            only_page: None,
            vectors: None,
            reranker: None,
        };
        let answer = index.snapshot().search(&query).expect("answer");
        let mut found: Vec<u32> = answer.hits.iter().map(|hit| hit.page).collect();
        assert!(
            answer
                .hits
                .windows(2)
                .all(|pair| pair[0].score >= pair[1].score)
        );
        assert!(!answer.notes.is_empty());
        found.sort_unstable();
        if by_page {
            assert_eq!(found, [1, 2, 3]);
        }
    }
    let texts = vec!["x".to_string(); 9];
    let query = Query {
        texts: &texts,
        k: 1,
        by_page: false,
        candidates: &AdmitAll,
        audience: None,
        only_page: None,
        vectors: None,
        reranker: None,
    };
    assert!(matches!(
        index.snapshot().search(&query),
        Err(SearchError::InvalidQuery(_))
    ));
}

#[test]
fn bounds() {
    let index = index();
    assert!(ask(&index.snapshot(), "pump", 0, &AdmitAll).hits.is_empty());
    assert!(
        !ask(&index.snapshot(), "pump", 1000, &AdmitAll)
            .notes
            .is_empty()
    );
    let long = "pump ".repeat(20_000);
    assert_eq!(ask(&index.snapshot(), &long, 10, &AdmitAll).hits.len(), 4);
    let many: String = (0..500).map(|n| format!("word{n} ")).collect();
    assert!(
        !ask(&index.snapshot(), &many, 10, &AdmitAll)
            .notes
            .is_empty()
    );
    let empty = TextIndex::in_memory();
    assert!(pages(&empty, "pump \"a b\" -c tag:x").is_empty());
}

#[test]
fn a_page_without_units_has_its_title() {
    let index = TextIndex::in_memory();
    index.add(vec![page(7, 1, "Lonely heading", &[])]);
    assert_eq!(pages(&index, "lonely"), [7]);
}

struct Dated;

impl Candidates for Dated {
    fn admits(&self, _: u32, _: u64) -> bool {
        true
    }

    fn day(&self, page: u32) -> Option<i64> {
        (page < 3).then_some(i64::from(page) * 86_400_000_000)
    }
}

#[test]
fn days() {
    let index = index();
    let check = |query: &str, expect: &[u32]| {
        let hits = crate::ask(&index.snapshot(), query, 9, &Dated).hits;
        let mut found: Vec<u32> = hits.iter().map(|hit| hit.page).collect();
        found.sort_unstable();
        found.dedup();
        assert_eq!(found, expect, "{query:?}");
    };
    check("pump after:1970", &[1, 2]);
    check("pump after:1970-01-03", &[2]);
    check("pump before:1970-01-03", &[1]);
    check("pump after:1970-01-02 before:1970-01-02", &[]);
    check("pump after:someday", &[1, 2, 3]);
}
