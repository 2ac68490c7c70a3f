//! Events: captured, listed, assigned; across restarts, crashes and rights.

use std::process::Command;
use std::sync::Arc;

use escurel_access::{Caller, EventAcl, PageFacts, Policy, Verb};
use escurel_core::api::{Event, EventStatus, NewEvent};
use escurel_core::{Code, FAILPOINTS, Kb, OpenOptions};
use escurel_store::{Env, MemStore, Store};
use parking_lot::Mutex;

use crate::crash::DieAt;
use crate::support::*;

fn new(event_id: &str) -> NewEvent {
    NewEvent {
        event_id: Some(event_id.into()),
        body: Some(format!("Body of {event_id}.")),
        ..NewEvent::default()
    }
}

fn dated(event_id: &str, at: &str) -> NewEvent {
    NewEvent {
        at: Some(at.into()),
        ..new(event_id)
    }
}

fn capture(kb: &Kb, event: &NewEvent) -> Event {
    kb.capture_event(&me(), event).unwrap()
}

fn ids(events: &[Event]) -> Vec<&str> {
    events.iter().map(|event| &*event.event_id).collect()
}

fn inbox(kb: &Kb, caller: &Caller) -> Vec<Event> {
    let page = kb.list_inbox(caller, 500, None).unwrap();
    assert_eq!(page.next_cursor, None);
    page.events
}

fn history(kb: &Kb, page_id: &str) -> Vec<Event> {
    kb.list_events(&me(), page_id, 500, None).unwrap().events
}

#[test]
fn an_event_is_stored_as_it_was_given_and_stamped() {
    let vault = Vault::new(&[("acme.md", "# Acme\n")]);
    let kb = vault.open();
    let given = NewEvent {
        event_id: Some("mail-1".into()),
        at: Some("2026-04-12T10:00:00+02:00".into()),
        source: Some("gmail".into()),
        mime: Some("text/plain".into()),
        label_skill: Some("meeting".into()),
        instance_page_id: Some("[[acme]]".into()),
        title: Some("Ünïcode".into()),
        body: Some("A body\nof lines.\0".into()),
        provenance: serde_json::json!({"captured_by": "mallory", "thread": [1, 2.5]})
            .as_object()
            .cloned(),
    };
    let event = capture(&kb, &given);
    assert_eq!(event.at, "2026-04-12T08:00:00Z");
    assert_eq!(event.status, EventStatus::Inbox);
    assert_eq!(event.instance_page_id.as_deref(), Some("acme.md"));
    assert_eq!(event.body, given.body);
    assert_eq!(
        event.provenance,
        *serde_json::json!({"captured_by": "local", "thread": [1, 2.5]})
            .as_object()
            .unwrap()
    );
    assert_eq!(inbox(&kb, &me()), std::slice::from_ref(&event));
    assert_eq!(kb.event(&me(), "mail-1").unwrap(), event);
    let again = NewEvent {
        body: Some("Another.".into()),
        ..new("mail-1")
    };
    assert_eq!(capture(&kb, &again), event, "the first writer's row");
    let unnamed = capture(&kb, &NewEvent::default());
    assert_eq!(unnamed.event_id.len(), 26);
    verify_clean(&kb);
}

fn nested(levels: usize) -> serde_json::Value {
    (0..levels).fold(serde_json::Value::Null, |inner, _| {
        serde_json::json!([inner])
    })
}

