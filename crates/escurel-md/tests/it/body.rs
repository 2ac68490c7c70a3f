//! Headings, blocks, anchors, tags and retrieval units.

use escurel_md::units;
use expect_test::{Expect, expect};

use crate::{describe, page};

fn check(source: &str, expected: Expect) {
    let page = page(source);
    let mut out = describe(&page);
    for b in &page.blocks {
        let text = page.text.get(b.span.clone()).unwrap_or("OUT OF BOUNDS");
        let heading = b.heading.map_or("-".to_owned(), |h| h.to_string());
        out.push_str(&format!(
            "{:?} #{} under {heading} line {} {text:?}\n",
            b.kind, b.anchor, b.line
        ));
    }
    for a in &page.item_anchors {
        out.push_str(&format!(
            "item ^{} {:?}\n",
            a.anchor,
            page.text.get(a.span.clone()).unwrap_or("OUT OF BOUNDS")
        ));
    }
    expected.assert_eq(&out);
}

#[test]
fn headings_in_every_script() {
    let source =
        "##\tQ&A: costs (2030)?\n### Überblick — «план»\ntext\n## Q&A: costs (2030)?\nmore\n";
    check(
        source,
        expect![[r####"
        instance note::dir/page "page"
        body at line 1
        h2 "Q&A: costs (2030)?" #qa-costs-2030 line 1
        h3 "Überblick — «план»" #überblick--план line 2
        h2 "Q&A: costs (2030)?" #qa-costs-2030-1 line 4
        Heading #qa-costs-2030 under 0 line 1 "##\tQ&A: costs (2030)?"
        Heading #überblick--план under 1 line 2 "### Überblick — «план»"
        Paragraph #b-e391b491 under 1 line 3 "text"
        Heading #qa-costs-2030-1 under 2 line 4 "## Q&A: costs (2030)?"
        Paragraph #b-c91b2722 under 2 line 5 "more"
    "####]],
    );
    let page = page(source);
    let section = |a: &str| {
        page.find_anchor(a)
            .map(|f| page.text.get(f.span).unwrap_or("").to_owned())
    };
    assert_eq!(
        section("Überblick — «план»").as_deref(),
        Some("### Überblick — «план»\ntext\n")
    );
    assert_eq!(section("überblick--план"), section("Überblick — «план»"));
    assert_eq!(
        section("qa-costs-2030-1").as_deref(),
        Some("## Q&A: costs (2030)?\nmore\n")
    );
    assert_eq!(
        section("Q&A: costs (2030)?#Überblick — «план»"),
        section("Überblick — «план»")
    );
    assert_eq!(section("nothing"), None);
}

#[test]
fn blocks_of_every_kind() {
    check(
        "Para\nmore\n\n- a\n- b\n\n> quote\n\n```rs\ncode\n```\n\n| a |\n|---|\n| b |\n\n<div>\nhtml\n</div>\n\n<!-- note -->\n\n---\n\n    indented\n\nPara\nmore\n\n[^1]: foot [[x]]\n",
        expect![[r#"
            instance note::dir/page "page"
            body at line 1
            Wikilink body 30:12 [[x]] -> [[x]]
            Paragraph #b-75fe2186 under - line 1 "Para\nmore"
            List #b-35ba4576 under - line 4 "- a\n- b"
            Quote #b-5e37e7ac under - line 7 "> quote"
            Code #b-5997b901 under - line 9 "```rs\ncode\n```"
            Table #b-730be111 under - line 13 "| a |\n|---|\n| b |"
            Html #b-596fc8a3 under - line 17 "<div>\nhtml\n</div>"
            Comment #b-c4f48fac under - line 21 "<!-- note -->"
            Rule #b-0067f651 under - line 23 "---"
            Code #b-a30b6a46 under - line 25 "indented"
            Paragraph #b-75fe2186-1 under - line 27 "Para\nmore"
            Paragraph #b-2fb5c975 under - line 30 "[^1]: foot [[x]]"
        "#]],
    );
}

#[test]
fn block_ids() {
    check(
        "First paragraph\nwith id ^blk-acme-signals\n\n- one ^item-1\n- two\n  - deep ^item-2\n\n^the-list\n\n> quoted ^q1\n\n| a |\n|---|\n| b |\n\n^tab\n\n## Head ^h-1\n\nnot^an-id `x ^code`\n\nagain ^blk-acme-signals\n",
        expect![[r###"
            instance note::dir/page "page"
            body at line 1
            h2 "Head" #head line 18
            Paragraph #blk-acme-signals under - line 1 "First paragraph\nwith id ^blk-acme-signals"
            List #the-list under - line 4 "- one ^item-1\n- two\n  - deep ^item-2\n\n^the-list"
            Quote #q1 under - line 10 "> quoted ^q1"
            Table #tab under - line 12 "| a |\n|---|\n| b |\n\n^tab"
            Heading #head under 0 line 18 "## Head ^h-1"
            Paragraph #b-51551c99 under 0 line 20 "not^an-id `x ^code`"
            Paragraph #blk-acme-signals-1 under 0 line 22 "again ^blk-acme-signals"
            item ^h-1 "## Head ^h-1\n\nnot^an-id `x ^code`\n\nagain ^blk-acme-signals\n"
            item ^item-1 "- one ^item-1"
            item ^item-2 "- deep ^item-2"
        "###]],
    );
}

#[test]
fn tags_of_the_body() {
    check(
        "---\ntags: [Sea, '#two']\n---\n# C# and #heading\n#start (#paren) x#no #123 #a1 #sea #日本 #a/b- `#code` [t](#frag) [[n#anchor]] [[n #x]] \\#esc\n```\n#!/bin/sh\n```\n",
        expect![[r##"
            instance note::dir/page "C# and #heading"
            tags = ["Sea","#two"]
            tags ["Sea", "two", "heading", "start", "paren", "a1", "日本", "a/b"]
            body at line 4
            h1 "C# and #heading" #c-and-heading line 4
            Markdown body 5:54 [t](#frag) -> [[#frag]]
            Wikilink body 5:65 [[n#anchor]] -> [[n#anchor]]
            Wikilink body 5:78 [[n #x]] -> [[n#x]]
            Heading #c-and-heading under 0 line 4 "# C# and #heading"
            Paragraph #b-922f0df9 under 0 line 5 "#start (#paren) x#no #123 #a1 #sea #日本 #a/b- `#code` [t](#frag) [[n#anchor]] [[n #x]] \\#esc"
            Code #b-457045d8 under 0 line 6 "```\n#!/bin/sh\n```"
        "##]],
    );
}

#[test]
fn comments_hide_what_is_in_them() {
    check(
        "a %%[[x]] #t%% [[y]]\n\n%%\n# Hidden\n\n[[z]]\n%%\n\n`%%` [[w]] 100%% [[v]]\n\n<!-- [[u]] --> tail\n",
        expect![[r##"
            instance note::dir/page "page"
            body at line 1
            Wikilink body 1:16 [[y]] -> [[y]]
            Wikilink body 9:6 [[w]] -> [[w]]
            Wikilink body 9:18 [[v]] -> [[v]]
            Paragraph #b-5687f2b6 under - line 1 "a %%[[x]] #t%% [[y]]"
            Comment #b-b33436d8 under - line 3 "%%"
            Comment #b-0da35814 under - line 4 "# Hidden"
            Comment #b-7446df0a under - line 6 "[[z]]\n%%"
            Paragraph #b-d8d95174 under - line 9 "`%%` [[w]] 100%% [[v]]"
            Html #b-9b696107 under - line 11 "<!-- [[u]] --> tail"
        "##]],
    );
}

#[test]
fn headings_in_containers_are_no_sections() {
    check(
        "# A\n> ## B\n\n- # C\n\nSetext\n===\n",
        expect![[r##"
        instance note::dir/page "A"
        body at line 1
        h1 "A" #a line 1
        h1 "Setext" #setext line 6
        Heading #a under 0 line 1 "# A"
        Quote #b-16e7a463 under 0 line 2 "> ## B"
        List #b-539d9ef3 under 0 line 4 "- # C"
        Heading #setext under 1 line 6 "Setext\n==="
    "##]],
    );
}

#[test]
fn title_comes_from_the_first_heading_of_level_one() {
    assert_eq!(page("## Two\n# One *bold* `code`\n").title, "One bold code");
    assert_eq!(page("text").title, "page");
}

#[test]
fn units_join_small_blocks_and_cut_large_ones() {
    let long = "Sentence number one is here. ".repeat(120);
    let source = format!(
        "intro\n\n# A\n\none\n\ntwo\n\n## B\n\n{long}\n\nlast\n\n# C\n\n{}\n",
        "漢".repeat(1500)
    );
    let page = page(&source);
    let mut out = String::new();
    for u in units(&page) {
        let text = page.text.get(u.span.clone()).unwrap_or("OUT OF BOUNDS");
        let tail: String = text
            .chars()
            .rev()
            .take(8)
            .collect::<Vec<_>>()
            .into_iter()
            .rev()
            .collect();
        out.push_str(&format!(
            "{:?} blocks {:?} {} bytes …{tail:?}\n",
            u.headings,
            u.blocks,
            text.len()
        ));
    }
    expect![[r###"
        "" blocks 0..1 5 bytes …"intro"
        "A" blocks 1..4 13 bytes …"one\n\ntwo"
        "A › B" blocks 4..5 4 bytes …"## B"
        "A › B" blocks 5..6 1972 bytes …"s here. "
        "A › B" blocks 5..6 1507 bytes …"is here."
        "A › B" blocks 6..7 4 bytes …"last"
        "C" blocks 7..8 3 bytes …"# C"
        "C" blocks 8..9 1998 bytes …"漢漢漢漢漢漢漢漢"
        "C" blocks 8..9 1998 bytes …"漢漢漢漢漢漢漢漢"
        "C" blocks 8..9 504 bytes …"漢漢漢漢漢漢漢漢"
    "###]]
    .assert_eq(&out);
    assert_eq!(units(&crate::page("---\nid: x\n---\n")).len(), 1);
}
