//! The process dies at every failpoint; what was acknowledged is there.

use std::collections::HashMap;
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use escurel_store::{Env, FAILPOINTS, Failpoints, FsStore, Store, conformance::version};
use parking_lot_free::Slot;

use crate::support::{self, all};

/// A mutex that a panic elsewhere does not poison.
mod parking_lot_free {
    use std::sync::{Mutex, PoisonError};

    #[derive(Default)]
    pub struct Slot(Mutex<Option<String>>);

    impl Slot {
        pub fn set(&self, value: Option<&str>) {
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = value.map(str::to_owned);
        }

        pub fn is(&self, value: &str) -> bool {
            self.0
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .as_deref()
                == Some(value)
        }
    }
}

/// Fails at one point, until told otherwise.
#[derive(Default)]
pub struct Failing(Slot);

impl Failing {
    pub fn fail_at(&self, point: &str) {
        self.0.set(Some(point));
    }

    pub fn heal(&self) {
        self.0.set(None);
    }
}

impl Failpoints for Failing {
    fn reach(&self, point: &'static str) -> io::Result<()> {
        match self.0.is(point) {
            true => Err(io::ErrorKind::StorageFull.into()),
            false => Ok(()),
        }
    }
}

pub fn failing() -> (Env, Arc<Failing>) {
    let faults = Arc::new(Failing::default());
    (
        Env {
            failpoints: faults.clone(),
            ..support::env()
        },
        faults,
    )
}

/// Ends the process, with nothing run on the way out.
pub struct Dying {
    point: String,
    left: AtomicI64,
}

impl Dying {
    /// When the point is reached for the `count`th time.
    pub fn new(point: &str, count: i64) -> Dying {
        Dying {
            point: point.to_owned(),
            left: AtomicI64::new(count),
        }
    }
}

impl Failpoints for Dying {
    fn reach(&self, point: &'static str) -> io::Result<()> {
        if point == self.point && self.left.fetch_sub(1, Ordering::SeqCst) == 1 {
            std::process::abort();
        }
        Ok(())
    }
}

/// Small enough that each crash run fills several of both.
const SEGMENT: u64 = 3000;
const PACK: u64 = 2000;

const POINT: &str = "ESCUREL_TEST_DIE_AT";

/// Runs only in the child process of the test below.
#[test]
fn child() {
    let Ok(plan) = std::env::var(POINT) else {
        return;
    };
    let (folder, plan) = plan.split_once('|').unwrap();
    let (point, count) = plan.split_once('|').unwrap();
    let dying = Dying::new(point, count.parse().unwrap());
    let env = Env {
        failpoints: Arc::new(dying),
        ..Env::system()
    };
    let store =
        FsStore::open_small(&support::vault(Path::new(folder)), env, SEGMENT, PACK).unwrap();
    store.scan();
    for n in 0..60 {
        write_telling(&store, n, |line| {
            io::stderr().lock().write_all(line.as_bytes()).unwrap()
        });
    }
}

fn write_one(store: &FsStore, n: u64) {
    write_telling(store, n, |_| {});
}

/// The order of a real write; a line is said for each thing that is certain.
fn write_telling(store: &FsStore, n: u64, say: impl Fn(String)) {
    let path = format!("p{}.md", n % 3);
    let noise = (1..60u64).map(|k| {
        format!(
            "{:x}",
            (n + 1).wrapping_mul(k).wrapping_mul(0x9E37_79B9_7F4A_7C15)
        )
    });
    let text = format!(
        "version {n} {} {}",
        noise.collect::<String>(),
        "x".repeat(300)
    );
    let record = store
        .append(vec![version(&path, n, text.as_bytes())])
        .unwrap()
        .remove(0);
    say(format!("ack {} {text}\n", record.seq));
    let planned = store.read(&path).unwrap().map(|(bytes, _)| bytes);
    store
        .replace(&path, planned.as_deref(), text.as_bytes())
        .unwrap();
    store.flush_files().unwrap();
    store.set_applied(record.seq).unwrap();
    say(format!("applied {}\n", record.seq));
    if n % 10 == 9 {
        say(format!("erasing {}\n", record.seq));
        store.erase(&[record.content.unwrap().object]).unwrap();
        store.remove(&path, text.as_bytes()).unwrap();
    }
}

