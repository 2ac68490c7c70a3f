//! The journal is damaged or gone: pages are what their files say, and nobody is told otherwise.

use std::fs;

use escurel_core::{Code, Kb, Put};

use crate::support::*;

/// Served and closed: two pages, three records.
fn closed() -> Vault {
    let vault = Vault::new(&[
        ("a.md", "# A\n\nquokka\n"),
        ("b.md", "# B\n\nwombat [[a]]\n"),
    ]);
    let kb = vault.open();
    vault.write("a.md", "# A\n\nnumbat\n");
    eventually("the edit", || found(&kb, "numbat") == ["a.md"]);
    kb.close();
    vault
}

fn segment(vault: &Vault) -> std::path::PathBuf {
    vault.journal().join("audit/00000001.jsonl")
}

fn break_record(vault: &Vault, n: usize) {
    let text = fs::read_to_string(segment(vault)).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines[n - 1] = lines[n - 1].replacen("page_version", "page_versiom", 1);
    fs::write(segment(vault), lines.join("\n") + "\n").unwrap();
    assert_ne!(text, fs::read_to_string(segment(vault)).unwrap());
}

fn at_rest(vault: &Vault) -> Vec<String> {
    let report = Kb::verify_at_rest(&vault.folder(), vault.options(), &me()).unwrap();
    let told = |f: &escurel_core::api::Finding| format!("{} {}: {}", f.part, f.item, f.problem);
    report.findings.iter().map(told).collect()
}

#[test]
fn a_broken_chain_is_named_at_rest() {
    let vault = closed();
    assert_eq!(at_rest(&vault), [] as [String; 0]);
    let whole = fs::read(segment(&vault)).unwrap();
    break_record(&vault, 1);
    let found = at_rest(&vault);
    assert!(
        found
            .iter()
            .any(|f| f.contains("00000001.jsonl") && f.contains("record 1")),
        "{found:?}"
    );
    let lines: Vec<&[u8]> = whole.split_inclusive(|b| *b == b'\n').collect();
    fs::write(segment(&vault), [lines[0], lines[2]].concat()).unwrap();
    let found = at_rest(&vault);
    assert!(
        found
            .iter()
            .any(|f| f.contains("00000001.jsonl") && f.contains("record 3")),
        "{found:?}"
    );
    fs::remove_file(segment(&vault)).unwrap();
    let found = at_rest(&vault);
    assert!(
        found.iter().any(|f| f.starts_with("journal record 1")),
        "{found:?}"
    );
}

#[test]
fn with_a_broken_journal_pages_are_what_their_files_say() {
    for index in [true, false] {
        let vault = closed();
        break_record(&vault, 1);
        vault.write("a.md", "# A\n\nbilby\n");
        vault.write("c.md", "# C\n\ndunnart\n");
        if !index {
            fs::remove_dir_all(vault.index()).unwrap();
        }
        let kb = vault.open();
        assert_eq!(found(&kb, "bilby"), ["a.md"]);
        assert_eq!(found(&kb, "numbat"), [] as [String; 0]);
        assert_eq!(found(&kb, "dunnart"), ["c.md"]);
        assert_eq!(text_of(&kb, "b.md").unwrap(), "# B\n\nwombat [[a]]\n");
        let status = kb.phase();
        assert!(status.ready && status.read_only && status.phase == "read_only");
        assert!(
            status
                .warnings
                .iter()
                .any(|w| w.contains("record 1") && w.contains("backup")),
            "{:?}",
            status.warnings
        );
        vault.write("a.md", "# A\n\nquoll\n");
        eventually("an edit meanwhile", || found(&kb, "quoll") == ["a.md"]);
        let put = Put {
            path: "d.md",
            content: "# D\n",
            base_version: None,
        };
        assert_eq!(kb.put_page(&me(), &put).unwrap_err().code, Code::ReadOnly);
        assert!(!kb.verify(&me()).unwrap().findings.is_empty());
        kb.close();
        drop(kb);
        let refused = Kb::forget_index(&vault.folder(), &vault.options()).unwrap_err();
        assert_eq!(refused.code, Code::JournalBroken);
    }
}

#[test]
fn an_older_text_is_not_shown_when_the_journal_breaks_meanwhile() {
    let vault = closed();
    let kb = vault.open();
    break_record(&vault, 1);
    assert!(!kb.verify(&me()).unwrap().findings.is_empty());
    assert!(kb.readable().is_ok(), "what is held is what the files say");
    vault.write("a.md", "# A\n\nbilby\n");
    eventually("the refusal", || kb.readable().is_err());
    let refused = kb.page_text(&me(), "a.md").unwrap_err();
    assert_eq!(refused.code, Code::JournalBroken);
    let status = kb.phase();
    assert!(!status.ready && status.phase == "journal_broken");
    assert!(!kb.verify(&me()).unwrap().findings.is_empty());
    kb.close();
    drop(kb);
    let kb = vault.open();
    assert_eq!(found(&kb, "bilby"), ["a.md"]);
}

