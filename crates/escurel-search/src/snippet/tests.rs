use unicode_segmentation::UnicodeSegmentation;

use super::*;
use crate::api::UnitBlock;

fn weights(query: &str) -> HashMap<String, f32> {
    let tokens = tokens_of(query);
    tokens
        .iter()
        .map(|(_, term)| (term.to_string(), 1.0))
        .collect()
}

fn unit(text: &str) -> DocUnit {
    // A block per paragraph.
    let mut blocks = vec![UnitBlock {
        anchor: "b0".into(),
        start: 0,
    }];
    for (at, _) in text.match_indices("\n\n") {
        blocks.push(UnitBlock {
            anchor: format!("b{}", blocks.len()),
            start: at as u32 + 2,
        });
    }
    DocUnit {
        headings: String::new(),
        text: text.into(),
        blocks,
    }
}

/// The matched words joined by a bar, and the anchor.
fn check(text: &str, query: &str, words: &str, anchor: &str) -> String {
    let cut = cut(&unit(text), &weights(query));
    let shown: Vec<&str> = cut
        .matches
        .iter()
        .map(|(a, b)| &cut.text[*a as usize..*b as usize])
        .collect();
    assert_eq!(shown.join("|"), words, "{:?}", cut.text);
    assert_eq!(cut.anchor.as_deref(), Some(anchor));
    assert!(cut.text.chars().count() <= MAX_CHARS);
    cut.text
}

#[test]
fn short_texts_are_shown_whole() {
    assert_eq!(
        check("The *pump* runs.", "pumps", "pump", "b0"),
        "The *pump* runs."
    );
    assert_eq!(check("No such word.", "pump", "", "b0"), "No such word.");
    assert_eq!(check("", "pump", "", "b0"), "");
}

#[test]
fn the_densest_part_is_shown() {
    let filler = "nothing here at all ".repeat(30);
    let text = format!("A pump.\n\n{filler}\n\nThe pump at high tide broke.\n\n{filler}");
    let shown = check(&text, "pump high tide", "pump|high|tide", "b2");
    assert!(
        shown.starts_with("The pump at high tide broke."),
        "{shown:?}"
    );
}

#[test]
fn whole_characters_in_any_script() {
    let text = "本周港口潮汐观测记录".repeat(60);
    check(&text[..30], "潮汐", "潮汐", "b0");
    let text = format!("{}👩‍🚀 log{}", "x👩‍🚀".repeat(100), "é".repeat(300));
    let cut = cut(&unit(&text), &weights("log"));
    let whole: Vec<&str> = text.graphemes(true).collect();
    assert!(
        cut.text.graphemes(true).all(|g| whole.contains(&g)),
        "{:?}",
        cut.text
    );
    check("การนำเข้า", "ำเข้", "นำเข้", "b0");
    check("cafe\u{301} noir", "café", "cafe\u{301}", "b0");
}

#[test]
fn repeated_pairs_are_one_range() {
    check("潮汐观测", "潮汐观", "潮汐观", "b0");
    check("foo_bar baz", "foo_bar", "foo_bar", "b0");
}

proptest::proptest! {
    #[test]
    fn any_text_is_cut(text in "[a-c é本潮\u{301}👩\u{200d}🚀\n]{0,600}", query in "[a-c本潮é]{1,3}") {
        let unit = unit(&text);
        let cut = cut(&unit, &weights(&query));
        assert!(cut.text.chars().count() <= MAX_CHARS);
        let mut last = 0;
        for (start, end) in cut.matches {
            assert!(last <= start && start < end);
            assert!(cut.text.get(start as usize..end as usize).is_some());
            last = end;
        }
    }
}