#[test]
fn what_cannot_be_kept_is_refused_by_name() {
    let kb = Kb::in_memory(&[]);
    let long = |n: usize| Some("x".repeat(n));
    let refused = |event: NewEvent, code: Code, at: &str| {
        let refusal = kb.capture_event(&me(), &event).unwrap_err();
        let location = refusal.location.as_deref();
        assert_eq!((refusal.code, location), (code, Some(at)), "{refusal}");
    };
    let bad = Code::InvalidArgument;
    refused(new(&"x".repeat(129)), bad, "event_id");
    refused(new("a\nb"), bad, "event_id");
    refused(new(" "), bad, "event_id");
    refused(dated("a", "yesterday"), Code::TimeInvalid, "at");
    for (event, at) in [
        (
            NewEvent {
                body: long((1 << 20) + 1),
                ..new("a")
            },
            "body",
        ),
        (
            NewEvent {
                title: long(1_001),
                ..new("a")
            },
            "title",
        ),
        (
            NewEvent {
                provenance: serde_json::json!({"a": "x".repeat(65_536)})
                    .as_object()
                    .cloned(),
                ..new("a")
            },
            "provenance",
        ),
        (
            NewEvent {
                provenance: Some([("a".to_owned(), nested(40))].into_iter().collect()),
                ..new("a")
            },
            "provenance",
        ),
    ] {
        refused(event, bad, at);
    }
    let deepest = NewEvent {
        provenance: Some([("a".to_owned(), nested(30))].into_iter().collect()),
        ..new("deep")
    };
    let deep = capture(&kb, &deepest);
    assert_eq!(kb.event(&me(), "deep").unwrap(), deep);
    let nowhere = NewEvent {
        instance_page_id: Some("[[nobody::none]]".into()),
        ..new("a")
    };
    refused(nowhere, Code::PageNotFound, "instance_page_id");
    let largest = NewEvent {
        body: long(1 << 20),
        ..new(&"ü".repeat(128))
    };
    capture(&kb, &largest);
    assert_eq!(inbox(&kb, &me()).len(), 2);
    for limit in [0, 501] {
        let refusal = kb.list_inbox(&me(), limit, None).unwrap_err();
        assert_eq!(refusal.code, bad);
    }
}

#[test]
fn lists_are_in_order_and_cursors_lose_nothing() {
    let kb = Kb::in_memory(&[("a.md", "# A\n"), ("b.md", "# B\n")]);
    for n in 0..600 {
        // Three of each day, days out of order.
        let day = (n * 7) % 200;
        let at = format!("2025-{:02}-{:02}", day / 28 + 1, day % 28 + 1);
        capture(&kb, &dated(&format!("e{n:03}"), &at));
    }
    let mut expected: Vec<(i64, i64, String)> = (0..600)
        .map(|n| ((n * 7) % 200, n, format!("e{n:03}")))
        .collect();
    expected.sort();
    let oldest: Vec<&str> = expected.iter().map(|(_, _, id)| &**id).collect();
    let newest: Vec<&str> = oldest.iter().rev().copied().collect();
    for limit in [1, 7, 100, 300, 500] {
        let (mut all, mut cursor) = (Vec::new(), None);
        loop {
            let page = kb.list_inbox(&me(), limit, cursor.as_deref()).unwrap();
            all.extend(page.events.into_iter().map(|event| event.event_id));
            cursor = page.next_cursor;
            if cursor.is_none() {
                break;
            }
            if limit == 1 && all.len() > 20 {
                all.extend(newest[all.len()..].iter().map(|id| (*id).to_owned()));
                break;
            }
        }
        assert_eq!(all, newest, "{limit}");
    }
    for id in &newest {
        kb.assign_event(&me(), id, "a.md").unwrap();
    }
    assert_eq!(inbox(&kb, &me()), []);
    assert_eq!(history(&kb, "b.md"), []);
    let first = kb.list_events(&me(), "a.md", 400, None).unwrap();
    let cursor = first.next_cursor.as_deref();
    let second = kb.list_events(&me(), "a.md", 400, cursor).unwrap();
    assert_eq!(second.next_cursor, None);
    let all = [ids(&first.events), ids(&second.events)].concat();
    assert_eq!(all, oldest);
    for (page, cursor) in [("b.md", cursor.unwrap()), ("a.md", "zz"), ("a.md", "ab")] {
        let refusal = kb.list_events(&me(), page, 5, Some(cursor)).unwrap_err();
        assert_eq!(refusal.code, Code::CursorInvalid, "{page} {cursor}");
    }
    let refusal = kb.list_inbox(&me(), 5, cursor).unwrap_err();
    assert_eq!(refusal.code, Code::CursorInvalid);
}

#[test]
fn a_page_of_long_events_ends_early_and_goes_on() {
    let kb = Kb::in_memory(&[]);
    for n in 0..9 {
        let event = NewEvent {
            body: Some("x".repeat(1 << 20)),
            ..new(&format!("e{n}"))
        };
        capture(&kb, &event);
    }
    let page = kb.list_inbox(&me(), 500, None).unwrap();
    assert_eq!(page.events.len(), 4);
    let rest = kb
        .list_inbox(&me(), 500, page.next_cursor.as_deref())
        .unwrap();
    assert_eq!(rest.events[0].event_id, "e4");
}

