//! Calls with a key: once, whatever happens between them.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use escurel_access::Caller;
use escurel_core::api::{NewEvent, UpdateRequest};
use escurel_core::{Code, Done, FAILPOINTS, Kb, OpenOptions, Refusal, Request, Result};
use escurel_store::{Env, ManualClock, MemStore, SeededIds};
use serde_json::{Value, json};

use crate::crash::DieAt;
use crate::support::*;

/// A page written with a key, as a tool does it.
fn write(kb: &Kb, caller: &Caller, key: &str, page: &str, text: &str) -> Result<String> {
    let arguments = json!({"page_id": page, "content": text});
    let request = Request {
        tool: "update_page",
        key,
        arguments: &arguments,
    };
    kb.once(caller, &request, || {
        let answer = kb.update_page(
            caller,
            &UpdateRequest {
                page_id: page.into(),
                content: text.into(),
                dry_run: false,
                ..UpdateRequest::default()
            },
        )?;
        Ok(Done {
            answer: json!({"ok": answer.ok, "page": answer.page_id, "version": answer.version})
                .to_string(),
            wrote: answer.ok,
        })
    })
}

fn versions(kb: &Kb, page: &str) -> usize {
    kb.page_history(&me(), page, 100).unwrap().versions.len()
}

#[test]
fn a_repetition_is_answered_and_writes_nothing() {
    let vault = Vault::new(&[("a.md", "# A\n\nold\n")]);
    let kb = vault.open();
    let first = write(&kb, &me(), "k1", "a.md", "# A\n\nnew\n").unwrap();
    assert!(first.contains("\"version\":2"), "{first}");
    write(&kb, &me(), "k2", "a.md", "# A\n\nnewer\n").unwrap();
    let again = write(&kb, &me(), "k1", "a.md", "# A\n\nnew\n").unwrap();
    assert_eq!(again, first);
    assert_eq!(text_of(&kb, "a.md").unwrap(), "# A\n\nnewer\n");
    assert_eq!(versions(&kb, "a.md"), 3);

    let other = write(&kb, &me(), "k1", "a.md", "# A\n\nother\n").unwrap_err();
    assert_eq!(other.code, Code::IdempotencyConflict);
    assert_eq!(other.location.as_deref(), Some("idempotency_key"));
    let somebody = Caller::agent("somebody", []);
    let theirs = write(&kb, &somebody, "k1", "a.md", "# A\n\nother\n").unwrap();
    assert!(
        theirs.contains("\"version\":4"),
        "a key is its caller's: {theirs}"
    );

    // A write that changes nothing is answered again all the same.
    let same = write(&kb, &me(), "k3", "a.md", "# A\n\nother\n").unwrap();
    write(&kb, &me(), "k4", "a.md", "# A\n\nlast\n").unwrap();
    assert_eq!(
        write(&kb, &me(), "k3", "a.md", "# A\n\nother\n").unwrap(),
        same
    );
    verify_clean(&kb);
}

#[test]
fn what_was_refused_is_tried_again() {
    let vault = Vault::new(&[]);
    let kb = vault.open();
    let broken = "---\n[\n---\n";
    for _ in 0..2 {
        let answer = write(&kb, &me(), "k", "a.md", broken).unwrap();
        assert!(answer.contains("\"ok\":false"), "{answer}");
    }
    let text = "# A\n";
    assert!(
        write(&kb, &me(), "k", "a.md", text)
            .unwrap()
            .contains("\"ok\":true")
    );
    let request = Request {
        tool: "t",
        key: "e",
        arguments: &Value::Null,
    };
    let no = || Err(Refusal::new(Code::Forbidden, "No."));
    assert_eq!(
        kb.once(&me(), &request, no).unwrap_err().code,
        Code::Forbidden
    );
    let yes = || {
        Ok(Done {
            answer: "{}".into(),
            wrote: true,
        })
    };
    assert_eq!(kb.once(&me(), &request, yes).unwrap(), "{}");
    // A write that was recorded and then refused leaves its key free; one that failed does not.
    let request = Request {
        key: "f",
        ..request
    };
    let half = |code| {
        let kb = &kb;
        move || {
            kb.capture_event(&me(), &NewEvent::default())?;
            Err(Refusal::new(code, "Half."))
        }
    };
    let refused = kb.once(&me(), &request, half(Code::Conflict));
    assert_eq!(refused.unwrap_err().code, Code::Conflict);
    assert_eq!(kb.once(&me(), &request, yes).unwrap(), "{}");
    let request = Request {
        key: "g",
        ..request
    };
    let failed = kb.once(&me(), &request, half(Code::Io));
    assert_eq!(failed.unwrap_err().code, Code::Io);
    let again = kb.once(&me(), &request, yes).unwrap_err();
    assert_eq!(again.code, Code::RequestInterrupted);
    assert!(again.message.contains("was captured"), "{again}");
    verify_clean(&kb);
}

