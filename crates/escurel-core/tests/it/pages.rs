//! Pages written as callers do it: joined, edited in place, deleted, brought back.

use std::sync::Arc;

use escurel_access::Caller;
use escurel_core::api::{EditRequest, UpdateAnswer, UpdateRequest};
use escurel_core::{AutonomyLint, Code, Edit, Kb, OpenOptions, Part, Position, Then};
use serde_json::json;

use crate::support::*;

fn update(kb: &Kb, page_id: &str, content: &str, base_version: Option<u64>) -> UpdateAnswer {
    let request = UpdateRequest {
        scenario: None,
        page_id: page_id.into(),
        content: content.into(),
        base_version,
        dry_run: false,
    };
    kb.update_page(&me(), &request).unwrap()
}

fn edit(kb: &Kb, page_id: &str, edit: Edit) -> UpdateAnswer {
    let request = EditRequest {
        page_id: page_id.into(),
        ..EditRequest::default()
    };
    kb.edit_page(&me(), &request, &edit).unwrap()
}

fn replace(part: Part, text: &str) -> Edit {
    Edit::Passage {
        part,
        position: Position::Replace,
        text: text.into(),
    }
}

fn codes(answer: &UpdateAnswer) -> Vec<&str> {
    answer.issues.iter().map(|issue| issue.code).collect()
}

const SKILL: (&str, &str) = (
    "skills/task.md",
    "---\ntype: skill\nid: task\n---\n# Task\n",
);
const TASK: &str =
    "---\nskill: task\nid: t1\nstatus: open\nowner: ana\n---\n# T1\n\nFirst line.\n\nLast line.\n";

fn tasks() -> (Vault, Arc<Kb>) {
    let vault = Vault::new(&[SKILL, ("t1.md", TASK)]);
    let kb = vault.open();
    (vault, kb)
}

#[test]
fn a_stale_write_is_joined_with_what_others_wrote() {
    let (vault, kb) = tasks();
    let theirs = TASK
        .replace("First line.", "First line, longer.")
        .replace("owner: ana", "owner: ben");
    assert_eq!(update(&kb, "t1.md", &theirs, Some(1)).version, 2);
    let ours = TASK
        .replace("Last line.", "Last line, too.")
        .replace("status: open", "status: done");
    let answer = update(&kb, "[[task::t1]]", &ours, Some(1));
    assert!(answer.ok && answer.auto_merged, "{answer:?}");
    assert_eq!(answer.version, 3);
    let both = vault.read("t1.md");
    for part in [
        "status: done",
        "owner: ben",
        "First line, longer.",
        "Last line, too.",
    ] {
        assert_eq!(both.matches(part).count(), 1, "{both}");
    }
    assert_eq!(text_of(&kb, "t1.md").unwrap(), both);
    verify_clean(&kb);
}

#[test]
fn one_key_with_two_values_is_a_conflict_that_changes_nothing() {
    let (vault, kb) = tasks();
    let theirs = TASK.replace("status: open", "status: done");
    update(&kb, "t1.md", &theirs, Some(1));
    let answer = update(
        &kb,
        "t1.md",
        &TASK.replace("status: open", "status: lost"),
        Some(1),
    );
    assert_eq!((answer.ok, codes(&answer)), (false, vec!["conflict"]));
    assert_eq!(answer.head_content.as_deref(), Some(&*theirs));
    assert_eq!(vault.read("t1.md"), theirs);
    let none = update(&kb, "t1.md", TASK, Some(9));
    assert_eq!(codes(&none), ["conflict"]);
    assert_eq!(page(&kb, "t1.md").unwrap().version, 2);
}

