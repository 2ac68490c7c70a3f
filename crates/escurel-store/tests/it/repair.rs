//! What a broken chain leaves goes on in a new one, and the broken one stays.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use escurel_store::{
    Env, FsStore, Kind, REPAIR_FAILPOINTS, Record, RepairPlan, Store, conformance::version, export,
};

use crate::crash::{Dying, failing};
use crate::support::{self, all, files, open_small};

fn journal(dir: &Path) -> PathBuf {
    dir.join(".escurel/journal")
}

fn audit(dir: &Path) -> PathBuf {
    journal(dir).join("audit")
}

fn bytes_in(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
    entries
        .map(|entry| {
            let name = entry.file_name().into_string().unwrap();
            (name, fs::read(entry.path()).unwrap())
        })
        .collect()
}

/// Some segments of records, all of them applied.
fn filled(count: u64) -> (tempfile::TempDir, Vec<Record>) {
    let dir = tempfile::tempdir().unwrap();
    let store = open_small(dir.path());
    for n in 1..=count {
        let draft = version("ä.md", n, format!("text {n}").as_bytes());
        store.append(vec![draft]).unwrap();
    }
    store.set_applied(count).unwrap();
    let records = all(&store);
    drop(store);
    fs::create_dir_all(dir.path().join(".escurel/index/text")).unwrap();
    (dir, records)
}

/// Changes the version that a record tells, and so breaks it.
fn break_record(dir: &Path, seq: u64) {
    for file in files(&audit(dir), "jsonl") {
        let text = fs::read_to_string(&file).unwrap();
        let own = format!("\"seq_id\":{seq},");
        let line = text.lines().find(|line| line.contains(&own));
        if let Some(line) = line {
            let changed = line.replacen("\"version\":", "\"version\":9", 1);
            assert_ne!(line, changed);
            fs::write(&file, text.replacen(line, &changed, 1)).unwrap();
        }
    }
}

fn repair(dir: &Path) -> RepairPlan {
    let store = open_small(dir);
    let plan = store.plan_repair().unwrap();
    store.repair(&plan, "me").unwrap();
    plan
}

/// All that a record says but its place.
fn said(record: &Record) -> Record {
    Record {
        seq: 0,
        prev_hash: [0; 32],
        entry_hash: [0; 32],
        ..record.clone()
    }
}

/// The journal is whole, and tells of a repair and then of these records.
fn goes_on(dir: &Path, expected: &[&Record]) -> Record {
    let store = open_small(dir);
    store.writable().unwrap();
    let report = store.verify_journal();
    assert!(report.clean(), "{:?}", report.findings);
    let records = all(&store);
    assert_eq!(records[0].kind, Kind::ChainRepaired);
    let now: Vec<Record> = records[1..].iter().map(said).collect();
    let then: Vec<Record> = expected.iter().map(|record| said(record)).collect();
    assert_eq!(now, then);
    for record in expected {
        store.object(&record.content.unwrap().object).unwrap();
    }
    for leftover in ["audit.new", "audit.part"] {
        assert!(!journal(dir).join(leftover).exists(), "{leftover}");
    }
    records[0].clone()
}

#[test]
fn a_whole_chain_is_left_alone() {
    let (dir, _) = filled(30);
    let before = bytes_in(&audit(dir.path()));
    let plan = repair(dir.path());
    assert_eq!(
        (plan.records, plan.missing_contents, plan.broken),
        (30, 0, None)
    );
    assert_eq!(bytes_in(&audit(dir.path())), before);
    assert_eq!(fs::read_dir(journal(dir.path())).unwrap().count(), 2);
    assert!(dir.path().join(".escurel/index/text").exists());
}