#[test]
fn of_many_who_take_one_event_one_wins_and_one_id_is_one_event() {
    let vault = Vault::new(&[("a.md", "# A\n"), ("b.md", "# B\n")]);
    let kb = vault.open();
    for round in 0..10 {
        let id = format!("e{round}");
        let wins = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for worker in 0..8 {
                let (kb, id, wins) = (&kb, &id, &wins);
                scope.spawn(move || {
                    let event = NewEvent {
                        title: Some(format!("by {worker}")),
                        ..new(id)
                    };
                    let first = capture(kb, &event);
                    assert_eq!(capture(kb, &event).title, first.title);
                    let page = ["a.md", "b.md"][worker % 2];
                    match kb.assign_event(&me(), id, page) {
                        Ok(event) => wins.lock().push(event.instance_page_id.unwrap()),
                        Err(refusal) => assert_eq!(refusal.code, Code::AlreadyAssigned),
                    }
                });
            }
        });
        let wins = wins.into_inner();
        assert_eq!(wins.len(), 1);
        let event = kb.event(&me(), &id).unwrap();
        assert_eq!(event.status, EventStatus::Processed);
        assert_eq!(event.instance_page_id.as_ref(), Some(&wins[0]));
    }
    assert_eq!(history(&kb, "a.md").len() + history(&kb, "b.md").len(), 10);
    verify_clean(&kb);
}

#[test]
fn an_event_follows_its_page_through_renames_and_deletion() {
    let vault = Vault::new(&[("acme.md", "# Acme\n"), ("other.md", "# Other\n")]);
    let kb = vault.open();
    let named = NewEvent {
        instance_page_id: Some("acme.md".into()),
        ..new("e1")
    };
    capture(&kb, &named);
    capture(&kb, &new("e2"));
    let uid = page(&kb, "acme.md").unwrap().uid;
    assert_eq!(
        kb.assign_event(&me(), "e2", &uid)
            .unwrap()
            .instance_page_id
            .as_deref(),
        Some("acme.md")
    );
    kb.move_page(&me(), "acme.md", "there/acme.md", None, false)
        .unwrap();
    let place = |kb: &Kb, id: &str| kb.event(&me(), id).unwrap().instance_page_id;
    for id in ["e1", "e2"] {
        assert_eq!(place(&kb, id).as_deref(), Some("there/acme.md"));
    }
    assert_eq!(ids(&history(&kb, "there/acme.md")), ["e2"]);
    kb.delete_page(&me(), &uid, None, false).unwrap();
    for id in ["e1", "e2"] {
        assert_eq!(
            place(&kb, id).as_deref(),
            Some("there/acme.md"),
            "last known"
        );
    }
    let refusal = kb.list_events(&me(), &uid, 5, None).unwrap_err();
    assert_eq!(refusal.code, Code::PageNotFound);
}

#[test]
fn events_survive_restarts_and_the_loss_of_their_table() {
    let vault = Vault::new(&[("a.md", "# A\n"), ("b.md", "# B\n")]);
    let kb = vault.open();
    for n in 0..50 {
        capture(&kb, &new(&format!("e{n:02}")));
        if n % 3 == 0 {
            kb.assign_event(&me(), &format!("e{n:02}"), "a.md").unwrap();
        }
    }
    let expected = (inbox(&kb, &me()), history(&kb, "a.md"));
    kb.close();
    drop(kb);
    let table = vault.index().join("tables.bin");
    let whole = std::fs::read(&table).unwrap();
    type Damage<'a> = (&'a str, Box<dyn Fn() + 'a>);
    let damages: Vec<Damage<'_>> = vec![
        ("nothing", Box::new(|| {})),
        (
            "no table",
            Box::new(|| std::fs::remove_file(&table).unwrap()),
        ),
        (
            "a cut table",
            Box::new(|| std::fs::write(&table, &whole[..whole.len() / 2]).unwrap()),
        ),
        (
            "an empty table",
            Box::new(|| std::fs::write(&table, b"").unwrap()),
        ),
        (
            "no directory",
            Box::new(|| std::fs::remove_file(vault.index().join("directory.bin")).unwrap()),
        ),
        (
            "an old table of another index",
            Box::new(|| std::fs::write(&table, &whole).unwrap()),
        ),
        (
            "no index",
            Box::new(|| std::fs::remove_dir_all(vault.index()).unwrap()),
        ),
    ];
    let saves = || table.exists();
    for (what, damage) in damages {
        damage();
        let kb = vault.open();
        assert_eq!(inbox(&kb, &me()), expected.0, "{what}");
        assert_eq!(history(&kb, "a.md"), expected.1, "{what}");
        verify_clean(&kb);
        kb.close();
        assert!(saves(), "{what}: the next start reads less");
    }
    // A table that is older than the journal.
    let kb = vault.open();
    capture(&kb, &new("late"));
    kb.close();
    drop(kb);
    let newer = std::fs::read(&table).unwrap();
    assert_ne!(newer, whole);
    let kb = vault.open();
    capture(&kb, &new("later"));
    kb.close();
    drop(kb);
    std::fs::write(&table, newer).unwrap();
    let kb = vault.open();
    assert_eq!(kb.event(&me(), "later").unwrap().event_id, "later");
    assert_eq!(inbox(&kb, &me()).len(), expected.0.len() + 2);
    verify_clean(&kb);
}

