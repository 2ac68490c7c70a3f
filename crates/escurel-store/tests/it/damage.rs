//! What a crash or a bad disk leaves, and what is said about it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crossbeam_channel::{Receiver, Sender, unbounded};
use escurel_store::{Env, Failpoints, Loss, MemStore, Store, conformance::version};

use crate::support::{self, all, files, open, open_small};

fn journal(dir: &Path) -> PathBuf {
    dir.join(".escurel/journal")
}

fn fill(store: &dyn Store, count: u64) {
    for n in 0..count {
        store
            .append(vec![version("a.md", n, format!("text {n}").as_bytes())])
            .unwrap();
    }
}

#[test]
fn a_torn_tail_is_cut_at_every_byte() {
    let dir = tempfile::tempdir().unwrap();
    fill(&open(dir.path()), 4);
    let file = journal(dir.path()).join("audit/00000001.jsonl");
    let good = fs::read(&file).unwrap();
    let last = good[..good.len() - 1]
        .iter()
        .rposition(|b| *b == b'\n')
        .unwrap()
        + 1;
    for cut in last..good.len() {
        fs::write(&file, &good[..cut]).unwrap();
        let store = open(dir.path());
        assert_eq!(store.head(), 3, "cut at {cut}");
        assert_eq!(
            store.warnings().len(),
            usize::from(cut > last),
            "{:?}",
            store.warnings()
        );
        store.writable().unwrap();
        assert!(store.verify_journal().clean());
        let record = store.append(vec![version("b.md", 9, b"again")]).unwrap();
        assert_eq!(record[0].seq, 4);
        drop(store);
        assert_eq!(all(&open(dir.path())).len(), 4);
    }
}

#[test]
fn a_torn_pack_is_cut_at_every_byte() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    fill(&store, 3);
    let known = all(&store);
    drop(store);
    let pack = journal(dir.path()).join("objects/p00000001.pack");
    let index = journal(dir.path()).join("objects/p00000001.idx");
    let good = fs::read(&pack).unwrap();
    let extra = &good[..90.min(good.len())];
    for cut in 1..extra.len().min(80) {
        let _ = fs::remove_file(&index);
        fs::write(&pack, [&good[..], &extra[..cut]].concat()).unwrap();
        let store = open(dir.path());
        for record in &known {
            store.object(&record.content.unwrap().object).unwrap();
        }
        assert!(store.verify_journal().clean(), "{cut}");
        drop(store);
        assert_eq!(fs::read(&pack).unwrap().len(), good.len(), "{cut}");
    }
}

#[test]
fn a_broken_middle_stops_writes_and_is_named() {
    let dir = tempfile::tempdir().unwrap();
    fill(&open(dir.path()), 6);
    let file = journal(dir.path()).join("audit/00000001.jsonl");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replacen("\"version\":3", "\"version\":5", 1)).unwrap();
    let store = open(dir.path());
    let error = store.writable().unwrap_err();
    assert!(error.to_string().contains("record 4"), "{error}");
    assert_eq!(
        store
            .append(vec![version("a.md", 1, b"")])
            .unwrap_err()
            .code(),
        "journal_broken"
    );
    let report = store.verify_journal();
    assert_eq!(report.findings.len(), 1, "{:?}", report.findings);
    assert_eq!(report.findings[0].code, "record_changed");
    assert_eq!(report.findings[0].seq, Some(4));
    assert_eq!(report.records, 6);
    drop(store);
    assert_eq!(
        fs::read_to_string(&file).unwrap().lines().count(),
        6,
        "nothing was cut"
    );
}

#[test]
fn the_last_record_is_not_cut_when_it_was_whole() {
    let dir = tempfile::tempdir().unwrap();
    fill(&open(dir.path()), 3);
    let file = journal(dir.path()).join("audit/00000001.jsonl");
    let text = fs::read_to_string(&file)
        .unwrap()
        .replace("\"version\":2", "\"version\":1");
    fs::write(&file, &text).unwrap();
    let store = open(dir.path());
    assert_eq!(store.writable().unwrap_err().code(), "journal_broken");
    assert_eq!(fs::read_to_string(&file).unwrap(), text);
}

