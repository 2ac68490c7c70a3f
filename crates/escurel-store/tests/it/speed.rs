//! Figures, printed by `cargo test --release -p escurel-store speed -- --ignored --nocapture`.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use escurel_store::{Draft, Store, conformance::version};

use crate::support::open;

fn corpus() -> Option<PathBuf> {
    std::env::var_os("ESCUREL_BENCH_CORPUS")
        .map(PathBuf::from)
        .filter(|path| path.is_dir())
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn page() -> Vec<u8> {
    let words =
        (0u64..1200).map(|n| format!("w{:x} ", n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 48));
    words.collect::<String>().into_bytes()[..4000].to_vec()
}

#[test]
#[ignore = "prints figures"]
fn appends() {
    let dir = tempfile::tempdir().unwrap();
    let page = page();
    let mut file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(dir.path().join("bare"))
        .unwrap();
    let bare = median(
        (0..300)
            .map(|_| {
                timed(|| {
                    file.write_all(&page).unwrap();
                    file.sync_data().unwrap();
                })
            })
            .collect(),
    );
    let store = open(dir.path());
    let one =
        (0..300).map(|n| timed(|| drop(store.append(vec![version("a.md", n, &page)]).unwrap())));
    let one = median(one.collect());
    println!("\nbare fdatasync p50 {bare:?}, append of 4 kB p50 {one:?}");
    let rate = |writers: u64| {
        let start = Instant::now();
        std::thread::scope(|scope| {
            for _ in 0..writers {
                scope.spawn(|| {
                    (0..200)
                        .for_each(|n| drop(store.append(vec![version("a.md", n, &page)]).unwrap()))
                });
            }
        });
        writers as f64 * 200.0 / start.elapsed().as_secs_f64()
    };
    let (single, eight) = (rate(1), rate(8));
    println!(
        "1 writer {single:.0}/s, 8 writers {eight:.0}/s, {:.1} times",
        eight / single
    );
}

fn timed(f: impl FnOnce()) -> Duration {
    let start = Instant::now();
    f();
    start.elapsed()
}

#[test]
#[ignore = "prints figures"]
fn corpus_in_place() {
    let Some(corpus) = corpus() else { return };
    let state = tempfile::tempdir().unwrap();
    let copy = state.path().join("vault");
    copy_tree(&corpus, &copy);
    let store = open(&copy);
    for _ in 0..3 {
        shown("scan", || drop(store.scan()));
    }
    let files = store.scan().files;
    let mut contents = Vec::new();
    shown("read of all", || {
        contents.extend(
            files
                .iter()
                .map(|file| store.read(&file.path).unwrap().unwrap().0),
        );
    });
    println!(
        "{} files, {} bytes",
        files.len(),
        contents.iter().map(Vec::len).sum::<usize>()
    );
    let drafts: Vec<Draft> = files
        .iter()
        .zip(&contents)
        .map(|(file, content)| version(&file.path, 1, content))
        .collect();
    shown("append of all in chunks of 2000", || {
        drafts
            .chunks(2000)
            .for_each(|chunk| drop(store.append(chunk.to_vec()).unwrap()));
    });
    let mut records = Vec::new();
    shown("records", || {
        records.extend(store.records(0).map(Result::unwrap))
    });
    shown("last ten records", || {
        assert_eq!(store.records(store.head() - 10).count(), 10)
    });
    shown("objects", || {
        records
            .iter()
            .for_each(|record| drop(store.object(&record.content.unwrap().object).unwrap()));
    });
    shown("verify", || assert!(store.verify_journal().clean()));
    drop(store);
    let mut store = None;
    shown("open", || store = Some(open(&copy)));
    let store = store.unwrap();
    println!("journal {} bytes", size(&copy.join(".escurel/journal")));
    shown("first object", || {
        drop(store.object(&records[0].content.unwrap().object).unwrap())
    });
    drop(store);
    fs::remove_file(copy.join(".escurel/journal/objects/p00000001.idx")).unwrap();
    shown("open after a crash", || drop(open(&copy)));
}

/// Wall time and the process's processor time.
fn shown(what: &str, f: impl FnOnce()) {
    let before = cpu();
    let wall = timed(f);
    println!("{what}: {wall:.1?} wall, {:?} cpu", cpu() - before);
}

fn cpu() -> Duration {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat[stat.rfind(')').unwrap()..].split(' ').collect();
    let ticks: u64 = fields[12].parse::<u64>().unwrap() + fields[13].parse::<u64>().unwrap();
    Duration::from_millis(ticks * 10)
}

fn copy_tree(from: &Path, to: &Path) {
    let status = std::process::Command::new("cp")
        .arg("-r")
        .arg(from)
        .arg(to)
        .status()
        .unwrap();
    assert!(status.success());
}

fn size(folder: &Path) -> u64 {
    fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| match entry.file_type().unwrap().is_dir() {
            true => size(&entry.path()),
            false => entry.metadata().unwrap().len(),
        })
        .sum()
}