#[test]
fn nothing_acknowledged_is_lost() {
    std::thread::scope(|scope| {
        for points in FAILPOINTS.chunks(FAILPOINTS.len().div_ceil(2)) {
            scope.spawn(move || {
                for point in points {
                    for count in [1, 2, 5] {
                        die_at(point, count);
                    }
                }
            });
        }
    });
}

fn die_at(point: &str, count: u32) {
    let dir = tempfile::tempdir().unwrap();
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["crash::child", "--exact", "--nocapture"])
        .env(POINT, format!("{}|{point}|{count}", dir.path().display()))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    assert!(
        !child.status.success(),
        "{point} was not reached {count} times"
    );
    let said = String::from_utf8_lossy(&child.stderr).into_owned();
    check(dir.path(), &said, &format!("{point} {count}"));
}

fn check(folder: &Path, said: &str, at: &str) {
    let mut acked = HashMap::new();
    let (mut applied, mut erasing) = (0, Vec::new());
    for line in said.lines() {
        let mut words = line.splitn(3, ' ');
        let (verb, seq) = (
            words.next(),
            words.next().and_then(|seq| seq.parse::<u64>().ok()),
        );
        match (verb, seq) {
            (Some("ack"), Some(seq)) => drop(acked.insert(seq, words.next().unwrap().to_owned())),
            (Some("applied"), Some(seq)) => applied = seq,
            (Some("erasing"), Some(seq)) => erasing.push(seq),
            _ => {}
        }
    }
    let store = FsStore::open_small(&support::vault(folder), Env::system(), SEGMENT, PACK).unwrap();
    let records = all(&store);
    assert!(
        store.head() as usize >= acked.len() && store.head() as usize <= acked.len() + 1,
        "{at}"
    );
    assert!(store.applied() >= applied, "{at}");
    for (seq, text) in &acked {
        let record = &records[*seq as usize - 1];
        match store.object(&record.content.unwrap().object) {
            Ok(content) => assert_eq!(content, text.as_bytes(), "{at}"),
            Err(error) => assert!(
                error.code() == "content_erased" && erasing.contains(seq),
                "{at}: {error}"
            ),
        }
    }
    let report = store.verify_journal();
    assert!(report.clean(), "{at}: {:#?}", report.findings);
    pages_are_whole(folder, &store, at);
    write_one(&store, 1000);
    assert!(store.verify_journal().clean(), "{at}");
}

/// A page holds one of its versions, and nothing of ours lies beside it.
fn pages_are_whole(folder: &Path, store: &FsStore, at: &str) {
    let scan = store.scan();
    for file in &scan.files {
        let text = fs::read_to_string(folder.join(&file.path)).unwrap();
        assert!(
            text.starts_with("version ") && text.ends_with(&"x".repeat(300)),
            "{at}: {text}"
        );
    }
    for entry in fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(!name.ends_with(".tmp"), "{at}: {name}");
    }
    assert!(!folder.join(".escurel/rescued").exists(), "{at}");
}

#[test]
fn a_failed_write_leaves_nothing_and_the_next_one_works() {
    for point in FAILPOINTS {
        let dir = tempfile::tempdir().unwrap();
        let (env, faults) = failing();
        let store = FsStore::open_small(&support::vault(dir.path()), env, SEGMENT, PACK).unwrap();
        for n in 0..12 {
            write_one(&store, n);
        }
        faults.fail_at(point);
        let mut failed = false;
        for n in 0..40 {
            let head = store.head();
            match store.append(vec![version("q.md", n, b"q")]) {
                Ok(_) => assert_eq!(store.head(), head + 1),
                Err(error) => {
                    assert_eq!((store.head(), error.code()), (head, "disk_full"), "{point}");
                    failed = true;
                    break;
                }
            }
        }
        failed |= store.replace("p0.md", Some(b"?"), b"new").is_err();
        failed |= store.flush_files().is_err();
        failed |= store.remove("p0.md", b"new").is_err();
        failed |= store.set_applied(store.head()).is_err();
        failed |= store
            .erase(&[all(&store)[1].content.unwrap().object])
            .is_err();
        assert!(failed, "{point} was not reached");
        faults.heal();
        for n in 0..12 {
            write_one(&store, n);
        }
        store.scan();
        assert!(store.verify_journal().clean(), "{point}");
        drop(store);
        let store = support::open_small(dir.path());
        assert!(store.verify_journal().clean(), "{point}");
    }
}
