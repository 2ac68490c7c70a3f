//! Pages under other names, and the links that lead to them.

use escurel_core::api::*;
use escurel_core::{Kb, Then};

use crate::support::*;

const SKILL: (&str, &str) = (
    "skills/person.md",
    "---\ntype: skill\nid: person\n---\n# Person\n",
);
const ANN: &str = "---\nskill: person\nid: ann # short\naliases: [Annie]\n---\n# Ann Lee\n\nOf [the plan](../plan.md), ![a picture](img/a.png), [[#Ann Lee]] and [[person::ann]].\n";
const PLAN: &str = "# Plan\r\n\r\nTyped [[person::ann|A]], embedded ![[person::ann#Ann Lee]], by title [[Ann Lee]], by path \
[[people/ann]], by stem [[ann#^x]], markdown [Ann](people/ann.md#ann-lee \"T\"), [ref].\r\n\r\n| who |\r\n|---|\r\n| \
[[person::ann\\|her]] |\r\n\r\n`[[person::ann]]`\r\n\r\n[ref]: people/ann.md\r\n";
const LOG: &str =
    "---\nowner: \"[[person::ann]]\"\nseen: [\"[[people/ann.md|Ann]]\"]\n---\nNothing.\n";

fn move_to(kb: &Kb, page_id: &str, to: &str) -> MoveAnswer {
    kb.move_page(&me(), page_id, to, None, false).unwrap()
}

fn incoming(kb: &Kb, page_id: &str) -> usize {
    let request = NeighboursRequest {
        page_id: page_id.into(),
        direction: Direction::In,
        ..NeighboursRequest::default()
    };
    kb.neighbours(&me(), &request).unwrap().edges.len()
}

#[test]
fn every_link_follows_and_no_other_byte_changes() {
    let vault = Vault::new(&[
        SKILL,
        ("people/ann.md", ANN),
        ("people/img/a.png", "x"),
        ("plan.md", PLAN),
        ("log.md", LOG),
        ("other.md", "# Other\n\n[[plan]]\n"),
    ]);
    let kb = vault.open();
    let (uid, links) = (
        page(&kb, "people/ann.md").unwrap().uid,
        incoming(&kb, "people/ann.md"),
    );
    let would = kb
        .move_page(&me(), "[[person::ann]]", "team/anna.md", None, true)
        .unwrap();
    assert!(would.update.ok && would.relinked.len() == 3, "{would:?}");
    assert_eq!(vault.read("plan.md"), PLAN, "a dry run writes nothing");
    assert!(would.update.diff.contains("+owner: \"[[person::anna]]\""));

    let moved = move_to(&kb, "[[person::ann]]", "team/anna.md");
    assert!(
        moved.update.ok && moved.update.issues.is_empty(),
        "{moved:?}"
    );
    assert_eq!(
        (
            moved.update.page_id.as_str(),
            moved.update.version,
            moved.from.as_str()
        ),
        ("team/anna.md", 2, "people/ann.md")
    );
    assert!(!vault.path("people/ann.md").exists());
    assert_eq!(
        vault.read("team/anna.md"),
        ANN.replace("id: ann #", "id: anna #")
            .replace("(img/a.png)", "(../people/img/a.png)")
            .replace("[[person::ann]]", "[[person::anna]]")
    );
    let expected = PLAN
        .replace("[[person::ann", "[[person::anna")
        .replace("`[[person::anna]]`", "`[[person::ann]]`")
        .replace("[[people/ann]]", "[[team/anna]]")
        .replace("[[ann#", "[[anna#")
        .replace("people/ann.md", "team/anna.md");
    assert_eq!(vault.read("plan.md"), expected);
    let expected = LOG
        .replace("[[person::ann]]", "[[person::anna]]")
        .replace("people/ann.md", "team/anna.md");
    assert_eq!(vault.read("log.md"), expected);
    assert_eq!(page(&kb, "[[person::anna]]").unwrap().uid, uid);
    assert_eq!(incoming(&kb, "team/anna.md"), links);
    assert_eq!(found(&kb, "picture"), ["team/anna.md"]);
    assert_eq!(text_of(&kb, "[[person::ann]]"), None);
    let versions = kb.page_history(&me(), "team/anna.md", 9).unwrap().versions;
    assert!(
        versions.iter().any(|version| version.version == 1),
        "{versions:?}"
    );
    verify_clean(&kb);

    let before = everything(&kb);
    kb.close();
    drop(kb);
    std::fs::remove_dir_all(vault.index()).unwrap();
    let kb = vault.open();
    assert_eq!(everything(&kb), before, "the same from the journal alone");
    let back = kb
        .restore_page(&me(), "team/anna.md", &Then::Version(2), true)
        .unwrap();
    assert!(back.ok && back.diff.is_empty(), "{back:?}");
}

