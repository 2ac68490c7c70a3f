//! Crashes between any two steps: the process really dies.

use std::process::Command;
use std::sync::Arc;

use escurel_core::{FAILPOINTS, OpenOptions, Put};
use escurel_store::{Env, Failpoints};

use crate::support::*;

/// Names the child's job: `<failpoint> <how many times it is passed first> <folder>`.
const JOB: &str = "CRASH_CHILD_JOB";
const WRITES: usize = 6;

pub struct DieAt {
    point: String,
    passes: std::sync::atomic::AtomicI64,
}

impl DieAt {
    pub fn new(point: &str, passes: i64) -> DieAt {
        DieAt {
            point: point.into(),
            passes: passes.into(),
        }
    }
}

impl Failpoints for DieAt {
    fn reach(&self, point: &'static str) -> std::io::Result<()> {
        use std::sync::atomic::Ordering;
        if point == self.point && self.passes.fetch_sub(1, Ordering::SeqCst) <= 0 {
            // As abrupt as kill -9: no destructor, no flush.
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL)
                .ok();
            std::thread::sleep(std::time::Duration::from_secs(10));
        }
        Ok(())
    }
}

fn text(n: usize) -> String {
    format!("# Page\n\nEdition edition{n} of the page.\n")
}

/// Runs in the child: writes editions, each told on stdout once it is acknowledged.
#[test]
fn child_of_the_crash_test() {
    let Ok(job) = std::env::var(JOB) else { return };
    let mut parts = job.splitn(3, ' ');
    let (point, passes, folder) = (
        parts.next().unwrap(),
        parts.next().unwrap(),
        parts.next().unwrap(),
    );
    let die = DieAt::new(point, passes.parse().unwrap());
    let env = Env {
        failpoints: Arc::new(die),
        ..Env::system()
    };
    let folder = std::path::Path::new(folder);
    let options = OpenOptions {
        env,
        cache_home: Some(folder.with_extension("cache")),
        ..OpenOptions::default()
    };
    let kb = escurel_core::Kb::open(folder, options).unwrap();
    assert!(kb.wait_ready(&mut |_| {}));
    for n in 1..=WRITES {
        kb.put_page(
            &me(),
            &Put {
                path: "page.md",
                content: &text(n),
                base_version: None,
            },
        )
        .unwrap();
        println!("ACK {n}");
        std::thread::sleep(std::time::Duration::from_millis(120));
    }
    kb.close();
    println!("CLOSED");
}

/// The child's acknowledged editions, and whether it lived to its end.
fn run_child(point: &str, passes: usize, vault: &Vault) -> (Vec<usize>, bool) {
    let job = format!("{point} {passes} {}", vault.folder().display());
    let output = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "crash::child_of_the_crash_test",
            "--nocapture",
            "--test-threads=1",
        ])
        .env(JOB, job)
        .output()
        .unwrap();
    let out = String::from_utf8_lossy(&output.stdout).into_owned();
    // The harness may print on the same line before the first acknowledgement.
    let acks = out
        .lines()
        .filter_map(|l| l.split("ACK ").nth(1)?.trim().parse().ok())
        .collect();
    (acks, out.contains("CLOSED"))
}

fn crash_and_recover(point: &str, passes: usize) {
    let vault = Vault::new(&[("page.md", &text(0)), ("other.md", "# Other\n\n[[page]]\n")]);
    let (acks, _lived) = run_child(point, passes, &vault);
    let kb = vault.open();
    let newest = acks.last().copied().unwrap_or(0);
    let now = text_of(&kb, "page.md").unwrap();
    let edition = (0..=WRITES)
        .find(|n| now == text(*n))
        .unwrap_or_else(|| panic!("{point}: a torn page {now:?}"));
    assert!(
        edition >= newest,
        "{point}/{passes}: acknowledged edition {newest} was lost, found {edition}"
    );
    assert!(
        edition <= newest + 1,
        "{point}/{passes}: edition {edition} came from nowhere"
    );
    assert_eq!(
        vault.read("page.md"),
        now,
        "{point}/{passes}: file and answer agree"
    );
    assert_eq!(
        found(&kb, &format!("edition{edition}")),
        ["page.md"],
        "{point}/{passes}"
    );
    verify_clean(&kb);
    let litter: Vec<_> = std::fs::read_dir(vault.folder())
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .filter(|n| n != ".escurel")
        .collect();
    assert_eq!(litter.len(), 2, "{point}/{passes}: {litter:?}");
}

#[test]
fn nothing_acknowledged_is_lost_whichever_step_the_process_dies_at() {
    let store = escurel_store::FAILPOINTS
        .iter()
        .filter(|p| p.starts_with("journal.before_") || p.starts_with("pages."));
    let points: Vec<&str> = FAILPOINTS.iter().chain(store).copied().collect();
    std::thread::scope(|scope| {
        for points in points.chunks(points.len().div_ceil(4)) {
            scope.spawn(move || {
                for point in points {
                    for passes in [0, 1, 4] {
                        crash_and_recover(point, passes);
                    }
                }
            });
        }
    });
}

