use super::{Kind, tokens_of};

/// The terms of a text, one string, at their positions.
fn terms(text: &str) -> String {
    let tokens = tokens_of(text);
    let words: Vec<String> = tokens
        .iter()
        .map(|(token, term)| format!("{}:{term}", token.position))
        .collect();
    words.join(" ")
}

fn check(text: &str, expect: &str) {
    assert_eq!(terms(text), expect, "{text:?}");
}

/// Every term of the query (but single characters of runs) occurs in the text.
fn check_found(text: &str, query: &str) {
    let text_tokens = tokens_of(text);
    let have: Vec<&str> = text_tokens.iter().map(|(_, term)| term).collect();
    let query_tokens = tokens_of(query);
    assert!(query_tokens.len() > 0, "{query:?} has no terms");
    for (token, term) in query_tokens
        .iter()
        .filter(|(token, _)| token.kind != Kind::Single)
    {
        assert!(
            have.contains(&term),
            "{query:?}: {term:?} ({:?}) not in {have:?}",
            token.kind
        );
    }
}

#[test]
fn plain_words() {
    check("Harbour pumps, running!", "0:harbour 1:pump 2:run");
    check("it's Anna’s l'été don't", "0:it 1:anna 2:l 3:ete 4:don");
    check("", "");
    check("  -- ( * ^ ", "");
}

#[test]
fn identifiers_whole_and_by_parts() {
    check("foo_bar", "0:foo 0:foo_bar 1:bar");
    check("2.4.11", "0:2 0:2.4.11 1:4 2:11");
    check("a/b|c", "0:a 0:a/b 1:b 2:c");
    check("C++ and C#", "0:c 0:c++ 1:and 2:c 2:c#");
    check("tides.toml:12", "0:tide 0:tides.toml:12 1:toml 2:12");
    check(
        "customer::acme-corp",
        "0:custom 0:customer::acme-corp 1:acm 2:corp",
    );
    check(
        "well-known covid-19",
        "0:well 1:known 2:covid 2:covid-19 3:19",
    );
    check("a@example.test", "0:a 0:a@example.test 1:exampl 2:test");
}

#[test]
fn punctuation_of_queries_is_no_syntax() {
    check_found("see example.test setup", "example.test setup");
    check_found("version 2.4.11 is out", "\"2.4.11\"");
    check_found("written in C++", "C++");
    check_found("either a/b|c", "a/b|c");
    check_found("the title: here", "title:");
    check_found("foo", "foo\"");
    check_found("2 apples", "^2");
    check_found("it's fine", "it's");
    check_found("error in tides.toml:12, again", "tides.toml:12");
}

#[test]
fn scripts_without_spaces() {
    check("潮汐", "0:潮 0:潮汐 1:汐");
    check("猫", "0:猫");
    check_found("本周港口潮汐观测记录", "潮汐");
    check_found("本周港口潮汐观测记录", "港口潮汐");
    check_found("東京タワーの高さ", "タワー");
    check_found("ﾀﾜｰ", "タワー");
    check_found("ガス", "ｶﾞｽ");
    check_found("부산항의 조석", "부산항");
    check_found("부산항의 조석", "\u{1107}\u{116e}\u{1109}\u{1161}\u{11ab}");
    check_found("ท่าเรือกรุงเทพ", "เรือ");
    check_found("ທ່າເຮືອ", "ເຮືອ");
    check_found("កំពង់ផែ", "ផែ");
    check_found("2024年の記録", "2024");
    check_found("AI模型 v2", "模型");
}

#[test]
fn folding() {
    check_found("naïve café", "naive cafe");
    check_found("naive cafes", "NAÏVE CAFÉS");
    check_found("Hauptstraße", "HAUPTSTRASSE");
    check_found("STRASSE", "straße");
    check_found("مُحَمَّد في الميناء", "محمد");
    check_found("محمد", "مُحَمَّد");
    check_found("أحمد إلى", "احمد الي");
    check_found("שָׁלוֹם", "שלום");
    check_found("İstanbul'da", "istanbul");
    check_found("ISTANBUL", "İstanbul");
    check_found("ＡＢＣ１２", "abc12");
    check_found("Ελληνικός", "ΕΛΛΗΝΙΚΟΣ");
    check_found("Ёлка", "елка");
    check_found("smørrebrød", "smorrebrod");
    check_found("Łódź", "lodz");
    check_found("e\u{301}te\u{301}", "été");
    check_found("ﬁnance", "finance");
    check_found("٢٠٢٤", "2024");
    check_found("soft\u{ad}ware", "software");
    check_found("Việt Nam", "viet nam");
}

#[test]
fn marks_that_are_letters_stay() {
    check_found("समुद्री ज्वार तालिका", "ज्वार");
    assert_ne!(terms("की"), terms("कु"));
    assert_ne!(terms("が"), terms("か"));
    check_found("தமிழ் மொழி", "மொழி");
    check_found("বাংলা ভাষা", "ভাষা");
}

#[test]
fn emoji_are_words() {
    check_found("👩‍🚀 log", "👩‍🚀 log");
    check("🛶x❤️", "0:🛶 1:x 2:❤");
}

#[test]
fn ranges_cover_whole_characters() {
    for text in ["cafe\u{301} 👩‍🚀 本周潮汐", "ท่าเรือ İx", "a_b++ ß"] {
        for (token, _) in tokens_of(text).iter() {
            assert!(text.get(token.start as usize..token.end as usize).is_some());
        }
    }
    let text = "e\u{301}a";
    let tokens = tokens_of(text);
    assert_eq!(
        tokens.get(0).map(|(t, _)| (t.start, t.end)),
        Some((0, text.len() as u32))
    );
}

#[test]
fn endless_words_end() {
    let tokens = tokens_of(&"x".repeat(100_000));
    assert_eq!(tokens.len(), 1);
    assert!(tokens.iter().all(|(_, term)| term.len() <= super::MAX_TERM));
    assert!(tokens_of(&"a.".repeat(50_000)).len() <= 60_000);
}

proptest::proptest! {
    #[test]
    fn any_text_is_analysed(text in "\\PC{0,60}") {
        let mut last = 0;
        for (token, term) in tokens_of(&text).iter() {
            assert!(text.get(token.start as usize..token.end as usize).is_some());
            assert!(!term.is_empty() && token.position >= last);
            last = token.position;
        }
    }
}