#[test]
fn records_that_were_applied_cannot_vanish_unnoticed() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    fill(&store, 5);
    store.set_applied(5).unwrap();
    drop(store);
    let file = journal(dir.path()).join("audit/00000001.jsonl");
    let text = fs::read_to_string(&file).unwrap();
    let shorter: Vec<&str> = text.lines().take(3).collect();
    fs::write(&file, shorter.join("\n") + "\n").unwrap();
    assert_eq!(
        open(dir.path()).writable().unwrap_err().code(),
        "journal_broken"
    );
}

#[test]
fn segments_are_sealed_and_missed() {
    let dir = tempfile::tempdir().unwrap();
    fill(&open_small(dir.path()), 60);
    let audit = journal(dir.path()).join("audit");
    let segments = files(&audit, "jsonl");
    assert!(segments.len() > 3 && files(&audit, "seal").len() >= segments.len() - 1);
    {
        let store = open_small(dir.path());
        assert_eq!(all(&store).len(), 60);
        for after in 0..60 {
            assert_eq!(store.records(after).count() as u64, 60 - after);
        }
        assert!(store.verify_journal().clean());
        fill(&store, 10);
        assert_eq!(all(&store).len(), 70);
    }
    let second = fs::read(&segments[1]).unwrap();
    let check = |code: &str, name: &str| {
        let store = open_small(dir.path());
        let report = store.verify_journal();
        let found = report.findings.iter().find(|finding| finding.code == code);
        let found = found.unwrap_or_else(|| panic!("{code}: {:?}", report.findings));
        assert!(found.file.ends_with(name), "{found}");
        assert_eq!(store.writable().unwrap_err().code(), "journal_broken");
        found.seq.unwrap()
    };
    fs::remove_file(&segments[1]).unwrap();
    let first = check("segment_missing", "00000002.jsonl");
    assert!(first > 1);
    let mut changed = second.clone();
    changed[20] ^= 1;
    fs::write(&segments[1], &changed).unwrap();
    assert_eq!(check("segment_changed", "00000002.jsonl"), first);
    assert_eq!(check("record_changed", "00000002.jsonl"), first);
    fs::write(&segments[1], &second).unwrap();
    assert!(open_small(dir.path()).verify_journal().clean());
}

#[test]
fn objects_are_missed_and_named() {
    let dir = tempfile::tempdir().unwrap();
    let store = open_small(dir.path());
    fill(&store, 80);
    let records = all(&store);
    drop(store);
    let packs = files(&journal(dir.path()).join("objects"), "pack");
    assert!(packs.len() > 1);
    let good = fs::read(&packs[0]).unwrap();
    let mut bad = good.clone();
    bad[60] ^= 1;
    fs::write(&packs[0], &bad).unwrap();
    {
        let store = open_small(dir.path());
        let report = store.verify_journal();
        assert_eq!(report.findings.len(), 1, "{:?}", report.findings);
        let finding = &report.findings[0];
        assert_eq!(
            (finding.code, finding.seq, finding.offset),
            ("pack_damaged", Some(1), Some(0))
        );
        let id = records[0].content.unwrap().object;
        assert_eq!(finding.object, Some(id));
        assert_eq!(store.object(&id).unwrap_err().code(), "object_damaged");
        assert!(store.object(&records[1].content.unwrap().object).is_ok());
        store.writable().unwrap();
    }
    fs::remove_file(&packs[0]).unwrap();
    let store = open_small(dir.path());
    let report = store.verify_journal();
    assert_eq!(report.findings[0].code, "object_missing");
    assert_eq!(report.findings[0].seq, Some(1));
    assert_eq!(
        store
            .object(&records[0].content.unwrap().object)
            .unwrap_err()
            .code(),
        "object_missing"
    );
}

#[test]
fn a_frame_with_another_objects_bytes_is_found() {
    let dir = tempfile::tempdir().unwrap();
    fill(&open(dir.path()), 2);
    let pack = journal(dir.path()).join("objects/p00000001.pack");
    let mut bytes = fs::read(&pack).unwrap();
    // Another name in the first header, its CRC made right.
    bytes[20] ^= 1;
    let stored = u32::from_le_bytes(bytes[8..12].try_into().unwrap()) as usize;
    let crc = {
        let mut crc = crc32(&bytes[4..16], 0);
        crc = crc32(&bytes[20..52 + stored], crc);
        crc
    };
    bytes[16..20].copy_from_slice(&crc.to_le_bytes());
    fs::write(&pack, &bytes).unwrap();
    let report = open(dir.path()).verify_journal();
    let codes: Vec<&str> = report.findings.iter().map(|finding| finding.code).collect();
    assert_eq!(codes, ["object_changed", "object_missing"]);
}

