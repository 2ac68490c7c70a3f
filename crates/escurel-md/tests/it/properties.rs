//! What holds for every input.

use escurel_md::{
    CODES, Layout, LinkKind, Page, Wikilink, name_key, parse, set_frontmatter_key, slug, units,
};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Pieces that steer random text into the interesting corners.
fn markdownish() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("---\n"),
        Just("---\r\n"),
        Just("\r"),
        Just("\n"),
        Just("\r\n"),
        Just("# "),
        Just("## H\n"),
        Just("[["),
        Just("]]"),
        Just("[[a::b#c@3|d]]"),
        Just("[[x]]"),
        Just("!"),
        Just("\\"),
        Just("|"),
        Just("`"),
        Just("```\n"),
        Just("- "),
        Just("> "),
        Just("    "),
        Just("\t"),
        Just("id: "),
        Just("tags: [a, b]\n"),
        Just("k: |\n  text\n"),
        Just("<!-- "),
        Just(" -->"),
        Just("%%"),
        Just("#tag "),
        Just(" ^id\n"),
        Just("é"),
        Just("👩‍🚀"),
        Just("e\u{301}"),
        Just("\u{feff}"),
        Just("[a](b.md)"),
        Just("[a]: b\n"),
        Just("| a | b |\n|--|--|\n| c | d |\n"),
        Just("a "),
        Just("\""),
        Just("'"),
        Just(": "),
        Just("&x "),
        Just("*x "),
        Just("{"),
        Just("}"),
        Just("["),
        Just("]"),
        Just(", "),
        Just("\u{e000}"),
        Just("owner: [[p]], [[q]]\n"),
        Just("- [[r]]\n"),
        Just("\0"),
    ];
    prop::collection::vec(piece, 0..40).prop_map(|v| v.concat())
}

/// A header whose keys stand on their own lines, with odd endings.
fn header() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        Just("id: a"),
        Just("k: 1 # note"),
        Just("# comment"),
        Just(""),
        Just("tags:\n  - a\n  - b"),
        Just("text: |\n  one\n\n  two"),
        Just("m: {a: 1}"),
        Just("owner: [[p]], [[q]]"),
        Just("q: \"x: y\""),
        Just("k: again"),
        Just("n:"),
        Just("long: one\n  two"),
        Just("tags: [x,\n  y]"),
        Just("é: ü"),
    ];
    let end = prop_oneof![Just("\n"), Just("\r\n")];
    (
        prop::collection::vec((line, end), 0..8),
        any::<bool>(),
        markdownish(),
    )
        .prop_map(|(lines, bom, body)| {
            let head: String = lines.iter().map(|(l, e)| format!("{l}{e}")).collect();
            format!(
                "{}---\n{head}---\n{body}",
                if bom { "\u{feff}" } else { "" }
            )
        })
}

fn line_col(text: &str, offset: usize) -> (u32, u32) {
    let before = text
        .get(..offset)
        .unwrap_or_default()
        .replace("\r\n", "\n")
        .replace('\r', "\n");
    let col = before
        .rsplit('\n')
        .next()
        .unwrap_or_default()
        .chars()
        .count() as u32
        + 1;
    (before.matches('\n').count() as u32 + 1, col)
}

fn check_page(page: &Page) {
    let inside = |span: &std::ops::Range<usize>| page.text.get(span.clone()).is_some();
    assert!(inside(&page.body));
    assert_eq!(page.body_line, line_col(&page.text, page.body.start).0);
    for h in &page.headings {
        assert!(inside(&h.span) && inside(&h.section) && h.section.start == h.span.start);
        assert_eq!(h.line, line_col(&page.text, h.span.start).0);
    }
    let mut end = page.body.start;
    for b in &page.blocks {
        assert!(inside(&b.span) && b.span.start >= end && b.span.end <= page.body.end);
        assert_eq!(b.line, line_col(&page.text, b.span.start).0);
        end = b.span.end;
    }
    for link in &page.links {
        assert_eq!(page.text.get(link.span.clone()), Some(link.raw.as_str()));
        assert_eq!((link.line, link.col), line_col(&page.text, link.span.start));
        // The label of a markdown link may be wrapped, also one that begins with a bracket.
        let markdown = matches!(link.kind, LinkKind::Markdown | LinkKind::Asset);
        assert!(markdown || !link.raw.contains('\n'), "{:?}", link.raw);
    }
    for issue in &page.issues {
        assert!(CODES.iter().any(|c| c.code == issue.code), "{}", issue.code);
    }
    for unit in units(page) {
        assert!(inside(&unit.span) && unit.span.len() <= 2000);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_a_page(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        check_page(&parse("a/b.md", &bytes, Layout::Vault));
    }

    #[test]
    fn any_markdown_is_a_page(text in markdownish()) {
        check_page(&parse("a/b.md", text.as_bytes(), Layout::Tenant));
        check_page(&parse("a/b.md", format!("---\n{text}\n---\n{text}").as_bytes(), Layout::Vault));
    }

    #[test]
    fn setting_a_key_changes_its_lines_only(source in header(), key in prop_oneof![Just("id"), Just("k"), Just("tags"), Just("new")], value in prop_oneof![
        Just(None), Just(Some(json!("v: w"))), Just(Some(json!(["a", "[[b]]"]))), Just(Some(json!(3))), "\\PC{0,20}".prop_map(|s| Some(Value::String(s)))]) {
        let before = parse("a.md", source.as_bytes(), Layout::Vault);
        let result = set_frontmatter_key(source.as_bytes(), key, value.as_ref());
        prop_assume!(result.is_ok());
        let edited = String::from_utf8(result.unwrap_or_default()).unwrap_or_default();
        let after = parse("a.md", edited.as_bytes(), Layout::Vault);
        prop_assert_eq!(before.body_text(), after.body_text());
        let others = |page: &Page| { let mut m = page.frontmatter.clone(); m.shift_remove(key); m };
        prop_assert_eq!(others(&before), others(&after));
        prop_assert_eq!(after.frontmatter.contains_key(key), value.is_some());
        let kept = |text: &str| text.split_inclusive('\n').filter(|l| l.starts_with("m:") || l.starts_with("q:") || l.starts_with('#') || l.starts_with("owner") || l.starts_with("long")).map(str::to_owned).collect::<Vec<_>>();
        prop_assert_eq!(kept(&source), kept(&edited));
    }

    #[test]
    fn any_bytes_survive_an_edit(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(edited) = set_frontmatter_key(&bytes, "k", Some(&json!("v"))) {
            let has_header = bytes.starts_with(b"---") || bytes.starts_with(b"\xef\xbb\xbf---");
            let kept = edited.ends_with(&bytes) || edited.ends_with(bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes));
            prop_assert!(kept || has_header);
        }
    }

    #[test]
    fn a_rendered_link_parses_to_itself(text in prop_oneof!["\\PC{0,30}", "[a@#|:v0-9\\\\ ]{0,16}"]) {
        if let Ok(link) = Wikilink::parse(&text) {
            prop_assert_eq!(Wikilink::parse(&link.render()), Ok(link));
        }
    }

    #[test]
    fn folding_is_idempotent(text in "\\PC{0,20}") {
        prop_assert_eq!(name_key(&name_key(&text)), name_key(&text));
        prop_assert_eq!(slug(&slug(&text)), slug(&text));
    }
}
