//! Links in bodies, and the text form of a wikilink.

use escurel_md::Wikilink;
use expect_test::{Expect, expect};

use crate::{describe, page};

fn check(source: &str, expected: Expect) {
    let page = page(source);
    expected.assert_eq(&describe(&page));
    for link in &page.links {
        assert_eq!(page.text.get(link.span.clone()), Some(link.raw.as_str()));
    }
}

#[test]
fn code_comments_and_escapes_hold_no_links() {
    check(
        "`[[note::a]]`\n\n```\n[[note::b]]\n```\n\n<!-- [[note::c]] -->\n\n> ~~~\n> [[note::d]]\n> ~~~\n> [[note::e]]\n\n\\[[note::f]]\n\n    [[note::g]]\n\na <b title=\"[[note::h]]\">x</b> [t](u.md \"[[note::i]]\") <https://x.y/[[note::j]]> \\\\[[note::k]] \\![[note::l]]\n",
        expect![[r#"
            instance note::dir/page "page"
            body at line 1
            Wikilink body 12:3 [[note::e]] -> [[note::e]]
            Markdown body 18:32 [t](u.md "[[note::i]]") -> [[u.md]]
            Wikilink body 18:84 [[note::k]] -> [[note::k]]
            Wikilink body 18:98 [[note::l]] -> [[note::l]]
        "#]],
    );
}

#[test]
fn brackets_and_backslashes() {
    check(
        "[a\\[b\\]](x.md)",
        expect![[r#"
        instance note::dir/page "page"
        body at line 1
        Markdown body 1:1 [a\[b\]](x.md) -> [[x.md]]
    "#]],
    );
    check(
        "[[note::a]b]]",
        expect![[r#"
        instance note::dir/page "page"
        body at line 1
        wikilink_malformed line:1 col:1 a wikilink cannot hold brackets; the form is [[skill::id#anchor@version|alias]]
    "#]],
    );
    check(
        "[[[[note::a]]]]",
        expect![[r#"
        instance note::dir/page "page"
        body at line 1
        Wikilink body 1:3 [[note::a]] -> [[note::a]]
    "#]],
    );
    check(
        "[[note::a",
        expect![[r#"
        instance note::dir/page "page"
        body at line 1
    "#]],
    );
    check(
        "[[]] [[ ]] [[1, 2], [3]]",
        expect![[r#"
        instance note::dir/page "page"
        body at line 1
        wikilink_malformed line:1 col:1 a wikilink names a skill, an id or an anchor; the form is [[skill::id#anchor@version|alias]]
        wikilink_malformed line:1 col:6 a wikilink names a skill, an id or an anchor; the form is [[skill::id#anchor@version|alias]]
    "#]],
    );
    check(
        "[[note::a\nb]] [[c\\]] d]] [[e [[f]] g]]",
        expect![[r#"
        instance note::dir/page "page"
        body at line 1
        Wikilink body 2:20 [[f]] -> [[f]]
    "#]],
    );
    check(
        "[[a `x]]` b]] [[a]](b.md) [[c]]\n\n[c]: z.md\n",
        expect![[r#"
        instance note::dir/page "page"
        body at line 1
        Markdown body 1:15 [[a]](b.md) -> [[b.md]]
        Wikilink body 1:27 [[c]] -> [[c]]
    "#]],
    );
}

#[test]
fn links_stand_everywhere_in_text() {
    check(
        "# About [[h]]\n\n- item [[i]]\n- [x] task [[t]] *[[em]]* ~~[[st]]~~\n\n> quote\n> [[q|two words]] é [[q2]]\n\n| A | B |\n|---|---|\n| [[c1\\|alias]] | [[c2]] |\n| [[c3|d]] | x |\n\nnote[^1]\n\n[^1]: in [[f]]\n",
        expect![[r#"
            instance note::dir/page "About [[h]]"
            body at line 1
            h1 "About [[h]]" #about-h line 1
            Wikilink body 1:9 [[h]] -> [[h]]
            Wikilink body 3:8 [[i]] -> [[i]]
            Wikilink body 4:12 [[t]] -> [[t]]
            Wikilink body 4:19 [[em]] -> [[em]]
            Wikilink body 4:29 [[st]] -> [[st]]
            Wikilink body 7:3 [[q|two words]] -> [[q|two words]]
            Wikilink body 7:21 [[q2]] -> [[q2]]
            Wikilink body 11:3 [[c1\|alias]] -> [[c1|alias]]
            Wikilink body 11:19 [[c2]] -> [[c2]]
            Wikilink body 16:10 [[f]] -> [[f]]
        "#]],
    );
}

#[test]
fn embeds_assets_and_files() {
    check(
        "![[page]] ![[page#^id]] ![[img.png]] ![[v1.2]] ![map](./img/m.png) [t](../rel/other%20page.md#Some%20head) [u](folder/page) [v](#local) [w](http://x.y) [m](mailto:a@b.c) [r][ref] [abs](/top.md) ![[a|100]]!\n\n[ref]: target.md\n",
        expect![[r#"
            instance note::dir/page "page"
            body at line 1
            Embed body 1:1 ![[page]] -> [[page]]
            Embed body 1:11 ![[page#^id]] -> [[page#^id]]
            Asset body 1:25 ![[img.png]] -> [[img.png]]
            Embed body 1:38 ![[v1.2]] -> [[v1.2]]
            Asset body 1:48 ![map](./img/m.png) -> [[./img/m.png]]
            Markdown body 1:68 [t](../rel/other%20page.md#Some%20head) -> [[../rel/other page.md#Some head]]
            Markdown body 1:108 [u](folder/page) -> [[folder/page]]
            Markdown body 1:125 [v](#local) -> [[#local]]
            Markdown body 1:171 [r][ref] -> [[target.md]]
            Markdown body 1:180 [abs](/top.md) -> [[/top.md]]
            Embed body 1:195 ![[a|100]] -> [[a|100]]
        "#]],
    );
}

fn parsed(source: &str) -> String {
    match Wikilink::parse(source) {
        Ok(link) => format!(
            "{source} = {:?} {:?} #{:?} @{:?} |{:?} n={:?} {}",
            link.skill,
            link.id,
            link.anchor,
            link.version,
            link.alias,
            link.version_number(),
            link.render()
        ),
        Err(e) => format!("{source} = {}: {}", e.code, e.message),
    }
}

#[test]
fn wikilink_grammar() {
    let sources = [
        "[[x]]",
        "x",
        "[[skill::]]",
        "[[skill::id]]",
        "[[ a :: b # c @ 3 | d ]]",
        "[[spec::pump@3]]",
        "[[spec::pump@v12]]",
        "[[spec::pump@99]]",
        "[[spec::pump@3#Limits]]",
        "[[spec::pump#Limits@3]]",
        "[[a|me@home #1]]",
        "[[mail::ana@example]]",
        "[[a@b@3]]",
        "[[#here]]",
        "[[@3]]",
        "[[a#]]",
        "[[a@3#]]",
        "[[a|]]",
        "[[a\\|b]]",
        "[[a#b#c]]",
        "[[a::b::c]]",
        "[[#^id]]",
        "[[::x]]",
        "[[|x]]",
        "[[]]",
        "[[ ]]",
        "[[a]b]]",
        "a\nb",
        "[[a@99999999999999999999]]",
    ];
    let out: Vec<String> = sources.iter().map(|s| parsed(s)).collect();
    expect![[r#"
        [[x]] = None Some("x") #None @None |None n=None [[x]]
        x = None Some("x") #None @None |None n=None [[x]]
        [[skill::]] = Some("skill") None #None @None |None n=None [[skill::]]
        [[skill::id]] = Some("skill") Some("id") #None @None |None n=None [[skill::id]]
        [[ a :: b # c @ 3 | d ]] = Some("a") Some("b") #Some("c @ 3") @None |Some("d") n=None [[a::b#c @ 3|d]]
        [[spec::pump@3]] = Some("spec") Some("pump") #None @Some("3") |None n=Some(3) [[spec::pump@3]]
        [[spec::pump@v12]] = Some("spec") Some("pump") #None @Some("v12") |None n=Some(12) [[spec::pump@v12]]
        [[spec::pump@99]] = Some("spec") Some("pump") #None @Some("99") |None n=Some(99) [[spec::pump@99]]
        [[spec::pump@3#Limits]] = Some("spec") Some("pump@3") #Some("Limits") @None |None n=None [[spec::pump@3#Limits]]
        [[spec::pump#Limits@3]] = Some("spec") Some("pump") #Some("Limits") @Some("3") |None n=Some(3) [[spec::pump#Limits@3]]
        [[a|me@home #1]] = None Some("a") #None @None |Some("me@home #1") n=None [[a|me@home #1]]
        [[mail::ana@example]] = Some("mail") Some("ana@example") #None @None |None n=None [[mail::ana@example]]
        [[a@b@3]] = None Some("a@b") #None @Some("3") |None n=Some(3) [[a@b@3]]
        [[#here]] = None None #Some("here") @None |None n=None [[#here]]
        [[@3]] = None Some("@3") #None @None |None n=None [[@3]]
        [[a#]] = None Some("a") #None @None |None n=None [[a]]
        [[a@3#]] = None Some("a@3") #None @None |None n=None [[a@3#]]
        [[a|]] = None Some("a") #None @None |None n=None [[a]]
        [[a\|b]] = None Some("a") #None @None |Some("b") n=None [[a|b]]
        [[a#b#c]] = None Some("a") #Some("b#c") @None |None n=None [[a#b#c]]
        [[a::b::c]] = Some("a") Some("b::c") #None @None |None n=None [[a::b::c]]
        [[#^id]] = None None #Some("^id") @None |None n=None [[#^id]]
        [[::x]] = wikilink_malformed: a wikilink has a skill before `::`; the form is [[skill::id#anchor@version|alias]]
        [[|x]] = wikilink_malformed: a wikilink names a skill, an id or an anchor; the form is [[skill::id#anchor@version|alias]]
        [[]] = wikilink_malformed: a wikilink names a skill, an id or an anchor; the form is [[skill::id#anchor@version|alias]]
        [[ ]] = wikilink_malformed: a wikilink names a skill, an id or an anchor; the form is [[skill::id#anchor@version|alias]]
        [[a]b]] = wikilink_malformed: a wikilink cannot hold brackets; the form is [[skill::id#anchor@version|alias]]
        a
        b = wikilink_malformed: a wikilink stays on one line; the form is [[skill::id#anchor@version|alias]]
        [[a@99999999999999999999]] = None Some("a") #None @Some("99999999999999999999") |None n=None [[a@99999999999999999999]]"#]].assert_eq(&out.join("\n"));
}