/// CRC-32 (IEEE), written out so that the test does not trust the store's own.
fn crc32(bytes: &[u8], start: u32) -> u32 {
    bytes.iter().fold(!start, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ (0xEDB8_8320 & (crc & 1).wrapping_neg())
        })
    }) ^ !0
}

#[test]
fn memory_forgets_what_was_not_synced() {
    let store = MemStore::new(support::env());
    fill(&store, 3);
    store.put_file("person.md", b"saved");
    store.replace("a.md", None, b"one").unwrap();
    store.flush_files().unwrap();
    store.replace("a.md", Some(b"one"), b"two").unwrap();
    store.replace("b.md", None, b"new").unwrap();
    store.remove("person.md", b"saved").unwrap();
    store.crash();
    assert_eq!(store.read("a.md").unwrap().unwrap().0, b"one");
    assert_eq!(store.read("b.md").unwrap(), None);
    assert_eq!(store.read("person.md").unwrap().unwrap().0, b"saved");
    assert_eq!((store.head(), all(&store).len()), (3, 3));
    assert!(store.verify_journal().clean());
    store
        .object(&all(&store)[2].content.unwrap().object)
        .unwrap();
}

#[test]
fn what_a_killed_process_did_not_sync_is_synced_by_the_next() {
    for point in ["journal.before_object_fsync", "journal.before_record_fsync"] {
        let pausing = Arc::new(Pausing::new(point));
        let store = MemStore::new(Env {
            failpoints: pausing.clone(),
            ..support::env()
        });
        fill(&store, 1);
        pausing.armed.store(true, Ordering::SeqCst);
        std::thread::scope(|scope| {
            scope.spawn(|| store.append(vec![version("a.md", 2, b"two")]));
            pausing.arrived.1.recv().unwrap();
            let next = store.after(Loss::Kill, support::env());
            let seen = all(&next);
            next.set_applied(next.head()).unwrap();
            let last = next.after(Loss::Power { torn: 0 }, support::env());
            last.writable().unwrap();
            assert_eq!(all(&last), seen, "{point}");
            assert!(last.verify_journal().clean(), "{point}");
            pausing.go_on.0.send(()).unwrap();
        });
    }
}

#[test]
fn memory_survives_torn_writes() {
    for point in &escurel_store::FAILPOINTS[..5] {
        for torn in [0, 1, 40, 200, 500, 100_000] {
            let pausing = Arc::new(Pausing::new(point));
            let store = MemStore::new(Env {
                failpoints: pausing.clone(),
                ..support::env()
            });
            fill(&store, 2);
            pausing.armed.store(true, Ordering::SeqCst);
            std::thread::scope(|scope| {
                let late = scope.spawn(|| store.append(vec![version("a.md", 3, b"three")]).is_ok());
                pausing.arrived.1.recv().unwrap();
                pausing.armed.store(false, Ordering::SeqCst);
                store.crash_torn(torn);
                let head = store.head();
                assert!(head == 2 || head == 3, "{point} {torn}");
                assert!(store.verify_journal().clean(), "{point} {torn}");
                fill(&store, 3);
                pausing.go_on.0.send(()).unwrap();
                late.join().unwrap();
                assert_eq!(all(&store).len() as u64, head + 3, "{point} {torn}");
                assert!(store.verify_journal().clean());
            });
        }
    }
}

/// Holds the call at one point while the world goes on.
struct Pausing {
    point: &'static str,
    armed: AtomicBool,
    arrived: (Sender<()>, Receiver<()>),
    go_on: (Sender<()>, Receiver<()>),
}

impl Pausing {
    fn new(point: &'static str) -> Self {
        Self {
            point,
            armed: AtomicBool::new(false),
            arrived: unbounded(),
            go_on: unbounded(),
        }
    }
}

impl Failpoints for Pausing {
    fn reach(&self, point: &'static str) -> std::io::Result<()> {
        if point == self.point && self.armed.load(Ordering::SeqCst) {
            self.arrived.0.send(()).unwrap();
            self.go_on.1.recv().unwrap();
        }
        Ok(())
    }
}