/// Names the child's job: `<change> <failpoint> <times it is passed first> <folder>`.
const CHANGE: &str = "CRASH_CHANGE_JOB";

/// Runs in the child: changes a page of a folder that has been served before.
#[test]
fn child_of_the_change_tests() {
    let Ok(job) = std::env::var(CHANGE) else {
        return;
    };
    let [change, point, passes, folder] = job.splitn(4, ' ').collect::<Vec<_>>()[..] else {
        panic!("{job}");
    };
    let die = DieAt::new(point, passes.parse().unwrap());
    let folder = std::path::Path::new(folder);
    let options = OpenOptions {
        env: Env {
            failpoints: Arc::new(die),
            ..Env::system()
        },
        cache_home: Some(folder.with_extension("cache")),
        ..OpenOptions::default()
    };
    let kb = escurel_core::Kb::open(folder, options).unwrap();
    assert!(kb.wait_ready(&mut |_| {}));
    match change {
        "delete" => drop(kb.delete_page(&me(), "page.md", None, false).unwrap()),
        _ => drop(
            kb.move_page(&me(), "page.md", "there/name.md", None, false)
                .unwrap(),
        ),
    }
    println!("CHANGED");
}

/// Lets a child die while it changes `vault`.
fn die_while(change: &str, point: &str, passes: usize, vault: &Vault) {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "crash::child_of_the_change_tests", "--nocapture"])
        .env(
            CHANGE,
            format!("{change} {point} {passes} {}", vault.folder().display()),
        )
        .output()
        .unwrap();
    let out = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        !output.status.success() && !out.contains("CHANGED"),
        "{point}: {out}"
    );
}

#[test]
fn a_move_happens_whole_or_not_at_all_with_its_links() {
    let link = |to: &str| format!("# Link\n\nSee [[{to}]].\n");
    for (point, passes) in [
        ("core.before_append", 0),
        ("core.after_append", 0),
        ("core.after_replace", 0),
        ("core.after_remove", 0),
        ("core.after_replace", 1),
        ("core.before_publish", 0),
    ] {
        let (a, b) = (link("page"), link("page|it"));
        let vault = Vault::new(&[
            ("page.md", "# Story\n\nText.\n"),
            ("a.md", &a),
            ("b.md", &b),
        ]);
        let uid = {
            let kb = vault.open();
            let uid = page(&kb, "page.md").unwrap().uid;
            kb.close();
            uid
        };
        die_while("move", point, passes, &vault);
        let kb = vault.open();
        let moved = point != "core.before_append";
        assert_eq!(vault.path("page.md").exists(), !moved, "{point} {passes}");
        assert_eq!(
            vault.path("there/name.md").exists(),
            moved,
            "{point} {passes}"
        );
        let (path, name) = if moved {
            ("there/name.md", "name")
        } else {
            ("page.md", "page")
        };
        assert_eq!(page(&kb, path).unwrap().uid, uid, "{point} {passes}");
        assert_eq!(vault.read("a.md"), link(name), "{point} {passes}");
        assert_eq!(vault.read("b.md"), link(&format!("{name}|it")), "{point}");
        assert_eq!(text_of(&kb, "a.md").unwrap(), link(name), "{point}");
        verify_clean(&kb);
    }
}

#[test]
fn a_deletion_happens_whole_or_not_at_all_and_stays_restorable() {
    for point in [
        "core.before_append",
        "core.after_append",
        "core.after_remove",
        "core.before_publish",
    ] {
        let vault = Vault::new(&[("page.md", &text(1)), ("other.md", "[[page]]\n")]);
        vault.open().close();
        die_while("delete", point, 0, &vault);
        let kb = vault.open();
        let there = point == "core.before_append";
        assert_eq!(vault.path("page.md").exists(), there, "{point}");
        assert_eq!(text_of(&kb, "page.md"), there.then(|| text(1)), "{point}");
        verify_clean(&kb);
        let then = escurel_core::Then::Version(1);
        let back = kb.restore_page(&me(), "page.md", &then, false).unwrap();
        assert!(back.ok, "{point}: {back:?}");
        assert_eq!(vault.read("page.md"), text(1), "{point}");
        assert_eq!(
            kb.page_history(&me(), "page.md", 9).unwrap().versions.len(),
            if there { 1 } else { 3 }
        );
        verify_clean(&kb);
    }
}

/// Names the typing child's job: `<failpoint> <how many times it is passed first> <folder>`.
const TYPING: &str = "CRASH_CHILD_TYPING";

