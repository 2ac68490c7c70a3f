//! Setting single keys: what changes and what must not.

use escurel_md::set_frontmatter_key;
use expect_test::{Expect, expect};
use serde_json::{Value, json};

fn set(source: &str, key: &str, value: Option<Value>) -> String {
    match set_frontmatter_key(source.as_bytes(), key, value.as_ref()) {
        Ok(bytes) => String::from_utf8(bytes).unwrap_or_else(|_| "NOT UTF-8".to_owned()),
        Err(e) => format!("{}: {}", e.code, e.message),
    }
}

fn check(source: &str, key: &str, value: Option<Value>, expected: Expect) {
    expected.assert_eq(&format!("{:?}", set(source, key, value)));
}

#[test]
fn other_bytes_stay() {
    let crlf = "---\r\nskill: note\r\nid: tide\r\ntags:\r\n  - sea\r\n---\r\nBody\r\n";
    check(
        crlf,
        "id",
        Some(json!("ebb")),
        expect![[r#""---\r\nskill: note\r\nid: ebb\r\ntags:\r\n  - sea\r\n---\r\nBody\r\n""#]],
    );
    check(
        crlf,
        "tags",
        Some(json!(["a", "b, c"])),
        expect![[r#""---\r\nskill: note\r\nid: tide\r\ntags: [a, \"b, c\"]\r\n---\r\nBody\r\n""#]],
    );
    check(
        crlf,
        "skill",
        None,
        expect![[r#""---\r\nid: tide\r\ntags:\r\n  - sea\r\n---\r\nBody\r\n""#]],
    );
    check(
        crlf,
        "new",
        Some(json!(true)),
        expect![[
            r#""---\r\nskill: note\r\nid: tide\r\ntags:\r\n  - sea\r\nnew: true\r\n---\r\nBody\r\n""#
        ]],
    );
    check(
        "\u{feff}---\nid: a # keep me\n# and me\n\nb: 'x'\n---\n\u{feff}body",
        "id",
        Some(json!("c")),
        expect![[r#""\u{feff}---\nid: c # keep me\n# and me\n\nb: 'x'\n---\n\u{feff}body""#]],
    );
    check(
        "---\nid: a\rb: 1\r\n---\n",
        "id",
        Some(json!(7)),
        expect![[r#""---\nid: 7\rb: 1\r\n---\n""#]],
    );
}

#[test]
fn values_of_every_shape() {
    for value in [
        json!("plain words"),
        json!("a: b"),
        json!("- x"),
        json!("12"),
        json!("true"),
        json!("[[note::x]]"),
        json!("2026-04-12"),
        json!("it's"),
        json!("line\nbreak"),
        json!(""),
        json!(" pad "),
        json!("\u{7f}\u{2028}\u{e000}"),
        json!(null),
        json!(1.5),
        json!(["a", ["b"], {"c": 1}]),
        json!({}),
        json!({"read": ["public"], "update": []}),
        json!("#x"),
        json!("x #y"),
        json!("emoji 🛶"),
    ] {
        let source = "---\na: 1\nk: |\n  old\n  text\n\n# comment\nz: [1,\n  2]\n---\nBody";
        let edited = set(source, "k", Some(value.clone()));
        let page = crate::page(&edited);
        assert_eq!(page.frontmatter.get("k"), Some(&value), "{edited}");
        assert!(
            edited.starts_with("---\na: 1\nk: ")
                && edited.ends_with("\n\n# comment\nz: [1,\n  2]\n---\nBody"),
            "{edited}"
        );
    }
}

#[test]
fn a_header_is_made_once() {
    check(
        "# Title\r\n",
        "id",
        Some(json!("x")),
        expect![[r#""---\r\nid: x\r\n---\r\n# Title\r\n""#]],
    );
    check(
        "\u{feff}text",
        "id",
        Some(json!("x")),
        expect![[r#""\u{feff}---\nid: x\n---\ntext""#]],
    );
    check(
        "",
        "id",
        Some(json!("x")),
        expect![[r#""---\nid: x\n---\n""#]],
    );
    check(
        "---\n---\n# T",
        "id",
        Some(json!("x")),
        expect![[r#""---\nid: x\n---\n# T""#]],
    );
    check("# T", "id", None, expect![[r##""# T""##]]);
}

#[test]
fn what_cannot_be_read_is_refused() {
    check(
        "---\ntitle: Bridge: part two\nskill: note\n---\nText",
        "id",
        Some(json!("x")),
        expect![[
            r#""frontmatter_unparsable: the header cannot be read at line:2 col:14: The header is not readable YAML here: mapping values are not allowed in this context.""#
        ]],
    );
    check(
        "---\nskill: note\nno closing fence",
        "id",
        Some(json!("x")),
        expect![[
            r#""frontmatter_unparsable: the header is never closed; add a line `---` after it""#
        ]],
    );
    check(
        "---\n{id: x}\n---\n",
        "id",
        Some(json!("y")),
        expect![[
            r#""frontmatter_unparsable: the header is written in braces; write one key per line first""#
        ]],
    );
    check(
        "---\n? id\n: x\n---\n",
        "id",
        Some(json!("y")),
        expect![[r#""frontmatter_edit_refused: the key does not stand at the start of its line""#]],
    );
    check(
        "---\na: &x 1\nb: *x\n---\n",
        "a",
        Some(json!(2)),
        expect![[
            r#""frontmatter_edit_refused: `a` cannot be set without changing other keys; edit the header as text""#
        ]],
    );
    check(
        "---\na: &x 1\nb: *x\n---\n",
        "a",
        None,
        expect![[
            r#""frontmatter_edit_refused: `a` cannot be set without changing other keys; edit the header as text""#
        ]],
    );
    check(
        "---\nOnly a sentence.\n---\n",
        "a",
        Some(json!(1)),
        expect![[
            r#""frontmatter_unparsable: the header cannot be read at line:2 col:1: The header is not a list of keys with values.""#
        ]],
    );
    assert!(
        set_frontmatter_key(b"---\nid: caf\xE9\n---\n", "id", None)
            .is_err_and(|e| e.code == "not_utf8")
    );
}

#[test]
fn repeated_keys_become_one() {
    check(
        "---\nid: a\nx: 1\nid: b\n---\n",
        "id",
        Some(json!("c")),
        expect![[r#""---\nx: 1\nid: c\n---\n""#]],
    );
    check(
        "---\nid: a\nx: 1\nid: b\n---\n",
        "id",
        None,
        expect![[r#""---\nx: 1\n---\n""#]],
    );
    check(
        "---\nowner: [[a]], [[b]]\nx: 1\n---\n",
        "owner",
        Some(json!("[[c]]")),
        expect![[r#""---\nowner: \"[[c]]\"\nx: 1\n---\n""#]],
    );
}