#[test]
fn only_what_cannot_stand_is_refused() {
    let (vault, kb) = tasks();
    let refused = |page_id: &str, content: &str| {
        let answer = update(&kb, page_id, content, None);
        assert!(!answer.ok && answer.version == 0, "{answer:?}");
        let first = answer
            .issues
            .iter()
            .find(|i| i.severity == escurel_md::Severity::Error);
        first.unwrap().code
    };
    assert_eq!(refused("../x.md", "x"), "page_id_invalid");
    assert_eq!(
        refused("new.md", "---\nskill: [\n---\n"),
        "frontmatter_unparsable"
    );
    assert_eq!(
        refused("new.md", "---\nskill: nothing\n---\n# N\n"),
        "unknown_skill"
    );
    assert_eq!(
        refused("new.md", "---\nskill: task\nid: t1\n---\n"),
        "duplicate_id"
    );
    assert_eq!(
        refused("t1.md", "---\nskill: task\nid: t2\n---\n"),
        "identity_changed"
    );
    assert_eq!(
        refused("new.md", "See [[task::t1#nowhere]].\n"),
        "anchor_missing"
    );
    assert_eq!(
        refused(
            "t1.md",
            &TASK.replace("id: t1", "id: t1\nlayer: base@crm@1")
        ),
        "layer_read_only"
    );
    assert!(!vault.path("new.md").exists());
    // The rest are warnings.
    let answer = update(
        &kb,
        "[[task::t2]]",
        "---\nskill: task\nid: t2\n---\nTo [[nowhere]] and [[nil::x]].\n",
        None,
    );
    assert!(answer.ok, "{answer:?}");
    assert_eq!(answer.page_id, "task/t2.md");
    assert!(codes(&answer).contains(&"link_unresolved"), "{answer:?}");
    // What was wrong before does not keep a change elsewhere from being written.
    vault.write("old.md", "To [[task::t1#nowhere]].\n");
    eventually("the file is taken up", || page(&kb, "old.md").is_some());
    assert!(update(&kb, "old.md", "To [[task::t1#nowhere]], again.\n", None).ok);
}

#[test]
fn a_place_is_changed_and_no_byte_beside_it() {
    let text = "---\r\nskill: note   # kept\r\nstatus:   open\r\n---\r\n# A\r\n\r\nOne. ^x\r\n\r\n## B\r\n\r\nTwo.\r\n";
    let vault = Vault::new(&[("a.md", text)]);
    let kb = vault.open();
    let answer = edit(
        &kb,
        "a.md",
        Edit::Key {
            key: "status".into(),
            value: Some(json!("done")),
        },
    );
    assert!(
        answer.ok && answer.diff.contains("+status:   done"),
        "{answer:?}"
    );
    let expected = text.replace("open", "done");
    assert_eq!(vault.read("a.md"), expected);
    edit(&kb, "a.md", replace(Part::Block("x".into()), "Uno."));
    edit(&kb, "a.md", replace(Part::Heading("B".into()), "Zwei."));
    edit(&kb, "a.md", replace(Part::Text("Zwei".into()), "Due"));
    let expected = expected.replace("One.", "Uno.").replace("Two.", "Due.");
    assert_eq!(vault.read("a.md"), expected);
    assert_eq!(page(&kb, "a.md").unwrap().version, 5);
    let refused = |part: Part| {
        let request = EditRequest {
            page_id: "a.md".into(),
            ..EditRequest::default()
        };
        kb.edit_page(&me(), &request, &replace(part, "x"))
            .unwrap_err()
            .code
    };
    assert_eq!(refused(Part::Heading("C".into())), Code::AnchorNotFound);
    assert_eq!(refused(Part::Text("U".repeat(9))), Code::TextNotFound);
    let stale = EditRequest {
        scenario: None,
        page_id: "a.md".into(),
        base_version: Some(1),
        dry_run: false,
    };
    let answer = kb
        .edit_page(&me(), &stale, &replace(Part::Text("Due".into()), "x"))
        .unwrap();
    assert_eq!(codes(&answer), ["conflict"]);
    let dry = EditRequest {
        scenario: None,
        page_id: "a.md".into(),
        base_version: None,
        dry_run: true,
    };
    let answer = kb
        .edit_page(&me(), &dry, &replace(Part::Text("Due".into()), "x"))
        .unwrap();
    assert!(
        answer.ok && answer.version == 6 && answer.diff.contains("-Due."),
        "{answer:?}"
    );
    assert_eq!(vault.read("a.md"), expected);
}

#[test]
fn concurrent_edits_of_different_places_all_arrive() {
    let text: String = (0..8).map(|n| format!("Slot {n}: empty.\n\n")).collect();
    let vault = Vault::new(&[("a.md", &text)]);
    let kb = vault.open();
    std::thread::scope(|scope| {
        for n in 0..8 {
            let kb = &kb;
            scope.spawn(move || {
                for round in 0..10 {
                    let old = if round == 0 {
                        "empty".into()
                    } else {
                        format!("{}", round - 1)
                    };
                    let find = Part::Text(format!("Slot {n}: {old}."));
                    assert!(edit(kb, "a.md", replace(find, &format!("Slot {n}: {round}."))).ok);
                }
            });
        }
    });
    let expected: String = (0..8).map(|n| format!("Slot {n}: 9.\n\n")).collect();
    assert_eq!(vault.read("a.md"), expected);
    assert_eq!(page(&kb, "a.md").unwrap().version, 81);
    verify_clean(&kb);
}