#[test]
fn a_new_name_keeps_the_folder_and_names_that_become_doubtful_are_made_clear() {
    let vault = Vault::new(&[
        SKILL,
        ("team/anna.md", "---\nskill: person\nid: anna\n---\nA.\n"),
        ("person/bo.md", "---\nskill: person\nid: bo\n---\nB.\n"),
        ("a/x.md", "# First\n"),
        ("b/y.md", "# Second\n"),
        ("c.md", "[[x]] [[y]] [[bo]]\n"),
    ]);
    let kb = vault.open();
    assert_eq!(
        move_to(&kb, "team/anna.md", "[[person::ann]]")
            .update
            .page_id,
        "team/ann.md"
    );
    assert_eq!(
        move_to(&kb, "[[person::bo]]", "[[person::bob]]")
            .update
            .page_id,
        "person/bob.md"
    );
    assert_eq!(move_to(&kb, "b/y.md", "b/x.md").relinked.len(), 1);
    assert_eq!(vault.read("c.md"), "[[a/x]] [[b/x]] [[bob]]\n");
    verify_clean(&kb);
}

#[test]
fn what_cannot_be_moved_stays() {
    let vault = Vault::new(&[
        SKILL,
        ("ann.md", "---\nskill: person\nid: ann\n---\nA.\n"),
        ("bo.md", "---\nskill: person\nid: bo\n---\nB. [[ann]]\n"),
    ]);
    std::os::unix::fs::symlink(vault.folder().parent().unwrap(), vault.path("link")).unwrap();
    std::fs::create_dir(vault.path("folder.md")).unwrap();
    let kb = vault.open();
    let before = everything(&kb);
    for (page_id, to, code) in [
        ("ann.md", "bo.md", "page_id_invalid"),
        ("ann.md", "bo.md/x.md", "page_id_invalid"),
        ("ann.md", "link/x.md", "page_id_invalid"),
        ("ann.md", "folder.md", "page_id_invalid"),
        ("ann.md", ".hidden/x.md", "page_id_invalid"),
        ("ann.md", "../up.md", "page_id_invalid"),
        ("ann.md", "text.txt", "page_id_invalid"),
        ("ann.md", "[[person]]", "page_id_invalid"),
        ("ann.md", "[[person::bo]]", "page_id_invalid"),
        ("skills/person.md", "skills/human.md", "identity_changed"),
    ] {
        let moved = move_to(&kb, page_id, to);
        let codes: Vec<&str> = moved.update.issues.iter().map(|i| i.code).collect();
        assert!(
            !moved.update.ok && codes == [code],
            "{page_id} {to} {moved:?}"
        );
    }
    let stale = kb
        .move_page(&me(), "ann.md", "x.md", Some(7), false)
        .unwrap();
    assert_eq!(stale.update.issues[0].code, "conflict");
    assert!(
        kb.move_page(&me(), "nobody.md", "x.md", None, false)
            .is_err()
    );
    assert_eq!(everything(&kb), before);
    assert_eq!(
        vault.read("bo.md"),
        "---\nskill: person\nid: bo\n---\nB. [[ann]]\n"
    );
}