/// Names the child's job: `<failpoint> <how many times it is passed first> <folder>`.
const JOB: &str = "EVENT_CHILD_JOB";

/// Runs in the child: captures and assigns, each told on stdout once it is acknowledged.
#[test]
fn child_of_the_event_tests() {
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
    for n in 1..=4 {
        capture(&kb, &new(&format!("e{n}")));
        println!("\nACK captured e{n}");
        kb.assign_event(&me(), &format!("e{n}"), "a.md").unwrap();
        println!("\nACK assigned e{n}");
        std::thread::sleep(std::time::Duration::from_millis(150));
    }
    kb.close();
}

/// Lets a child die and looks at what it left behind.
fn die_at(point: &str, passes: usize) {
    let vault = Vault::new(&[("a.md", "# A\n")]);
    vault.open().close();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "events::child_of_the_event_tests", "--nocapture"])
        .env(
            JOB,
            format!("{point} {passes} {}", vault.folder().display()),
        )
        .output()
        .unwrap();
    let out = String::from_utf8_lossy(&output.stdout).into_owned();
    let acks = |what: &str| out.matches(&format!("ACK {what}")).count();
    let kb = vault.open();
    let (waiting, processed) = (inbox(&kb, &me()), history(&kb, "a.md"));
    let there = waiting.len() + processed.len();
    let case = format!("{point}/{passes}: {out}");
    let (captured, assigned) = (acks("captured"), acks("assigned"));
    assert!((captured..=captured + 1).contains(&there), "{case}");
    assert!(
        (assigned..=assigned + 1).contains(&processed.len()),
        "{case}"
    );
    for event in waiting.iter().chain(&processed) {
        let body = format!("Body of {}.", event.event_id);
        assert_eq!(event.body, Some(body), "{case}");
    }
    verify_clean(&kb);
}

#[test]
fn nothing_acknowledged_is_lost_and_no_event_is_half() {
    let store = escurel_store::FAILPOINTS
        .iter()
        .filter(|point| point.starts_with("journal.before_"));
    let points: Vec<&str> = FAILPOINTS.iter().chain(store).copied().collect();
    std::thread::scope(|scope| {
        for points in points.chunks(points.len().div_ceil(4)) {
            scope.spawn(move || {
                for point in points {
                    for passes in [0, 3] {
                        die_at(point, passes);
                    }
                }
            });
        }
    });
}

/// Pages of the skill `secret` are for administrators.
struct Secrets;

impl Policy for Secrets {
    fn reads_everything(&self, caller: &Caller) -> bool {
        caller.is_admin()
    }

    fn may(&self, caller: &Caller, _: Verb, page: &PageFacts<'_>) -> bool {
        caller.is_admin() || page.skill != "secret"
    }
}

fn shared(acl: EventAcl) -> (Vault, Arc<Kb>) {
    let vault = Vault::new(&[
        ("open.md", "# Open\n"),
        (
            "hidden.md",
            "---\nskill: secret\nid: hidden\n---\n# Hidden\n",
        ),
    ]);
    let kb = vault.open_with(OpenOptions {
        policy: Arc::new(Secrets),
        event_acl: acl,
        ..vault.options()
    });
    (vault, kb)
}