#[test]
fn a_broken_record_is_all_that_is_lost() {
    let (dir, records) = filled(30);
    break_record(dir.path(), 4);
    break_record(dir.path(), 7);
    break_record(dir.path(), 8);
    let before = bytes_in(&audit(dir.path()));
    let objects = bytes_in(&journal(dir.path()).join("objects"));
    let planned = open_small(dir.path()).plan_repair().unwrap();
    assert_eq!(
        bytes_in(&audit(dir.path())),
        before,
        "a plan changes nothing"
    );
    assert_eq!(repair(dir.path()), planned);
    let aside = journal(dir.path()).join("audit.broken-1");
    assert_eq!(bytes_in(&aside), before);
    assert_eq!(bytes_in(&journal(dir.path()).join("objects")), objects);
    assert!(!dir.path().join(".escurel/index/text").exists());
    let kept: Vec<&Record> = records
        .iter()
        .filter(|record| ![4, 7, 8].contains(&record.seq))
        .collect();
    let told = goes_on(dir.path(), &kept).note;
    assert_eq!(told["set_aside"], "audit.broken-1");
    assert_eq!(
        (&told["first_broken"], &told["lost"]),
        (&4.into(), &3.into())
    );
    assert_eq!(told["lost_records"], "4, 7-8");
    let segments: Vec<&str> = told["segments"].as_str().unwrap().split("; ").collect();
    assert_eq!(segments.len(), files(&aside, "jsonl").len());
    let first = format!(
        "00000001.jsonl records 1-{} sha256 {}",
        segments[1]
            .split(['-', ' '])
            .nth(2)
            .unwrap()
            .parse::<u64>()
            .unwrap()
            - 1,
        sha256(&before["00000001.jsonl"])
    );
    assert_eq!(segments[0], first);
    assert!(files(&audit(dir.path()), "seal").len() > 2);
    let store = open_small(dir.path());
    assert_eq!((store.head(), store.applied()), (28, 28));
    assert_eq!(
        store.append(vec![version("b.md", 1, b"")]).unwrap()[0].seq,
        29
    );
}

fn sha256(bytes: &[u8]) -> String {
    use std::io::Write;
    let child = Command::new("sha256sum")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let mut child = child.unwrap();
    child.stdin.take().unwrap().write_all(bytes).unwrap();
    let out = child.wait_with_output().unwrap().stdout;
    String::from_utf8(out[..64].to_vec()).unwrap()
}

fn edit(file: &Path, change: impl Fn(&mut Vec<Vec<u8>>)) {
    let bytes = fs::read(file).unwrap();
    let lines = bytes.split_inclusive(|b| *b == b'\n').map(<[u8]>::to_vec);
    let mut lines: Vec<Vec<u8>> = lines.collect();
    change(&mut lines);
    fs::write(file, lines.concat()).unwrap();
}

#[test]
fn whatever_breaks_a_chain_it_goes_on() {
    type Damage = fn(&[PathBuf]);
    let check = |damage: Damage, lost: &str, first: Option<u64>| {
        let (dir, records) = filled(30);
        let segments = files(&audit(dir.path()), "jsonl");
        damage(&segments);
        let before = bytes_in(&audit(dir.path()));
        let plan = repair(dir.path());
        assert_eq!(
            bytes_in(&journal(dir.path()).join("audit.broken-1")),
            before
        );
        let broken = plan.broken.unwrap();
        assert_eq!(broken.lost_records, lost, "{}", broken.problem);
        if let Some(first) = first {
            assert_eq!(broken.first, first);
        }
        let gone: Vec<u64> = lost
            .split(", ")
            .filter(|range| !range.is_empty())
            .flat_map(|range| {
                let (from, to) = range.split_once('-').unwrap_or((range, range));
                from.parse::<u64>().unwrap()..=to.parse::<u64>().unwrap()
            })
            .collect();
        assert_eq!(broken.lost, gone.len() as u64);
        let kept: Vec<&Record> = records.iter().filter(|r| !gone.contains(&r.seq)).collect();
        goes_on(dir.path(), &kept);
    };
    // A line is missing, twice there, torn with others after it, or joined with the next.
    check(|s| edit(&s[0], |lines| drop(lines.remove(2))), "3", Some(3));
    check(
        |s| edit(&s[0], |lines| lines.insert(2, lines[1].clone())),
        "",
        None,
    );
    check(|s| edit(&s[0], |lines| lines[1].truncate(40)), "2", Some(2));
    check(
        |s| edit(&s[0], |lines| *lines[1].last_mut().unwrap() = 0x8a),
        "",
        Some(2),
    );
    check(
        |s| edit(&s[0], |lines| lines.insert(1, vec![0; 300])),
        "",
        Some(2),
    );
    check(
        |s| fs::write(s[0].with_extension("seal"), "{").unwrap(),
        "",
        None,
    );
    check(
        |s| fs::remove_file(s[0].with_extension("seal")).unwrap(),
        "",
        None,
    );
    // The last one had no seal yet: the `applied` mark tells how many there were.
    check(
        |s| edit(s.last().unwrap(), |lines| drop(lines.pop())),
        "30",
        Some(30),
    );
}