#[test]
fn without_its_journal_a_folder_begins_a_new_history() {
    let vault = closed();
    fs::remove_file(vault.path("b.md")).unwrap();
    fs::rename(vault.journal(), vault.dir.path().join("kept")).unwrap();
    let missing = at_rest(&vault);
    assert!(
        missing.iter().any(|f| f.contains("records 1 to 3")),
        "{missing:?}"
    );
    let kb = vault.open();
    let warnings = kb.phase().warnings;
    assert!(
        warnings.iter().any(|w| w.contains("new history")),
        "{warnings:?}"
    );
    assert_eq!(page(&kb, "a.md").unwrap().version, 1);
    assert_eq!(found(&kb, "wombat"), [] as [String; 0]);
    verify_clean(&kb);
    vault.write("a.md", "# A\n\nbilby\n");
    eventually("the next version", || {
        page(&kb, "a.md").unwrap().version == 2
    });
    verify_clean(&kb);
}

#[test]
fn what_changed_while_nobody_served_is_named_and_not_taken_up() {
    let vault = closed();
    let history = fs::read(segment(&vault)).unwrap();
    vault.write("a.md", "# A\n\nbilby\n");
    fs::remove_file(vault.path("b.md")).unwrap();
    vault.write("c.md", "# C\n");
    for _ in 0..2 {
        let found = at_rest(&vault);
        let named = |item: &str| {
            found
                .iter()
                .any(|f| f.starts_with(&format!("file {item}: ")))
        };
        assert!(named("a.md") && named("b.md") && named("c.md"), "{found:?}");
        assert_eq!(found.len(), 3, "{found:?}");
    }
    assert_eq!(fs::read(segment(&vault)).unwrap(), history);
    let kb = vault.open();
    eventually("adoption", || {
        found(&kb, "bilby") == ["a.md"] && page(&kb, "b.md").is_none()
    });
    verify_clean(&kb);
}

#[test]
fn a_folder_that_is_only_looked_at_stays_as_it_is() {
    let vault = Vault::new(&[("a.md", "# A\n\nquokka\n")]);
    let refused = vault.options().as_served(&vault.folder()).err().unwrap();
    assert_eq!(refused.code, Code::FolderNotServed);
    let kb = Kb::glance(&vault.folder(), vault.options()).unwrap();
    assert!(kb.wait_ready(&mut |_| {}));
    assert_eq!(found(&kb, "quokka"), ["a.md"]);
    kb.close();
    assert_eq!(fs::read_dir(vault.folder()).unwrap().count(), 1);
    vault.open().close();
    assert!(vault.options().as_served(&vault.folder()).is_ok());
}

fn warnings(kb: &Kb) -> String {
    kb.phase().notices().join("\n")
}

/// Enough records that a start does not read the first of them for its own sake.
fn long_history() -> Vault {
    let text = |n: usize| format!("# Page {n}\n\n{}\n", "word ".repeat(40));
    let vault = Vault::new(&[]);
    (0..4_000).for_each(|n| vault.write(&format!("p/{n}.md"), text(n)));
    vault.open().close();
    assert!(fs::metadata(segment(&vault)).unwrap().len() > 3 << 19);
    vault
}

#[test]
fn damage_far_back_in_history_is_noticed_at_the_next_start() {
    let vault = long_history();
    break_record(&vault, 1);
    let kb = vault.open();
    assert_eq!(kb.phase().phase, "read_only", "{}", warnings(&kb));
    assert!(warnings(&kb).contains("record 1"), "{}", warnings(&kb));
    assert!(page(&kb, "p/7.md").is_some());
    kb.close();
    drop(kb);
    let text = fs::read_to_string(segment(&vault)).unwrap();
    fs::write(
        segment(&vault),
        text.replacen("page_versiom", "page_version", 1),
    )
    .unwrap();
    let kb = vault.open();
    assert_eq!((kb.phase().phase, warnings(&kb).as_str()), ("ready", ""));
    verify_clean(&kb);
}

#[test]
fn a_pack_that_is_gone_is_told_at_the_next_start() {
    let vault = closed();
    let packs = vault.journal().join("objects");
    for file in fs::read_dir(&packs).unwrap() {
        fs::remove_file(file.unwrap().path()).unwrap();
    }
    let kb = vault.open();
    assert!(
        warnings(&kb).contains("p00000001.pack is gone"),
        "{}",
        warnings(&kb)
    );
    assert_eq!(found(&kb, "numbat"), ["a.md"]);
}

#[test]
fn a_last_record_without_its_end_costs_its_author_and_nothing_else() {
    let vault = closed();
    let kb = vault.open();
    let put = Put {
        path: "a.md",
        content: "# A\n\npotoroo\n",
        base_version: None,
    };
    kb.put_page(&me(), &put).unwrap();
    kb.close();
    drop(kb);
    let bytes = fs::read(segment(&vault)).unwrap();
    fs::write(segment(&vault), &bytes[..bytes.len() - 20]).unwrap();
    let kb = vault.open();
    assert!(warnings(&kb).contains("lost its end"), "{}", warnings(&kb));
    assert_eq!(kb.phase().phase, "ready");
    assert_eq!(text_of(&kb, "a.md").as_deref(), Some("# A\n\npotoroo\n"));
    let page = page(&kb, "a.md").unwrap();
    assert_eq!(
        (page.version, page.last_written_by.as_deref()),
        (3, Some("disk"))
    );
    kb.put_page(
        &me(),
        &Put {
            content: "# A\n\nbettong\n",
            ..put
        },
    )
    .unwrap();
    verify_clean(&kb);
}
