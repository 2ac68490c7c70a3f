//! Files that are missing, cut or changed: never a panic, never an abort.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use escurel_search::{AdmitAll, Generation, OpenState, Query, SearchError, TextIndex};

use crate::{page, pages};

const STORE: Generation = Generation {
    schema_version: 1,
    id: 42,
};

fn open(dir: &Path) -> (TextIndex, u64, OpenState) {
    let opened = TextIndex::open(dir, STORE).expect("open");
    (opened.index, opened.seq, opened.state)
}

fn build(dir: &Path) {
    let (index, _, _) = open(dir);
    for seq in 1..=4u32 {
        let docs = (seq * 10..seq * 10 + 5).map(|number| {
            page(
                number,
                u64::from(seq),
                "A pump",
                &["one pump", "two tides of 潮汐"],
            )
        });
        index.add(docs.collect());
        index.forget((seq - 1) * 10, 99);
        index.commit(u64::from(seq)).expect("commit");
    }
    index.settle();
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("folder");
    for entry in fs::read_dir(from).expect("folder").flatten() {
        fs::copy(entry.path(), to.join(entry.file_name())).expect("copy");
    }
}

/// Opens and asks; the state that was found.
fn survives(dir: &Path) -> OpenState {
    let (index, _, state) = open(dir);
    let texts = ["pump tides \"two tides\"".to_string()];
    let query = Query {
        texts: &texts,
        k: 50,
        by_page: false,
        candidates: &AdmitAll,
        audience: None,
        only_page: None,
        vectors: None,
        reranker: None,
    };
    index.snapshot().search(&query).expect("an answer");
    if let OpenState::MovedAside(aside, reason) = &state {
        assert!(aside.is_dir() && !reason.is_empty());
        assert!(index.all_docs().expect("docs").is_empty());
    }
    index.add(vec![page(1, 9, "", &["pump"])]);
    index.commit(9).expect("commit");
    assert!(pages(&index, "pump").contains(&1));
    state
}

#[test]
fn files_last() {
    let dir = tempfile::tempdir().expect("folder");
    let path = dir.path().join("text");
    let (index, seq, state) = open(&path);
    assert_eq!((seq, state), (0, OpenState::Created));
    index.add(vec![page(1, 5, "", &["pump"])]);
    index.commit(5).expect("commit");
    index.add(vec![page(2, 6, "", &["pump"])]);
    drop(index);
    let (index, seq, state) = open(&path);
    assert_eq!((seq, state), (5, OpenState::Intact));
    assert_eq!(index.committed_seq(), 5);
    // What was not committed is given again, what was is not doubled.
    index.add(vec![page(1, 5, "", &["pump"]), page(2, 6, "", &["pump"])]);
    assert_eq!(pages(&index, "pump"), [1, 2]);
    index.commit(6).expect("commit");
    assert_eq!(pages(&index, "pump"), [1, 2]);
    assert!(index.stats().bytes_on_disk > 0);
}

#[test]
fn another_store_or_version_is_moved_aside() {
    let dir = tempfile::tempdir().expect("folder");
    let path = dir.path().join("text");
    for (round, id) in [1, 2, 3].into_iter().enumerate() {
        let generation = Generation {
            schema_version: 1,
            id,
        };
        let opened = TextIndex::open(&path, generation).expect("open");
        opened.index.add(vec![page(1, 1, "", &["pump"])]);
        opened.index.commit(1).expect("commit");
        match opened.state {
            OpenState::Created => assert_eq!(round, 0),
            OpenState::MovedAside(aside, _) => {
                assert_eq!(aside, dir.path().join(format!("text.damaged-{round}")));
            }
            OpenState::Intact => panic!("another store's index"),
        }
        assert_eq!(opened.seq, 0);
    }
    // The newest only.
    assert_eq!(fs::read_dir(dir.path()).expect("folder").count(), 2);
}

#[test]
fn a_second_writer_is_refused_and_harms_nothing() {
    let dir = tempfile::tempdir().expect("folder");
    let path = dir.path().join("text");
    let (index, _, _) = open(&path);
    assert!(matches!(
        TextIndex::open(&path, STORE),
        Err(SearchError::Locked)
    ));
    let other = Generation {
        schema_version: 2,
        ..STORE
    };
    assert!(matches!(
        TextIndex::open(&path, other),
        Err(SearchError::Locked)
    ));
    index.add(vec![page(1, 1, "", &["pump"])]);
    index.commit(1).expect("commit");
    let reader = index.snapshot();
    drop(index);
    assert_eq!(open(&path).2, OpenState::Intact);
    drop(reader);
}

#[test]
fn every_file_cut_changed_or_gone() {
    let dir = tempfile::tempdir().expect("folder");
    let good = dir.path().join("good");
    build(&good);
    let mut names: Vec<_> = fs::read_dir(&good).expect("folder").flatten().collect();
    names.sort_by_key(|entry| entry.file_name());
    // The cases wait for the disk: several at once.
    let aside = AtomicUsize::new(0);
    let next = AtomicUsize::new(0);
    let cases = names.len() * 4;
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                loop {
                    let case = next.fetch_add(1, Ordering::Relaxed);
                    let Some(entry) = names.get(case / 4) else {
                        return;
                    };
                    let path = dir.path().join(format!("case-{case}")).join("text");
                    copy(&good, &path);
                    damage(&path.join(entry.file_name()), case);
                    let noticed = matches!(survives(&path), OpenState::MovedAside(..));
                    aside.fetch_add(usize::from(noticed), Ordering::Relaxed);
                }
            });
        }
    });
    let aside = aside.into_inner();
    assert!(aside * 4 > cases * 3, "{aside} of {cases} were noticed");
}

/// Cuts, empties, changes or removes the file.
fn damage(file: &Path, case: usize) {
    let mut bytes = fs::read(file).expect("file");
    let at = (case / 4 * 7919 + 13) % bytes.len().max(1);
    match case % 4 {
        0 => bytes.truncate(at),
        1 => bytes.clear(),
        2 => bytes
            .iter_mut()
            .skip(at)
            .take(1)
            .for_each(|byte| *byte ^= 0x55),
        _ => return fs::remove_file(file).expect("remove"),
    }
    fs::write(file, bytes).expect("write");
}