#[test]
fn two_at_once_are_carried_out_once() {
    let vault = Vault::new(&[("a.md", "# A\n")]);
    let kb = vault.open();
    for round in 0..5 {
        let ran = AtomicUsize::new(0);
        let answers = std::thread::scope(|scope| {
            let calls: Vec<_> = (0..8)
                .map(|_| {
                    let (kb, ran) = (&kb, &ran);
                    scope.spawn(move || {
                        let request = Request {
                            tool: "capture_event",
                            key: &format!("k{round}"),
                            arguments: &json!({"n": round}),
                        };
                        kb.once(&me(), &request, || {
                            ran.fetch_add(1, Ordering::SeqCst);
                            let event = kb.capture_event(&me(), &NewEvent::default())?;
                            Ok(Done {
                                answer: event.event_id,
                                wrote: true,
                            })
                        })
                        .unwrap()
                    })
                })
                .collect();
            let answers = calls.into_iter().map(|call| call.join().unwrap());
            answers.collect::<Vec<String>>()
        });
        assert_eq!(ran.load(Ordering::SeqCst), 1);
        assert!(answers.iter().all(|answer| *answer == answers[0]));
    }
    assert_eq!(kb.list_inbox(&me(), 500, None).unwrap().events.len(), 5);
    verify_clean(&kb);
}

#[test]
fn keys_survive_restarts_and_the_loss_of_the_index() {
    let vault = Vault::new(&[("a.md", "# A\n")]);
    let kb = vault.open();
    let first = write(&kb, &me(), "k1", "a.md", "# A\n\none\n").unwrap();
    kb.close();
    drop(kb);
    for lost in ["", "tables.bin", "directory.bin", "."] {
        match lost {
            "" => {}
            "." => std::fs::remove_dir_all(vault.index()).unwrap(),
            file => std::fs::remove_file(vault.index().join(file)).unwrap(),
        }
        let kb = vault.open();
        let again = write(&kb, &me(), "k1", "a.md", "# A\n\none\n").unwrap();
        assert_eq!(again, first, "{lost}");
        assert_eq!(versions(&kb, "a.md"), 2);
        verify_clean(&kb);
        kb.close();
    }
}

#[test]
fn a_key_is_forgotten_after_a_day() {
    let clock = Arc::new(ManualClock::new(1_700_000_000_000_000));
    let env = Env {
        clock: clock.clone(),
        ids: Arc::new(SeededIds::new(7)),
        ..Env::system()
    };
    let store = Arc::new(MemStore::new(env));
    let policy = Arc::new(escurel_access::OpenPolicy);
    let kb = Kb::over(store, escurel_md::Layout::Vault, policy).unwrap();
    assert!(kb.wait_ready(&mut |_| {}));
    let first = write(&kb, &me(), "k", "a.md", "# A\n\n1\n").unwrap();
    clock.advance(23 * 3_600_000_000);
    assert_eq!(write(&kb, &me(), "k", "a.md", "# A\n\n1\n").unwrap(), first);
    clock.advance(3_600_000_000);
    let text = "# A\n\n2\n";
    assert!(
        write(&kb, &me(), "k", "a.md", text)
            .unwrap()
            .contains("\"version\":2")
    );
    verify_clean(&kb);
}