#[test]
fn segments_that_are_gone_are_told_by_what_is_left() {
    let (dir, records) = filled(30);
    let segments = files(&audit(dir.path()), "jsonl");
    fs::remove_file(&segments[0]).unwrap();
    let lost = repair(dir.path()).broken.unwrap();
    let kept: Vec<&Record> = records.iter().filter(|r| r.seq > lost.lost).collect();
    assert_eq!(
        (lost.first, lost.lost_records),
        (1, format!("1-{}", lost.lost))
    );
    goes_on(dir.path(), &kept);

    let (dir, _) = filled(30);
    for segment in files(&audit(dir.path()), "jsonl") {
        fs::remove_file(segment).unwrap();
    }
    let lost = repair(dir.path()).broken.unwrap();
    assert_eq!((lost.lost, &*lost.lost_records), (30, "1-30"));
    goes_on(dir.path(), &[]);
}

#[test]
fn any_changed_byte_costs_one_record_at_most() {
    let (dir, records) = filled(30);
    let audit = audit(dir.path());
    let good = bytes_in(&audit);
    let mut repaired = 0;
    for (name, bytes) in &good {
        for at in (0..bytes.len()).step_by(131) {
            let mut bad = bytes.clone();
            bad[at] ^= 1;
            fs::write(audit.join(name), &bad).unwrap();
            let plan = repair(dir.path());
            if let Some(broken) = &plan.broken {
                assert!(
                    broken.lost <= 1 || name == "applied",
                    "{name} {at}: {broken:?}"
                );
                let store = open_small(dir.path());
                assert!(store.verify_journal().clean(), "{name} {at}");
                assert_eq!(store.head(), plan.records + 1);
                assert!(plan.records + 1 >= records.len() as u64, "{name} {at}");
                drop(store);
                fs::remove_dir_all(&audit).unwrap();
                fs::rename(journal(dir.path()).join("audit.broken-1"), &audit).unwrap();
                repaired += 1;
            }
            fs::write(audit.join(name), bytes).unwrap();
        }
    }
    assert!(repaired > 50, "{repaired}");
}

#[test]
fn a_chain_can_break_again() {
    let (dir, records) = filled(30);
    break_record(dir.path(), 2);
    repair(dir.path());
    // Its first record, so that nothing of the first repair but its folder is left.
    let first = &files(&audit(dir.path()), "jsonl")[0];
    let text = fs::read_to_string(first).unwrap();
    fs::write(
        first,
        text.replacen("\"actor\":\"me\"", "\"actor\":\"no\"", 1),
    )
    .unwrap();
    let broken = repair(dir.path()).broken.unwrap();
    assert_eq!((broken.first, &*broken.lost_records), (1, "1"));
    assert_eq!(broken.set_aside, "audit.broken-2");
    assert!(journal(dir.path()).join("audit.broken-1").is_dir());
    let kept: Vec<&Record> = records.iter().filter(|r| r.seq != 2).collect();
    goes_on(dir.path(), &kept);
}

#[test]
fn contents_that_are_missing_are_counted_and_stay_so() {
    let (dir, records) = filled(60);
    break_record(dir.path(), 1);
    let pack = &files(&journal(dir.path()).join("objects"), "pack")[0];
    fs::remove_file(pack).unwrap();
    let _ = fs::remove_file(pack.with_extension("idx"));
    let plan = repair(dir.path());
    let store = open_small(dir.path());
    let gone = records[1..]
        .iter()
        .filter(|r| store.object(&r.content.unwrap().object).is_err());
    let gone = gone.count() as u64;
    assert!(gone > 1 && plan.missing_contents == gone, "{plan:?} {gone}");
    store.writable().unwrap();
    assert_eq!(store.verify_journal().findings.len() as u64, gone);
}

#[test]
fn files_behind_their_records_are_brought_up_and_others_are_not() {
    let check = |applied: u64, broken: u64, expected: u64| {
        let (dir, _) = filled(30);
        fs::write(audit(dir.path()).join("applied"), format!("{applied}\n")).unwrap();
        break_record(dir.path(), broken);
        repair(dir.path());
        assert_eq!(open_small(dir.path()).applied(), expected);
    };
    check(28, 4, 28);
    check(3, 4, 30);
}

