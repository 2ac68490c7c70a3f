//! Names, slugs and paths from outside.

use escurel_md::{check_page_path, name_key, nfc, slug};
use expect_test::expect;

#[test]
fn names_fold_case_and_form_but_not_width() {
    assert_eq!(
        name_key("Re\u{301}sume\u{301}"),
        name_key("R\u{c9}SUM\u{c9}")
    );
    assert_eq!(nfc("Re\u{301}"), "R\u{e9}");
    assert_ne!(name_key("（a）"), name_key("(a)"));
    assert_ne!(name_key("ＡＢＣ"), name_key("ABC"));
    assert_eq!(name_key("STRASSE"), name_key("straße"));
    assert_eq!(name_key("ΟΔΟΣ"), name_key("οδος"));
    assert_ne!(name_key("a b"), name_key("a_b"));
}

#[test]
fn slugs() {
    let slugs: Vec<String> = [
        "Q&A: costs (2030)?",
        "  Two  words ",
        "Überblick — «план»",
        "观测 记录",
        "हिन्दी भाषा",
        "a_b-c",
        "!!!",
        "İstanbul",
        "C++ & C#",
    ]
    .iter()
    .map(|s| slug(s))
    .collect();
    expect![[r#"
        [
            "qa-costs-2030",
            "two--words",
            "überblick--план",
            "观测-记录",
            "हिन\u{94d}दी-भाषा",
            "a_b-c",
            "",
            "i\u{307}stanbul",
            "c--c",
        ]
    "#]]
    .assert_debug_eq(&slugs);
}

#[test]
fn paths_that_could_leave_the_folder_are_refused() {
    let bad = [
        "..%2F..%2Fx",
        "%252e%252e/x",
        "a/../../x",
        "a\\..\\b",
        "\\\\host\\s",
        "C:x",
        "C:/x",
        "x\u{0}.md",
        "．．/x",
        "skill::../x",
        "",
        "/x",
        "a//b",
        "a/",
        "./a",
        "a/.",
        "..",
        "%2e%2e",
        "a%00b",
        "‥/x",
        "．．／x",
        "a＼b",
        "%5c%5chost",
        "%25252525252e",
        "a\nb",
        "%c0%ae%c0%ae/x",
        "%FF",
        " .. /x",
        "//host/share",
        "\u{85}x",
        "%2Fetc/passwd",
    ];
    for path in bad {
        assert!(
            check_page_path(path).is_err_and(|e| e.code == "page_id_invalid"),
            "{path:?} was let in"
        );
    }
}

#[test]
fn harmless_paths_are_decoded_and_kept() {
    for (path, expected) in [
        ("instances/customer/acme.md", "instances/customer/acme.md"),
        ("a%20b.md", "a b.md"),
        ("100%.md", "100%.md"),
        ("customer::acme", "customer::acme"),
        ("（a）.md", "（a）.md"),
        ("a..b/c...d", "a..b/c...d"),
        ("caf%C3%A9", "café"),
        (".hidden", ".hidden"),
        ("👩‍🚀 log.md", "👩‍🚀 log.md"),
        ("x::y", "x::y"),
    ] {
        let got = check_page_path(path);
        assert_eq!(got.as_deref(), Ok(expected));
        assert_eq!(check_page_path(expected).as_deref(), Ok(expected));
    }
}
