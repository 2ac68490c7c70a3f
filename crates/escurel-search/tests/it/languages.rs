//! Words of any script are found, shown whole, and punctuation is no syntax.

use escurel_search::{AdmitAll, TextIndex};

use crate::{ask, page, pages};

/// The text is found by the query, a decoy is not, and what is highlighted are
/// whole words of the snippet.
fn check(text: &str, query: &str) {
    let index = TextIndex::in_memory();
    index.add(vec![
        page(1, 1, "", &[text]),
        page(2, 1, "", &["xylophone"]),
    ]);
    for stage in ["memory", "files"] {
        assert_eq!(pages(&index, query), [1], "{query:?} in {text:?}, {stage}");
        let hit = ask(&index.snapshot(), query, 5, &AdmitAll).hits.remove(0);
        assert!(!hit.matches.is_empty(), "{query:?} in {text:?}");
        for (start, end) in &hit.matches {
            assert!(hit.snippet.get(*start as usize..*end as usize).is_some());
        }
        index.commit(1).expect("commit");
    }
}

#[test]
fn every_script() {
    check("本周港口潮汐观测记录", "潮汐");
    check("本周港口潮汐观测记录", "潮");
    check("naïve café", "naive cafe");
    check("naive cafe", "naïve café");
    check("STRASSE 5", "straße");
    check("Lange Straße", "STRASSE");
    check("قال مُحَمَّدٌ ذلك", "محمد");
    check("قال محمد ذلك", "مُحَمَّد");
    check("ท่าเรือกรุงเทพมหานคร", "กรุงเทพ");
    check("समुद्री ज्वार की तालिका", "ज्वार");
    check("İzmir limanı", "izmir");
    check("IZMIR", "İzmir");
    check("see the 👩‍🚀 log", "👩‍🚀 log");
    check("see the 👩‍🚀 sign", "👩‍🚀");
    check("ＡＢＣ部品", "abc");
    check("부산항 조석 기록", "조석");
    check("Ёлки и морской порт", "порт");
    check("ລາຄານ້ຳມັນ", "ນ້ຳ");
    check("កំពង់ផែព្រះសីហនុ", "ព្រះ");
}

#[test]
fn punctuation() {
    for (text, query) in [
        ("the example.test setup", "example.test setup"),
        ("release 2.4.11 today", "\"2.4.11\""),
        ("written in C++ mostly", "C++"),
        ("path a/b|c here", "a/b|c"),
        ("salt AND pepper", "AND"),
        ("the title: here", "title:"),
        ("foo bar", "foo\""),
        ("2 pumps", "^2"),
        ("so it's done", "it's"),
        ("see tides.toml:12 for more", "tides.toml:12"),
        ("see tides.toml:12 for more", "tides"),
        ("call foo_bar now", "foo_bar"),
        ("call foo_bar now", "bar"),
    ] {
        check(text, query);
    }
}

#[test]
fn a_query_without_words_says_so() {
    let index = TextIndex::in_memory();
    index.add(vec![page(1, 1, "pump", &["pump"])]);
    for query in ["(((", "-", "*", "", " ", "\"\"", "-pump"] {
        let answer = ask(&index.snapshot(), query, 5, &AdmitAll);
        assert!(answer.hits.is_empty(), "{query:?}");
        assert!(!answer.notes.is_empty(), "{query:?}");
    }
}

#[test]
fn the_whole_identifier_ranks_first() {
    let index = TextIndex::in_memory();
    let filler = "and some more words to make it long";
    index.add(vec![
        page(
            1,
            1,
            "",
            &[&format!("4 of 11 and 2 of 4, 2 2 4 4 11 11 {filler}")],
        ),
        page(2, 1, "", &[&format!("release 2.4.11 {filler}")]),
    ]);
    assert_eq!(pages(&index, "2.4.11"), [2, 1]);
}