/// Names the child's job: `<failpoint> <how many times it is passed first> <folder>`.
const JOB: &str = "REQUEST_CHILD_JOB";

/// Runs in the child: writes with keys, each answer told on stdout.
#[test]
fn child_of_the_request_tests() {
    let Ok(job) = std::env::var(JOB) else { return };
    let [point, passes, folder] = job.splitn(3, ' ').collect::<Vec<_>>()[..] else {
        panic!("{job}");
    };
    let folder = std::path::Path::new(folder);
    let options = OpenOptions {
        env: Env {
            failpoints: Arc::new(DieAt::new(point, passes.parse().unwrap())),
            ..Env::system()
        },
        cache_home: Some(folder.with_extension("cache")),
        ..OpenOptions::default()
    };
    let kb = Kb::open(folder, options).unwrap();
    assert!(kb.wait_ready(&mut |_| {}));
    for n in 1..=3 {
        let answer = write(&kb, &me(), &format!("k{n}"), "a.md", &text(n)).unwrap();
        println!("\nACK {answer}");
        std::thread::sleep(std::time::Duration::from_millis(120));
    }
    kb.close();
}

fn text(n: usize) -> String {
    format!("# A\n\nText {n}.\n")
}

/// Lets a child die, repeats all of its calls and looks at what was written.
fn die_and_repeat(point: &str, passes: usize) -> usize {
    let vault = Vault::new(&[("a.md", "# A\n")]);
    vault.open().close();
    let output = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "requests::child_of_the_request_tests",
            "--nocapture",
        ])
        .env(
            JOB,
            format!("{point} {passes} {}", vault.folder().display()),
        )
        .output()
        .unwrap();
    let out = String::from_utf8_lossy(&output.stdout).into_owned();
    let answers: Vec<&str> = out.lines().filter_map(|l| l.strip_prefix("ACK ")).collect();
    let case = format!("{point}/{passes}: {out}");
    let kb = vault.open();
    let mut interrupted = 0;
    for n in 1..=3 {
        let again = write(&kb, &me(), &format!("k{n}"), "a.md", &text(n));
        match (answers.get(n - 1), again) {
            (Some(answer), again) => assert_eq!(again.unwrap(), *answer, "{case}"),
            (None, Ok(answer)) => {
                assert!(answer.contains(&format!("\"version\":{}", n + 1)), "{case}");
            }
            (None, Err(refusal)) => {
                assert_eq!(refusal.code, Code::RequestInterrupted, "{case}");
                let wrote = format!("a.md got version v{}", n + 1);
                assert!(refusal.message.contains(&wrote), "{refusal}");
                assert!(!refusal.retryable());
                interrupted += 1;
            }
        }
    }
    assert!(interrupted <= 1, "{case}");
    assert_eq!(versions(&kb, "a.md"), 4, "each was written once: {case}");
    assert_eq!(text_of(&kb, "a.md").unwrap(), text(3), "{case}");
    verify_clean(&kb);
    interrupted
}

#[test]
fn no_call_is_carried_out_twice_whichever_step_the_process_dies_at() {
    let store = escurel_store::FAILPOINTS
        .iter()
        .filter(|p| p.starts_with("journal.before_") || p.starts_with("pages."));
    let points: Vec<&str> = FAILPOINTS.iter().chain(store).copied().collect();
    let interrupted = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for points in points.chunks(points.len().div_ceil(4)) {
            let interrupted = &interrupted;
            scope.spawn(move || {
                for point in points {
                    for passes in [0, 1, 4] {
                        let met = die_and_repeat(point, passes);
                        interrupted.fetch_add(met, Ordering::SeqCst);
                    }
                }
            });
        }
    });
    assert!(
        interrupted.into_inner() > 5,
        "the crash between write and answer was met"
    );
}
