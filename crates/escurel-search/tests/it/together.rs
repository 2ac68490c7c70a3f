//! Readers and writers at once; versions given twice.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::thread;

use escurel_search::{AdmitAll, TextIndex};

use crate::{Live, ask, page, pages};

#[test]
fn a_version_given_again_replaces_the_text() {
    let index = TextIndex::in_memory();
    let old = || vec![page(1, 1, "", &["old words", "both"])];
    let new = || vec![page(1, 1, "", &["new words", "both"])];
    let check = |what: &str| {
        assert_eq!(pages(&index, "new"), [1], "{what}");
        assert!(pages(&index, "old").is_empty(), "{what}");
        assert_eq!(pages(&index, "both"), [1], "{what}");
        assert_eq!(index.docs_of(1).expect("docs"), [1], "{what}");
    };
    index.add_bulk(old()).expect("bulk");
    index.add(new());
    check("memory after bulk, before any commit");
    index.commit(0).expect("commit");
    check("that folded");
    index.forget(1, 2);
    index.commit(0).expect("commit");
    index.add(old());
    index.add(new());
    check("twice in memory");
    index.commit(1).expect("commit");
    check("folded");
    index.add(old());
    index.add(new());
    check("again over the files");
    index.commit(2).expect("commit");
    check("folded again");
    index.add_bulk(old()).expect("bulk");
    index.add_bulk(new()).expect("bulk");
    index.commit(3).expect("commit");
    check("twice in bulk");
    index.add_bulk(old()).expect("bulk");
    index.add(new());
    check("memory after bulk");
    index.commit(4).expect("commit");
    check("memory after bulk, folded");
    index.add(old());
    index.add_bulk(new()).expect("bulk");
    index.commit(5).expect("commit");
    check("bulk after memory");
    index.add(vec![
        page(1, 1, "", &["old"]),
        page(1, 1, "", &["new words", "both"]),
    ]);
    check("twice in a batch");
    assert_eq!(index.committed_seq(), 5);
}

#[test]
fn forgotten_versions_go() {
    let index = TextIndex::in_memory();
    index.add(vec![page(1, 1, "", &["one"]), page(2, 2, "", &["one"])]);
    index.commit(2).expect("commit");
    index.add(vec![page(1, 3, "", &["two"])]);
    index.forget(1, 3);
    index.forget(2, u64::MAX);
    assert_eq!(index.docs_of(1).expect("docs"), [1, 3]);
    index.commit(3).expect("commit");
    assert_eq!(index.all_docs().expect("docs"), [(1, 3)]);
    assert_eq!(index.stats().delta_docs, 0);
    index.add(vec![page(3, 4, "", &["two"])]);
    index.forget(3, 5);
    index.commit(4).expect("commit");
    assert_eq!(index.all_docs().expect("docs"), [(1, 3)]);
}

#[test]
fn a_snapshot_stays_as_it_was() {
    let index = TextIndex::in_memory();
    index.add(vec![page(1, 1, "", &["pump"])]);
    let before = index.snapshot();
    index.add(vec![page(2, 2, "", &["pump"])]);
    index.forget(1, 9);
    index.commit(2).expect("commit");
    index.settle();
    assert_eq!(ask(&before, "pump", 9, &AdmitAll).hits.len(), 1);
    assert_eq!(pages(&index, "pump"), [2]);
}

/// Pages are changed and committed while readers look: every version that was
/// acknowledged before a look is seen, once, and no other.
#[test]
fn never_doubled_never_missing() {
    const PAGES: u32 = 12;
    const ROUNDS: u64 = 60;
    let index = TextIndex::in_memory();
    let heads: Vec<AtomicU64> = (0..PAGES).map(|_| AtomicU64::new(0)).collect();
    let done = AtomicU32::new(0);
    thread::scope(|scope| {
        scope.spawn(|| {
            for seq in 1..=ROUNDS {
                for number in 0..PAGES {
                    index.add(vec![page(number, seq, "", &["pump", "tide"])]);
                    heads[number as usize].store(seq, Ordering::Release);
                }
            }
            done.fetch_add(1, Ordering::Release);
        });
        scope.spawn(|| {
            let mut seq = 0;
            while done.load(Ordering::Acquire) == 0 {
                seq += 1;
                index.commit(seq).expect("commit");
            }
        });
        for _ in 0..2 {
            scope.spawn(|| {
                while done.load(Ordering::Acquire) == 0 {
                    let heads = heads
                        .iter()
                        .map(|head| head.load(Ordering::Acquire))
                        .enumerate();
                    let live: Live = Live(
                        heads
                            .filter(|(_, seq)| *seq > 0)
                            .map(|(p, s)| (p as u32, s))
                            .collect(),
                    );
                    let hits = ask(&index.snapshot(), "pump", 100, &live).hits;
                    let mut found: Vec<u32> = hits.iter().map(|hit| hit.page).collect();
                    found.sort_unstable();
                    assert_eq!(found, live.0.keys().copied().collect::<Vec<_>>());
                }
            });
        }
    });
}