#[test]
fn what_a_newer_release_wrote_is_not_thrown_away() {
    let (dir, _) = filled(3);
    let file = &files(&audit(dir.path()), "jsonl")[0];
    let text = fs::read_to_string(file).unwrap();
    let mut last: serde_json::Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    last["kind"] = "page_folded".into();
    last["entry_hash"] = escurel_store::chain_hash(&last).unwrap().into();
    let text = text.lines().take(2).map(|line| format!("{line}\n"));
    let text = text.collect::<String>() + &last.to_string() + "\n";
    fs::write(file, &text).unwrap();
    let store = open_small(dir.path());
    assert!(store.writable().is_err());
    assert_eq!(store.plan_repair().unwrap_err().code(), "not_supported");
    assert_eq!(fs::read_to_string(file).unwrap(), text);
}

#[test]
fn an_outside_verifier_accepts_a_repaired_chain() {
    let (dir, _) = filled(30);
    break_record(dir.path(), 9);
    repair(dir.path());
    let mut out = Vec::new();
    export(&open_small(dir.path()), &mut out).unwrap();
    let events = korg_verify::load_events(&String::from_utf8(out).unwrap()).unwrap();
    let verdict = korg_verify::verify_journal(&events, None);
    assert!(verdict.valid, "{:?}", verdict.errors);
    assert_eq!(verdict.event_count, 30);
    assert!(korg_ledger::verify_dag(&events).is_empty());
}

/// What a repair reaches, those of writing a chain included.
fn points() -> impl Iterator<Item = (&'static str, u32)> {
    let chain = [
        ("journal.before_record_write", 1),
        ("journal.before_record_fsync", 3),
        ("journal.before_ack", 2),
        ("journal.before_seal", 2),
        ("journal.before_applied_write", 1),
    ];
    chain
        .into_iter()
        .chain(REPAIR_FAILPOINTS.iter().map(|point| (*point, 1)))
}

const POINT: &str = "ESCUREL_TEST_DIE_REPAIRING_AT";

/// Runs only in the child process of the test below.
#[test]
fn child() {
    let Ok(plan) = std::env::var(POINT) else {
        return;
    };
    let mut plan = plan.split('|');
    let mut next = || plan.next().unwrap();
    let (folder, point, count) = (next(), next(), next().parse().unwrap());
    let env = Env {
        failpoints: Arc::new(Dying::new(point, count)),
        ..Env::system()
    };
    let store = FsStore::open_small(&support::vault(Path::new(folder)), env, 3000, 5000).unwrap();
    let plan = store.plan_repair().unwrap();
    store.repair(&plan, "me").unwrap();
}

#[test]
fn a_repair_that_dies_leaves_one_of_the_chains() {
    for (point, count) in points() {
        let (dir, records) = filled(30);
        break_record(dir.path(), 4);
        let before = bytes_in(&audit(dir.path()));
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["repair::child", "--exact"])
            .env(POINT, format!("{}|{point}|{count}", dir.path().display()))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .unwrap();
        assert!(!child.success(), "{point} was not reached {count} times");
        one_of_the_chains(dir.path(), &records, &before, point);
    }
}

#[test]
fn a_repair_that_fails_leaves_one_of_the_chains() {
    for (point, _) in points() {
        let (dir, records) = filled(30);
        break_record(dir.path(), 4);
        let before = bytes_in(&audit(dir.path()));
        let (env, faults) = failing();
        let store = FsStore::open_small(&support::vault(dir.path()), env, 3000, 5000).unwrap();
        let plan = store.plan_repair().unwrap();
        faults.fail_at(point);
        let error = store.repair(&plan, "me").unwrap_err();
        assert_eq!(error.code(), "disk_full", "{point}");
        one_of_the_chains(dir.path(), &records, &before, point);
    }
}

fn one_of_the_chains(
    dir: &Path,
    records: &[Record],
    before: &BTreeMap<String, Vec<u8>>,
    point: &str,
) {
    let store = open_small(dir);
    match store.writable() {
        Ok(()) => assert_eq!(store.head(), 30, "{point}"),
        Err(error) => {
            assert_eq!(error.code(), "journal_broken", "{point}");
            assert_eq!(&bytes_in(&audit(dir)), before, "{point}");
        }
    }
    drop(store);
    repair(dir);
    let aside = bytes_in(&journal(dir).join("audit.broken-1"));
    assert_eq!(&aside, before, "{point}");
    assert!(!journal(dir).join("audit.broken-2").exists(), "{point}");
    let kept: Vec<&Record> = records.iter().filter(|r| r.seq != 4).collect();
    goes_on(dir, &kept);
}