/// Runs in the child: types words into a page, each told once it is acknowledged, while the page is
/// committed and changed elsewhere now and then.
#[test]
fn child_of_the_typing_test() {
    let Ok(job) = std::env::var(TYPING) else {
        return;
    };
    let [point, passes, folder] = job.splitn(3, ' ').collect::<Vec<_>>()[..] else {
        panic!("{job}");
    };
    let die = DieAt {
        point: point.into(),
        passes: passes.parse::<i64>().unwrap().into(),
    };
    let folder = std::path::Path::new(folder);
    let options = OpenOptions {
        env: Env {
            failpoints: Arc::new(die),
            ..Env::system()
        },
        cache_home: Some(folder.with_extension("cache")),
        ..OpenOptions::default()
    };
    let kb = escurel_core::Kb::open(folder, options).unwrap();
    assert!(kb.wait_ready(&mut |_| {}));
    for round in 1..=3 {
        let request = escurel_core::OpenRequest {
            page_id: "page.md".into(),
            ..Default::default()
        };
        let opened = kb.open_session(&me(), &request).unwrap();
        let document = escurel_live::Document::load(&opened.snapshot).unwrap();
        document.write_as(round).unwrap();
        for word in ["one", "two"] {
            let before = document.version();
            let typed = format!("{}typed-{word}-{round}\n", document.text());
            document.set_text(&typed).unwrap();
            let op = document.since(&before).unwrap();
            kb.change(&me(), &opened.session, None, &op, false).unwrap();
            kb.make_durable(&opened.session).unwrap();
            println!("ACK typed-{word}-{round}");
        }
        let committed = text_of(&kb, "page.md").unwrap();
        let put = Put {
            path: "page.md",
            content: &committed.replacen("Title", &format!("Title elsewhere-{round}"), 1),
            base_version: None,
        };
        kb.put_page(&me(), &put).unwrap();
        println!("ACK elsewhere-{round}");
        assert!(kb.close_session(&me(), &opened.session, true).unwrap().ok);
        println!("ACK committed-{round}");
    }
    kb.close();
    println!("CLOSED");
}

/// The page as it is being typed.
fn typed_text(kb: &escurel_core::Kb) -> String {
    let request = escurel_core::api::ExpandRequest {
        page_id: "page.md".into(),
        ..Default::default()
    };
    kb.expand(&me(), &request).unwrap().unwrap().body
}

fn type_and_die(point: &str, passes: usize) -> bool {
    let vault = Vault::new(&[("page.md", "# Title\n\n"), ("other.md", "# Other\n")]);
    let job = format!("{point} {passes} {}", vault.folder().display());
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "crash::child_of_the_typing_test", "--nocapture"])
        .env(TYPING, job)
        .output()
        .unwrap();
    let out = String::from_utf8_lossy(&output.stdout).into_owned();
    let acks: Vec<&str> = out.lines().filter_map(|l| l.split("ACK ").nth(1)).collect();
    for start in 1..=2 {
        let kb = vault.open();
        let now = typed_text(&kb);
        for word in acks.iter().filter(|ack| !ack.starts_with("committed")) {
            let times = now.matches(word).count();
            assert_eq!(
                times, 1,
                "{point}/{passes}, start {start}, {word}: {now}\n{out}"
            );
        }
        for word in now.split_whitespace().filter(|w| w.contains('-')) {
            assert_eq!(
                now.matches(word).count(),
                1,
                "{point}/{passes}, start {start}: {now}"
            );
        }
        verify_clean(&kb);
        kb.close();
    }
    let kb = vault.open();
    let typed = typed_text(&kb);
    let request = escurel_core::OpenRequest {
        page_id: "page.md".into(),
        ..Default::default()
    };
    let opened = kb.open_session(&me(), &request).unwrap();
    let closed = kb.close_session(&me(), &opened.session, true).unwrap();
    assert!(closed.ok, "{point}/{passes}: {closed:?}");
    assert_eq!(vault.read("page.md"), typed, "{point}/{passes}");
    out.contains("CLOSED")
}

#[test]
fn nothing_that_was_typed_is_lost_or_doubled_whichever_step_the_process_dies_at() {
    let mut points: Vec<&str> = escurel_store::LIVE_FAILPOINTS.to_vec();
    points.extend([
        "core.after_append",
        "core.after_replace",
        "core.before_publish",
    ]);
    points.extend(["journal.before_record_fsync", "pages.before_exchange"]);
    std::thread::scope(|scope| {
        for points in points.chunks(points.len().div_ceil(3)) {
            scope.spawn(move || {
                for point in points {
                    let lived = [0, 1, 2, 3, 5, 8].map(|passes| type_and_die(point, passes));
                    assert!(lived.contains(&false), "{point} was never reached");
                }
            });
        }
    });
}