fn agent(name: &str) -> Caller {
    Caller::agent(name, [])
}

#[test]
fn an_event_is_its_captors_until_it_is_its_pages() {
    let (_vault, kb) = shared(EventAcl::Enforce);
    let (ann, bob) = (agent("ann"), agent("bob"));
    kb.capture_event(&ann, &new("anns")).unwrap();
    kb.capture_event(&bob, &new("bobs")).unwrap();
    let on = |id: &str, page: &str| NewEvent {
        instance_page_id: Some(page.into()),
        ..new(id)
    };
    kb.capture_event(&me(), &on("open", "open.md")).unwrap();
    kb.capture_event(&me(), &on("hidden", "hidden.md")).unwrap();
    assert_eq!(ids(&inbox(&kb, &ann)), ["open", "anns"]);
    assert_eq!(ids(&inbox(&kb, &bob)), ["open", "bobs"]);
    assert_eq!(inbox(&kb, &me()).len(), 4);
    let page = kb.list_inbox(&ann, 1, None).unwrap();
    assert!(page.next_cursor.is_some());
    let page = kb.list_inbox(&ann, 2, None).unwrap();
    assert_eq!(page.next_cursor, None, "what is hidden makes no cursor");

    let refusal = |id: &str, page: &str| kb.assign_event(&bob, id, page).unwrap_err();
    let (absent, foreign) = (refusal("nono", "open.md"), refusal("anns", "open.md"));
    assert_eq!(absent.code, Code::EventNotFound);
    let text = |refusal: &escurel_core::Refusal| format!("{refusal:?}");
    assert_eq!(text(&absent).replace("nono", "anns"), text(&foreign));
    let hidden = refusal("hidden", "open.md");
    assert_eq!(text(&absent).replace("nono", "hidden"), text(&hidden));
    let (none, secret) = (refusal("bobs", "never.md"), refusal("bobs", "hidden.md"));
    assert_eq!(text(&none).replace("never", "hidden"), text(&secret));
    let error = |page: &str| {
        let given = on("x", page);
        text(&kb.capture_event(&ann, &given).unwrap_err())
    };
    assert_eq!(
        error("never.md").replace("never", "hidden"),
        error("hidden.md")
    );
    let error = |page: &str| text(&kb.list_events(&ann, page, 5, None).unwrap_err());
    assert_eq!(
        error("never.md").replace("never", "hidden"),
        error("hidden.md")
    );

    kb.assign_event(&bob, "open", "open.md").unwrap();
    assert_eq!(
        kb.list_events(&ann, "open.md", 5, None)
            .unwrap()
            .events
            .len(),
        1
    );
    kb.assign_event(&me(), "anns", "hidden.md").unwrap();
    assert_eq!(ids(&inbox(&kb, &ann)), Vec::<&str>::new());
    assert_eq!(
        kb.event(&ann, "anns").unwrap_err().code,
        Code::EventNotFound
    );
}

#[test]
fn a_guessed_id_tells_nothing() {
    let (_vault, kb) = shared(EventAcl::Enforce);
    let (ann, bob) = (agent("ann"), agent("bob"));
    let mine = kb.capture_event(&ann, &new("guessed")).unwrap();
    let guess = NewEvent {
        body: Some("What is there?".into()),
        instance_page_id: Some("open.md".into()),
        ..dated("guessed", "2025-01-01")
    };
    let echoed = kb.capture_event(&bob, &guess).unwrap();
    let first = kb
        .capture_event(
            &bob,
            &NewEvent {
                event_id: Some("fresh".into()),
                ..guess.clone()
            },
        )
        .unwrap();
    assert_eq!(
        Event {
            event_id: "guessed".into(),
            ..first
        },
        echoed
    );
    assert_eq!(kb.capture_event(&ann, &new("guessed")).unwrap(), mine);
    assert_eq!(ids(&inbox(&kb, &me())), ["guessed", "fresh"]);
    assert_eq!(kb.event(&me(), "guessed").unwrap(), mine);
}

