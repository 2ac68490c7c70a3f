//! After a repair a folder is served like any other.

use std::fs;
use std::path::Path;

use escurel_core::api::NewEvent;
use escurel_core::{Code, Kb, Put};

use crate::support::*;

/// Served and closed, with a history that has all kinds of records of pages.
fn closed() -> Vault {
    let vault = Vault::new(&[
        ("a.md", "# A\n\nquokka\n"),
        ("b.md", "# B\n\nwombat [[a]]\n"),
        ("c.md", "# C\n\ndunnart\n"),
    ]);
    let kb = vault.open();
    let put = |path, content| {
        let put = Put {
            path,
            content,
            base_version: None,
        };
        kb.put_page(&me(), &put).unwrap();
    };
    put("a.md", "# A\n\nnumbat\n");
    vault.write("a.md", "# A\n\nbilby\n");
    eventually("the edit", || found(&kb, "bilby") == ["a.md"]);
    kb.move_page(&me(), "b.md", "sub/d.md", None, false)
        .unwrap();
    put("b.md", "# B\n\nanother\n");
    kb.delete_page(&me(), "c.md", None, false).unwrap();
    put("c.md", "# C\n\nagain\n");
    let event = NewEvent {
        event_id: Some("e1".to_owned()),
        ..NewEvent::default()
    };
    kb.capture_event(&me(), &event).unwrap();
    put("a.md", "# A\n\nquoll\n");
    kb.close();
    vault
}

fn segment(vault: &Vault) -> std::path::PathBuf {
    vault.journal().join("audit/00000001.jsonl")
}

fn break_record(vault: &Vault, n: usize) {
    let text = fs::read_to_string(segment(vault)).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines[n - 1] = lines[n - 1].replacen("\"at\":\"2", "\"at\":\"3", 1);
    fs::write(segment(vault), lines.join("\n") + "\n").unwrap();
    assert_ne!(text, fs::read_to_string(segment(vault)).unwrap());
}

fn repair(vault: &Vault) -> escurel_core::api::RepairPlan {
    Kb::repair_journal(&vault.folder(), &vault.options(), &me()).unwrap()
}

fn copy_of(vault: &Vault) -> Vault {
    let copy = Vault::new(&[]);
    copy_tree(&vault.folder(), &copy.folder());
    copy
}

fn pages_of(folder: &Path) -> Vec<(&'static str, Option<String>)> {
    let read = |path| (path, fs::read_to_string(folder.join(path)).ok());
    ["a.md", "b.md", "c.md", "sub/d.md"].map(read).to_vec()
}

#[test]
fn whichever_record_is_lost_pages_say_what_their_files_say() {
    let whole = closed();
    let records = fs::read_to_string(segment(&whole)).unwrap().lines().count();
    assert!(records >= 11, "{records}");
    let files = pages_of(&whole.folder());
    for n in 1..=records {
        let vault = copy_of(&whole);
        break_record(&vault, n);
        let broken = repair(&vault).broken.unwrap();
        assert_eq!(broken.lost_records, n.to_string());
        let kb = vault.open();
        let status = kb.phase();
        assert_eq!((status.phase, status.read_only), ("ready", false), "{n}");
        eventually("agreement", || {
            kb.verify(&me()).unwrap().findings.is_empty()
        });
        assert_eq!(pages_of(&vault.folder()), files, "{n}");
        for (path, text) in &files {
            assert_eq!(&text_of(&kb, path), text, "{n}");
        }
        assert_eq!(found(&kb, "quoll"), ["a.md"], "{n}");
        kb.close();
        drop(kb);
        let report = Kb::verify_at_rest(&vault.folder(), vault.options(), &me()).unwrap();
        assert_eq!(report.findings, [], "{n}");
    }
}

#[test]
fn history_goes_on_and_edits_made_meanwhile_are_taken_up() {
    let vault = closed();
    let uid = {
        let kb = vault.open();
        let uid = page(&kb, "a.md").unwrap().uid;
        kb.close();
        uid
    };
    break_record(&vault, 2);
    let kb = vault.open();
    assert_eq!(kb.phase().phase, "read_only");
    let refused = Kb::plan_repair(&vault.folder(), &vault.options(), &me()).unwrap_err();
    assert_eq!(refused.code, Code::StoreLocked);
    assert!(refused.message.contains(&std::process::id().to_string()));
    vault.write("a.md", "# A\n\npotoroo\n");
    eventually("the edit", || found(&kb, "potoroo") == ["a.md"]);
    kb.close();
    drop(kb);
    repair(&vault);
    let kb = vault.open();
    eventually("the edit", || {
        page(&kb, "a.md").is_some_and(|page| page.version == 5)
    });
    assert_eq!(page(&kb, "a.md").unwrap().uid, uid);
    assert_eq!(vault.read("a.md"), "# A\n\npotoroo\n");
    eventually("agreement", || {
        kb.verify(&me()).unwrap().findings.is_empty()
    });
    let mut out = Vec::new();
    kb.export_journal(&me(), &mut out).unwrap();
    let out = String::from_utf8(out).unwrap();
    assert!(
        out.lines()
            .next()
            .unwrap()
            .contains("\"kind\":\"chain_repaired\"")
    );
    kb.close();
    drop(kb);
    assert_eq!(repair(&vault).broken, None);
}
