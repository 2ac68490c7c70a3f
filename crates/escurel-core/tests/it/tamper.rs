//! Whatever is changed behind the system's back is named by `verify`.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use crate::support::*;

fn served() -> (Vault, std::sync::Arc<escurel_core::Kb>) {
    let vault = Vault::new(&[("a.md", "# A\n\nquokka\n"), ("b.md", "# B\n\n[[a]]\n")]);
    let kb = vault.open();
    verify_clean(&kb);
    (vault, kb)
}

fn findings(kb: &escurel_core::Kb) -> Vec<String> {
    let report = kb.verify(&me()).unwrap();
    report
        .findings
        .into_iter()
        .map(|f| format!("{} {}: {}", f.part, f.item, f.problem))
        .collect()
}

fn one(dir: PathBuf, ending: &str) -> PathBuf {
    let mut files: Vec<_> = fs::read_dir(dir)
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    files.retain(|p| p.to_string_lossy().ends_with(ending));
    files.remove(0)
}

fn flip(file: &PathBuf, at: u64) {
    let file = fs::File::options()
        .read(true)
        .write(true)
        .open(file)
        .unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 1], at).unwrap();
}

#[test]
fn a_changed_chain_byte_is_named_by_its_record() {
    let (vault, kb) = served();
    let segment = one(vault.journal().join("audit"), ".jsonl");
    let text = fs::read_to_string(&segment).unwrap();
    flip(&segment, text.find("adopted").unwrap() as u64);
    let found = findings(&kb);
    assert!(
        found
            .iter()
            .any(|f| f.starts_with("journal") && f.contains("record 1")),
        "{found:?}"
    );
}

#[test]
fn a_missing_segment_is_named() {
    let (vault, kb) = served();
    fs::remove_file(one(vault.journal().join("audit"), ".jsonl")).unwrap();
    let found = findings(&kb);
    assert!(
        found
            .iter()
            .any(|f| f.starts_with("journal records 1 to 2")),
        "{found:?}"
    );
}

#[test]
fn a_changed_object_is_named() {
    let (vault, kb) = served();
    let pack = one(vault.journal().join("objects"), ".pack");
    let length = fs::metadata(&pack).unwrap().len();
    flip(&pack, length - 2);
    let found = findings(&kb);
    assert!(
        found
            .iter()
            .any(|f| f.starts_with("object") && f.contains("object ")),
        "{found:?}"
    );
}

#[test]
fn a_changed_file_is_named_until_it_is_taken_up() {
    let (vault, kb) = served();
    kb.close();
    vault.write("a.md", "# A\n\nchanged behind\n");
    let found = findings(&kb);
    assert!(
        found.iter().any(|f| f.starts_with("file a.md")),
        "{found:?}"
    );
}