#[test]
fn without_the_rule_everybody_sees_events_but_not_hidden_pages() {
    for acl in [EventAcl::Off, EventAcl::Log] {
        let (_vault, kb) = shared(acl);
        let (ann, bob) = (agent("ann"), agent("bob"));
        kb.capture_event(&ann, &new("anns")).unwrap();
        let hidden = NewEvent {
            instance_page_id: Some("hidden.md".into()),
            ..new("hidden")
        };
        kb.capture_event(&me(), &hidden).unwrap();
        let seen = inbox(&kb, &bob);
        assert_eq!(ids(&seen), ["hidden", "anns"], "{acl:?}");
        assert_eq!(seen[0].instance_page_id, None);
        assert_eq!(seen[1].provenance["captured_by"], "ann");
        kb.assign_event(&bob, "anns", "open.md").unwrap();
    }
}

#[test]
fn listeners_hear_of_each_event_once_in_order_and_can_read_it() {
    let kb = Kb::in_memory(&[("a.md", "# A\n")]);
    let heard = Arc::<Mutex<Vec<(u64, String)>>>::default();
    let hears = heard.clone();
    kb.on_event(|_, captured| assert!(&*captured.event_id != "e1-3", "a listener that fails"));
    kb.on_event(move |core, captured| {
        let event = core.event(&me(), &captured.event_id).unwrap();
        hears.lock().push((captured.seq, event.body.unwrap()));
    });
    std::thread::scope(|scope| {
        for writer in 0..6 {
            let kb = &kb;
            scope.spawn(move || {
                for n in 0..20 {
                    let event = new(&format!("e{writer}-{n}"));
                    capture(kb, &event);
                    capture(kb, &event);
                }
            });
        }
    });
    kb.assign_event(&me(), "e0-0", "a.md").unwrap();
    eventually("all were told", || heard.lock().len() == 120);
    let heard = heard.lock();
    assert!(heard.windows(2).all(|two| two[0].0 < two[1].0), "{heard:?}");
}

#[test]
fn who_was_away_hears_what_still_waits() {
    let (_vault, kb) = shared(EventAcl::Enforce);
    let ann = agent("ann");
    for n in 1..=5 {
        kb.capture_event(&ann, &new(&format!("e{n}"))).unwrap();
    }
    capture(&kb, &new("e0"));
    kb.assign_event(&ann, "e3", "open.md").unwrap();
    let after = |caller: &Caller, id: &str, limit: usize| {
        let events = kb.events_after(caller, id, limit).unwrap();
        events.into_iter().map(|e| e.event_id).collect::<Vec<_>>()
    };
    assert_eq!(after(&ann, "e2", 9), ["e4", "e5"]);
    assert_eq!(
        after(&ann, "e3", 9),
        ["e4", "e5"],
        "a processed one is known"
    );
    assert_eq!(after(&me(), "e2", 9), ["e4", "e5", "e0"]);
    assert_eq!(after(&me(), "e1", 2), ["e5", "e0"], "the newest");
    assert_eq!(
        after(&ann, "e35", 9),
        ["e4", "e5"],
        "an unknown id by its place"
    );
    assert_eq!(after(&ann, "", 9), ["e1", "e2", "e4", "e5"]);
}

#[test]
fn an_erased_event_is_listed_without_its_texts() {
    let store = Arc::new(MemStore::new(Env::system()));
    let kb = Kb::over(
        store.clone(),
        escurel_md::Layout::Vault,
        Arc::new(escurel_access::OpenPolicy),
    )
    .unwrap();
    assert!(kb.wait_ready(&mut |_| {}));
    capture(&kb, &dated("e1", "2025-06-01"));
    let given = NewEvent {
        title: Some("Secret".into()),
        ..dated("e2", "2025-06-02")
    };
    capture(&kb, &given);
    let records: Vec<_> = store.records(0).map(Result::unwrap).collect();
    let last = records.last().unwrap();
    assert!(
        !format!("{last:?}").contains("Secret"),
        "no text in the chain"
    );
    store.erase(&[last.content.unwrap().object]).unwrap();
    let events = inbox(&kb, &me());
    assert_eq!(ids(&events), ["e2", "e1"]);
    assert_eq!((&events[0].title, &events[0].body), (&None, &None));
    assert_eq!(events[0].at, "2025-06-02T00:00:00Z");
    assert_eq!(events[0].provenance["captured_by"], "local");
}
