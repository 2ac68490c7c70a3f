//! The index may be thrown away or damaged at any time.

use std::fs;
use std::path::Path;

use escurel_core::api::*;

use crate::support::*;

/// Queries made of the corpus's own words, so that each has hits.
fn queries(vault: &Vault) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut stack = vec![vault.folder()];
    while let Some(dir) = stack.pop() {
        for item in fs::read_dir(dir).unwrap().map(|e| e.unwrap().path()) {
            if item.is_dir() && !item.ends_with(".escurel") {
                stack.push(item);
            } else if item.extension().is_some_and(|e| e == "md") {
                let text = fs::read_to_string(item).unwrap();
                words.extend(
                    text.split(|c: char| !c.is_alphanumeric())
                        .filter(|w| w.len() > 6)
                        .map(str::to_lowercase),
                );
            }
        }
    }
    words.sort();
    words.dedup();
    let step = words.len() / 200;
    (0..200)
        .map(|n| {
            format!(
                "{} {}",
                words[n * step],
                words[(n * step * 7 + 3) % words.len()]
            )
        })
        .collect()
}

/// Hits with anchors, snippets and order; scores may differ in the last digits.
fn answers(kb: &escurel_core::Kb, queries: &[String]) -> Vec<String> {
    let ask = |q: &String| {
        let request = SearchRequest {
            queries: vec![q.clone()],
            k: 10,
            ..Default::default()
        };
        let hits = kb.search(&me(), &request).unwrap().hits;
        assert!(!hits.is_empty(), "no hit for {q}");
        let hits = hits.iter().map(|h| {
            format!(
                "{} {:?} {:.4} {}",
                h.page.page_id, h.anchor, h.score, h.snippet
            )
        });
        format!("{q}: {:?}", hits.collect::<Vec<_>>())
    };
    queries.iter().map(ask).collect()
}

fn demo_vault() -> Vault {
    let vault = Vault::new(&[]);
    copy_tree(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("../../markdown"),
        &vault.folder(),
    );
    vault
}

#[test]
fn without_its_index_a_folder_gives_the_same_answers() {
    let vault = demo_vault();
    let kb = vault.open();
    // Some history first: edits, a move and a deletion.
    let page = "instances/policy/discounting.md";
    vault.write(page, vault.read(page) + "\nA line about periwinkles.\n");
    fs::rename(
        vault.path("instances/note/kashima-enquiry.md"),
        vault.path("instances/note/kashima.md"),
    )
    .unwrap();
    eventually("the edit", || found(&kb, "periwinkles").len() == 1);
    eventually("the move", || page_id(&kb, "instances/note/kashima.md"));
    let queries = queries(&vault);
    let before = (answers(&kb, &queries), everything(&kb));
    let drift = format!(
        "{:?}",
        kb.provenance_report(&me(), ReportKind::Drift, None)
            .unwrap()
    );
    let snapshots = kb.list_snapshots(&me(), page).unwrap();
    kb.close();
    drop(kb);
    fs::remove_dir_all(vault.index()).unwrap();
    let kb = vault.open();
    assert_eq!(everything(&kb), before.1);
    for (now, then) in answers(&kb, &queries).iter().zip(&before.0) {
        assert_eq!(now, then);
    }
    assert_eq!(
        format!(
            "{:?}",
            kb.provenance_report(&me(), ReportKind::Drift, None)
                .unwrap()
        ),
        drift
    );
    assert_eq!(kb.list_snapshots(&me(), page).unwrap(), snapshots);
    verify_clean(&kb);
}

fn page_id(kb: &escurel_core::Kb, id: &str) -> bool {
    page(kb, id).is_some()
}

#[test]
fn a_restart_with_an_intact_index_changes_nothing() {
    let vault = demo_vault();
    let kb = vault.open();
    let before = everything(&kb);
    let seq = kb.phase().journal_seq;
    kb.close();
    drop(kb);
    let kb = vault.open();
    assert_eq!(everything(&kb), before);
    assert_eq!(kb.phase().journal_seq, seq, "a restart writes no history");
    assert_eq!(kb.phase().warnings, [] as [String; 0]);
}

/// Every index file, cut at a few places or deleted: moved aside, rebuilt, same answers.
#[test]
fn damaged_index_files_are_rebuilt() {
    let vault = Vault::new(&[
        ("a.md", "# A\n\nquokka [[b]]\n"),
        ("b.md", "# B\n\nwombat\n"),
    ]);
    let kb = vault.open();
    let before = everything(&kb);
    kb.close();
    drop(kb);
    let pristine = vault.dir.path().join("pristine");
    copy_tree(&vault.index(), &pristine);
    let mut files = Vec::new();
    list(&pristine, &mut files);
    assert!(files.len() >= 3, "{files:?}");
    for file in files {
        let length = fs::metadata(&file).unwrap().len();
        for cut in [
            None,
            Some(0),
            Some(length / 3),
            Some(length.saturating_sub(1)),
        ] {
            fs::remove_dir_all(vault.index()).unwrap();
            copy_tree(&pristine, &vault.index());
            let victim = vault.index().join(file.strip_prefix(&pristine).unwrap());
            match cut {
                None => fs::remove_file(&victim).unwrap(),
                Some(at) => fs::File::options()
                    .write(true)
                    .open(&victim)
                    .unwrap()
                    .set_len(at)
                    .unwrap(),
            }
            let kb = vault.open();
            let what = format!("{} cut at {cut:?}", victim.display());
            assert_eq!(everything(&kb), before, "{what}");
            assert_eq!(found(&kb, "quokka"), ["a.md"], "{what}");
            verify_clean(&kb);
        }
    }
    assert_eq!(vault.read("a.md"), "# A\n\nquokka [[b]]\n");
}

fn list(dir: &Path, files: &mut Vec<std::path::PathBuf>) {
    for item in fs::read_dir(dir).unwrap().map(|e| e.unwrap().path()) {
        if item.is_dir() {
            list(&item, files)
        } else {
            files.push(item)
        }
    }
}
