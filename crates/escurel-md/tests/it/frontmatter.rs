//! Headers as they are found in the wild.

use escurel_md::{Layout, parse};
use expect_test::{Expect, expect};

use crate::{describe, page};

fn check(source: &str, expected: Expect) {
    expected.assert_eq(&describe(&page(source)));
}

#[test]
fn byte_order_mark_does_not_hide_the_header() {
    let with = "\u{feff}---\nskill: recipe\nid: plum-cake\n---\n# Plum cake\n";
    check(
        with,
        expect![[r#"
        instance recipe::plum-cake "Plum cake"
        skill = "recipe"
        id = "plum-cake"
        body at line 5
        h1 "Plum cake" #plum-cake line 5
    "#]],
    );
    let without = page(with.trim_start_matches('\u{feff}'));
    assert_eq!(describe(&page(with)), describe(&without));
    assert_eq!(page(with).text, with);
}

#[test]
fn windows_line_endings() {
    check(
        "---\r\nskill: note\r\nid: tide\r\ntags:\r\n  - sea\r\n---\r\nBody one\r\n[[a]]\r\n",
        expect![[r#"
        instance note::tide "page"
        skill = "note"
        id = "tide"
        tags = ["sea"]
        tags ["sea"]
        body at line 7
        Wikilink body 8:1 [[a]] -> [[a]]
    "#]],
    );
}

#[test]
fn mixed_line_endings_keep_lines_and_columns() {
    check(
        "---\r\nskill: note\nid: tide\rowner: [[é]]\r\n---\nOne\rTwo [[b]]\r\n\r\n## Three\rFour\r\r[[c]]",
        expect![[r#"
        instance note::tide "page"
        skill = "note"
        id = "tide"
        owner = "[[é]]"
        body at line 6
        h2 "Three" #three line 9
        Wikilink owner 4:8 [[é]] -> [[é]]
        Wikilink body 7:5 [[b]] -> [[b]]
        Wikilink body 12:1 [[c]] -> [[c]]
    "#]],
    );
}

#[test]
fn carriage_returns_alone() {
    check(
        "---\rskill: note\rid: tide\r---\r# Title\r\rText [[a]]\r",
        expect![[r#"
        instance note::tide "Title"
        skill = "note"
        id = "tide"
        body at line 5
        h1 "Title" #title line 5
        Wikilink body 7:6 [[a]] -> [[a]]
    "#]],
    );
}

#[test]
fn text_keys_keep_their_spelling() {
    check(
        "---\nid: 0012\nbatch: 00089\nversion: 3.10\nat: 12:30:00\ncode: 0x1F\nbig: 123456789012345678901234567890\n\
         n: 42\nd: 2.5\nround: 1.0\nneg: -7\nexp: 1e5\nedge: 9007199254740992\nover: 9007199254740993\n\
         yes: true\nno: no\nnothing:\ntilde: ~\nday: 2026-04-12\n---\n",
        expect![[r#"
            instance note::0012 "page"
            id = "0012"
            batch = "00089"
            version = "3.10"
            at = "12:30:00"
            code = "0x1F"
            big = "123456789012345678901234567890"
            n = 42
            d = 2.5
            round = 1.0
            neg = -7
            exp = "1e5"
            edge = 9007199254740992
            over = "9007199254740993"
            yes = true
            no = "no"
            nothing = null
            tilde = null
            day = "2026-04-12"
            body at line 21
            frontmatter_at_unreadable frontmatter.at `at` is neither an instant nor a day.
        "#]],
    );
}

#[test]
fn date_as_title_and_number_as_tag() {
    check(
        "---\ntitle: 2031-04-09\ntags: 7\naliases: [1, 02]\n---\n",
        expect![[r#"
        instance note::dir/page "2031-04-09"
        title = "2031-04-09"
        tags = "7"
        aliases = ["1","02"]
        tags ["7"]
        body at line 6
    "#]],
    );
}

#[test]
fn unquoted_wikilinks_as_values() {
    check(
        "---\nowner: [[person::ana]]\nteam: [[person::ana]], [[person::bo]] # both\nrelated: [\"[[note::x]]\", \"[[note::y]]\"]\n\
         matrix: [[1, 2]]\nlist:\n  - [[a]]\n  - [[b|B]]\n  - '[[Ana''s note]]'\nflow: [[[c]], [[d]]]\nwords: [[e]] and more\n\
         day: [[2031-04-09]]\nnested: {who: [[f]]}\ntext: |\n  - [[g]]\n  see: [[h]] é\nafter: [[i]]\n---\n",
        expect![[r#"
            instance note::dir/page "page"
            owner = "[[person::ana]]"
            team = ["[[person::ana]]","[[person::bo]]"]
            related = ["[[note::x]]","[[note::y]]"]
            matrix = [[1,2]]
            list = ["[[a]]","[[b|B]]","[[Ana's note]]"]
            flow = ["[[c]]","[[d]]"]
            words = "[[e]] and more"
            day = "[[2031-04-09]]"
            nested = {"who":"[[f]]"}
            text = "- [[g]]\nsee: [[h]] é\n"
            after = "[[i]]"
            body at line 19
            Wikilink owner 2:8 [[person::ana]] -> [[person::ana]]
            Wikilink team 3:7 [[person::ana]] -> [[person::ana]]
            Wikilink team 3:24 [[person::bo]] -> [[person::bo]]
            Wikilink related 4:12 [[note::x]] -> [[note::x]]
            Wikilink related 4:27 [[note::y]] -> [[note::y]]
            Wikilink list 7:5 [[a]] -> [[a]]
            Wikilink list 8:5 [[b|B]] -> [[b|B]]
            Wikilink list 9:6 [[Ana''s note]] -> [[Ana's note]]
            Wikilink flow 10:8 [[c]] -> [[c]]
            Wikilink flow 10:15 [[d]] -> [[d]]
            Wikilink words 11:8 [[e]] -> [[e]]
            Wikilink day 12:6 [[2031-04-09]] -> [[2031-04-09]]
            Wikilink nested 13:15 [[f]] -> [[f]]
            Wikilink text 15:5 [[g]] -> [[g]]
            Wikilink text 16:8 [[h]] -> [[h]]
            Wikilink after 17:8 [[i]] -> [[i]]
        "#]],
    );
}

#[test]
fn unquoted_colon_is_reported_and_the_body_stays() {
    check(
        "---\ntitle: Bridge: part two\nskill: note\n---\n# Text\n",
        expect![[r#"
        instance note::dir/page "Text"
        body at line 5
        h1 "Text" #text line 5
        frontmatter_unparsable line:2 col:14 The header is not readable YAML here: mapping values are not allowed in this context.
    "#]],
    );
}

#[test]
fn duplicate_keys() {
    check(
        "---\nskill: note\ntags: [red]\ntags: [blue]\nx: [[a]]\nx: [[b]]\n---\n",
        expect![[r#"
        instance note::dir/page "page"
        skill = "note"
        tags = ["blue"]
        x = "[[b]]"
        tags ["blue"]
        body at line 8
        Wikilink x 6:4 [[b]] -> [[b]]
        frontmatter_duplicate_key line:4 col:1 `tags` is given on line 3 and again on line 4; the last one is read.
        frontmatter_duplicate_key line:6 col:1 `x` is given on line 5 and again on line 6; the last one is read.
    "#]],
    );
    let twice = page("---\nskill: note\nid: a1\nid: a2\n---\n");
    assert!(!twice.identity_clear);
    assert_eq!(twice.id, "a2");
    check(
        "---\nskill: note\nid: a1\nskill: memo\n---\n",
        expect![[r#"
        instance memo::a1 "page"
        skill = "memo"
        id = "a1"
        body at line 6
        identity_unclear line:4 col:1 `skill` is given on line 2 and again on line 4; the last one is read.
    "#]],
    );
}

#[test]
fn empty_header() {
    check(
        "---\n---\n# T\n[[note::x]]",
        expect![[r#"
        instance note::dir/page "T"
        body at line 3
        h1 "T" #t line 3
        Wikilink body 4:1 [[note::x]] -> [[note::x]]
    "#]],
    );
}

#[test]
fn dashes_and_comments_inside_the_header() {
    check(
        "---\nskill: note\nquote: a --- b\n# colour list\n---\nHi\n\n---\n\nAfter rule",
        expect![[r#"
        instance note::dir/page "page"
        skill = "note"
        quote = "a --- b"
        body at line 6
    "#]],
    );
}

#[test]
fn missing_end_of_header() {
    check(
        "---\nskill: note\nno closing fence",
        expect![[r#"
        instance note::dir/page "page"
        body at line 1
        frontmatter_unclosed line:1 col:1 The header that `---` opens is never closed; everything is read as body.
    "#]],
    );
}

#[test]
fn header_inside_a_code_block() {
    check(
        "# T\n\n```yaml\n---\nskill: fake\n---\n```\n",
        expect![[r#"
        instance note::dir/page "T"
        body at line 1
        h1 "T" #t line 1
    "#]],
    );
}

#[test]
fn tabs_are_named() {
    check(
        "---\nskill: note\ntags:\n\t- a\n---\n# Body",
        expect![[r#"
        instance note::dir/page "Body"
        body at line 6
        h1 "Body" #body line 6
        frontmatter_unparsable line:4 col:1 Line 4 is indented with a tab; YAML takes only spaces.
    "#]],
    );
}

#[test]
fn dots_end_the_header_and_rules_around_text_are_body() {
    check(
        "---\nid: x\n...\n# Body",
        expect![[r#"
        instance note::x "Body"
        id = "x"
        body at line 4
        h1 "Body" #body line 4
    "#]],
    );
    check(
        "---\nOnly a sentence.\n---\nMore",
        expect![[r#"
        instance note::dir/page "page"
        body at line 1
        h2 "Only a sentence." #only-a-sentence line 2
        frontmatter_unparsable line:2 col:1 The header is not a list of keys with values.
    "#]],
    );
    check(
        "Text\n---\nid: x\n---\n",
        expect![[r#"
        instance note::dir/page "page"
        body at line 1
        h2 "Text" #text line 1
        h2 "id: x" #id-x line 3
    "#]],
    );
    check(
        "---\nid: x\n--- \nBody",
        expect![[r#"
        instance note::x "page"
        id = "x"
        body at line 4
    "#]],
    );
}

#[test]
fn template_braces_as_value() {
    check(
        "---\ntitle: {{title}}\n---\nBody",
        expect![[r#"
        instance note::dir/page "page"
        body at line 4
        frontmatter_unparsable line:2 col:9 A key is a list or a mapping; quote the text if none is meant.
    "#]],
    );
}

#[test]
fn anchors_and_aliases() {
    check(
        "---\nbase: &b {a: 1, who: \"[[x]]\"}\ncopy: *b\nname: &n note\nskill: *n\n---\n",
        expect![[r#"
        instance note::dir/page "page"
        base = {"a":1,"who":"[[x]]"}
        copy = {"a":1,"who":"[[x]]"}
        name = "note"
        skill = "note"
        body at line 7
        Wikilink base 2:23 [[x]] -> [[x]]
    "#]],
    );
}

#[test]
fn quoting_styles() {
    check(
        "---\na: 'it''s'\nb: \"caf\\u00e9 [[n::caf\\u00e9]]\"\nc: >\n  folded\n  text\nd: !!str 12\n\"quoted key\": 1\n? e\n: 2\n---\n",
        expect![[r#"
        instance note::dir/page "page"
        a = "it's"
        b = "café [[n::café]]"
        c = "folded text\n"
        d = "12"
        quoted key = 1
        e = 2
        body at line 12
        Wikilink b 3:15 [[n::caf\u00e9]] -> [[n::café]]
    "#]],
    );
}

#[test]
fn bytes_that_are_not_utf8() {
    let page = parse(
        "caf.md",
        b"---\nid: caf\xE9\n---\nPre\xE7o 10\n",
        Layout::Vault,
    );
    expect![[r#"
        instance note::caf� "caf"
        id = "caf�"
        body at line 4
        not_utf8 line:1 col:1 The file is not UTF-8; it is shown as far as it can be read and cannot be changed here.
    "#]].assert_eq(&describe(&page));
    assert!(!page.utf8);
    let wide: Vec<u8> = "\u{feff}# Wide"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    let page = parse("wide.md", &wide, Layout::Vault);
    assert_eq!((page.title.as_str(), page.utf8), ("Wide", false));
}

#[test]
fn defaults_follow_the_layout() {
    let vault = parse("people/Re\u{301}sume\u{301}.md", b"text", Layout::Vault);
    assert_eq!(
        (
            vault.id.as_str(),
            vault.title.as_str(),
            vault.skill.as_str()
        ),
        ("people/R\u{e9}sum\u{e9}", "R\u{e9}sum\u{e9}", "note")
    );
    let tenant = parse("markdown/instances/note/tide.md", b"text", Layout::Tenant);
    assert_eq!((tenant.id.as_str(), tenant.issues.len()), ("tide", 0));
    let other = parse(
        "markdown/instances/note/tide.md",
        b"---\nskill: memo\n---\n",
        Layout::Tenant,
    );
    expect![[r#"
        instance memo::tide "tide"
        skill = "memo"
        body at line 4
        identity_path_mismatch frontmatter.id The path says instance `note::tide`, the header instance `memo::tide`; the header holds.
    "#]].assert_eq(&describe(&other));
    let skill = parse(
        "markdown/skills/customer.md",
        b"---\ntype: skill\n---\n",
        Layout::Tenant,
    );
    assert_eq!((skill.skill.as_str(), skill.issues.len()), ("customer", 0));
}

#[test]
fn times() {
    let at = |s: &str| {
        page(&format!("---\nat: {s}\n---\n"))
            .at
            .map(|w| (escurel_md::When::to_rfc3339(w.first), w.last - w.first))
    };
    expect![[r#"
        [
            Some(
                (
                    "2026-04-12T00:00:00Z",
                    86399999999,
                ),
            ),
            Some(
                (
                    "2026-04-12T10:00:00Z",
                    0,
                ),
            ),
            Some(
                (
                    "2026-04-12T10:00:00Z",
                    0,
                ),
            ),
            Some(
                (
                    "2026-04-12T08:00:00.25Z",
                    0,
                ),
            ),
            Some(
                (
                    "2026-04-12T10:00:00Z",
                    0,
                ),
            ),
            None,
            None,
            None,
            None,
        ]
    "#]]
    .assert_debug_eq(&[
        at("2026-04-12"),
        at("2026-04-12T10:00"),
        at("2026-04-12 10:00:00"),
        at("2026-04-12T10:00:00.25+02:00"),
        at("2026-04-12T10:00:00Z"),
        at("2026-04"),
        at("12:30:00"),
        at("2026-02-30"),
        at("2026-04-12T10:00:00[Europe/Berlin]"),
    ]);
}