#[test]
fn a_deleted_page_is_gone_and_comes_back_with_its_history() {
    let (vault, kb) = tasks();
    let uid = page(&kb, "t1.md").unwrap().uid;
    update(&kb, "t1.md", &TASK.replace("First", "Quokka"), Some(1));
    let dry = kb.delete_page(&me(), "t1.md", None, true).unwrap();
    assert!(dry.ok && vault.path("t1.md").exists());
    let stale = kb.delete_page(&me(), "t1.md", Some(1), false).unwrap();
    assert_eq!(codes(&stale), ["conflict"]);
    assert!(
        kb.delete_page(&me(), "[[task::t1]]", Some(2), false)
            .unwrap()
            .ok
    );
    assert!(!vault.path("t1.md").exists());
    assert_eq!(page(&kb, "t1.md").map(|page| page.page_id), None);
    assert!(found(&kb, "Quokka").is_empty());
    verify_clean(&kb);
    let history = kb.page_history(&me(), "t1.md", 10).unwrap();
    assert_eq!(
        (history.versions.len(), history.versions[0].deleted),
        (3, true)
    );
    assert_eq!(history.versions[1].lines_added, 1);

    let back = kb
        .restore_page(&me(), "t1.md", &Then::Version(1), false)
        .unwrap();
    assert_eq!((back.ok, back.version), (true, 3));
    assert_eq!(vault.read("t1.md"), TASK);
    assert_eq!(page(&kb, "t1.md").unwrap().uid, uid);
    assert!(found(&kb, "First").contains(&"t1.md".to_owned()));
    let newest = kb.page_history(&me(), "t1.md", 1).unwrap();
    assert!(newest.more);
    assert_eq!(newest.versions[0].lines_added, TASK.lines().count());
    let (_, to, diff) = kb.diff_pages(&me(), "t1.md", 2, None).unwrap();
    assert!(
        to == 3 && diff.contains("-Quokka line.") && diff.contains("+First line."),
        "{diff}"
    );
    verify_clean(&kb);
    kb.close();
    drop(kb);
    std::fs::remove_dir_all(vault.index()).unwrap();
    let kb = vault.open();
    assert_eq!(text_of(&kb, "t1.md").unwrap(), TASK);
    assert_eq!(kb.page_history(&me(), &uid, 10).unwrap().versions.len(), 4);
}

#[test]
fn lines_are_attributed_to_who_wrote_them() {
    let (_vault, kb) = tasks();
    let ana = Caller::agent("ana", []);
    let request = UpdateRequest {
        scenario: None,
        page_id: "t1.md".into(),
        content: TASK.replace("Last line.", "Last line, by Ana."),
        base_version: Some(1),
        dry_run: false,
    };
    assert!(kb.update_page(&ana, &request).unwrap().ok);
    let lines = kb.blame_page(&me(), "t1.md").unwrap();
    let by = |text: &str| {
        lines
            .iter()
            .find(|line| line.text == text)
            .map(|line| (line.by.as_str(), line.version))
    };
    assert_eq!(by("First line."), Some(("disk", 1)));
    assert_eq!(by("Last line, by Ana."), Some(("ana", 2)));
    let back = kb
        .restore_page(&me(), "t1.md", &Then::Version(1), false)
        .unwrap();
    assert_eq!(back.version, 3);
    let unknown = kb
        .restore_page(&me(), "t1.md", &Then::Version(7), true)
        .unwrap_err();
    assert_eq!(
        (unknown.code, unknown.location.as_deref()),
        (Code::InvalidArgument, Some("version"))
    );
}

#[test]
fn an_unknown_autonomy_is_worth_what_the_operator_says() {
    const JUNK: &str = "---\ntype: skill\nid: task\nautonomy: sometimes\n---\n# Task\n";
    for (lint, ok) in [
        (AutonomyLint::Off, true),
        (AutonomyLint::Log, true),
        (AutonomyLint::Enforce, false),
    ] {
        let vault = Vault::new(&[SKILL]);
        let kb = vault.open_with(OpenOptions {
            autonomy_lint: lint,
            ..vault.options()
        });
        let answer = update(&kb, "skills/task.md", JUNK, None);
        assert_eq!(
            (answer.ok, codes(&answer)),
            (ok, vec!["frontmatter_autonomy_unknown"]),
            "{lint:?}"
        );
        assert_eq!(vault.read("skills/task.md") == JUNK, ok, "{lint:?}");
        let known = JUNK.replace("sometimes", "confirm");
        assert!(update(&kb, "skills/task.md", &known, None).ok, "{lint:?}");
    }
}
