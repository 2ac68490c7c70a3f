//! Pages edited live: sessions, outside changes, restarts.

use std::sync::Arc;

use escurel_core::api::*;
use escurel_core::{Hello, Kb, Listener, OpenRequest, Put, Said};
use escurel_live::Document;
use parking_lot::Mutex;

use crate::support::*;

/// A client with a document of its own.
struct Client {
    session: String,
    lineage: String,
    document: Document,
    peer: u64,
    heard: Arc<Heard>,
}

#[derive(Default)]
struct Heard {
    ops: Mutex<Vec<Vec<u8>>>,
    other: Mutex<Vec<String>>,
}

impl Listener for Heard {
    fn wants_text(&self) -> bool {
        true
    }

    fn hear(&self, said: &Said) {
        match said {
            Said::Op { op, text, .. } => {
                assert!(text.is_some());
                self.ops.lock().push(op.to_vec());
            }
            other => self.other.lock().push(format!("{other:?}")),
        }
    }
}

fn open(kb: &Kb, page_id: &str, peer: u64) -> Client {
    let request = OpenRequest {
        page_id: page_id.into(),
        ..OpenRequest::default()
    };
    let opened = kb.open_session(&me(), &request).unwrap();
    let client = Client {
        document: Document::load(&opened.snapshot).unwrap(),
        session: opened.session,
        lineage: opened.lineage,
        peer: 0,
        heard: Arc::default(),
    };
    client.attached(kb).with_peer(peer)
}

impl Client {
    fn attached(mut self, kb: &Kb) -> Client {
        let hello = Hello {
            session: self.session.clone(),
            lineage: Some(self.lineage.clone()),
            have: Some(self.document.version()),
        };
        self.heard = Arc::default();
        let attached = kb.attach(&me(), &hello, self.heard.clone()).unwrap();
        self.document.import(&attached.update).unwrap();
        self.peer = attached.peer;
        self
    }

    fn with_peer(self, peer: u64) -> Client {
        self.document.write_as(peer).unwrap();
        self
    }

    /// Changes its own document; what others need.
    fn types(&self, from: &str, to: &str) -> Vec<u8> {
        let before = self.document.version();
        let text = self.document.text();
        assert!(text.contains(from), "{text}");
        self.document.set_text(&text.replacen(from, to, 1)).unwrap();
        self.document.since(&before).unwrap()
    }

    fn sends(&self, kb: &Kb, op: &[u8]) -> ChangeAck {
        let ack = kb
            .change(&me(), &self.session, Some(self.peer), op, true)
            .unwrap();
        kb.make_durable(&self.session).unwrap();
        ack
    }

    fn listens(&self) -> String {
        for op in self.heard.ops.lock().drain(..) {
            self.document.import(&op).unwrap();
        }
        self.document.text()
    }
}

fn live(kb: &Kb, page_id: &str) -> Expanded {
    let request = ExpandRequest {
        page_id: page_id.into(),
        ..ExpandRequest::default()
    };
    kb.expand(&me(), &request).unwrap().unwrap()
}

const PAGE: &str = "# Plan\n\none 🛶\n\ntwo\n\nthree\n";

#[test]
fn two_sessions_write_one_version_with_the_words_of_both() {
    let vault = Vault::new(&[("plan.md", PAGE)]);
    let kb = vault.open();
    let (ann, bob) = (open(&kb, "plan.md", 11), open(&kb, "plan.md", 12));
    assert_eq!(ann.lineage, bob.lineage);
    let (a, b) = (ann.types("🛶", "🛶é ann"), bob.types("three", "THREE"));
    assert_eq!(ann.sends(&kb, &a).merged_version, 2);
    let ack = bob.sends(&kb, &b);
    let both = "# Plan\n\none 🛶é ann\n\ntwo\n\nTHREE\n";
    assert_eq!(ack.text.as_deref(), Some(both));
    assert_eq!((ann.listens(), bob.listens()), (both.into(), both.into()));

    let shown = live(&kb, "plan.md");
    assert!(shown.page.uncommitted && shown.body.contains("ann") && shown.page.version == 1);
    assert!(found(&kb, "ann").is_empty(), "search sees commits");
    assert_eq!(vault.read("plan.md"), PAGE);
    let authors = kb.op_authors(&me(), "plan.md").unwrap().1;
    assert_eq!(authors.len(), 2);

    let closed = kb.close_session(&me(), &ann.session, true).unwrap();
    assert!(closed.ok && closed.final_version == 2, "{closed:?}");
    assert_eq!(vault.read("plan.md"), both);
    assert!(!live(&kb, "plan.md").page.uncommitted);
    let unknown = kb.change(&me(), &ann.session, None, &a, false).unwrap_err();
    assert_eq!(unknown.code.name(), "unknown_session");
    assert!(ann.heard.other.lock().iter().any(|said| said == "Closed"));

    let last = kb.close_session(&me(), &bob.session, true).unwrap();
    assert!(
        last.ok && last.final_version == 2,
        "nothing new, no version"
    );
    assert_eq!(kb.session_count(), 0);
    let logs = std::fs::read_dir(vault.folder().join(".escurel/live")).unwrap();
    assert_eq!(logs.count(), 0, "what is committed needs no log");
}

#[test]
fn changes_made_elsewhere_enter_the_session_as_edits() {
    let vault = Vault::new(&[("plan.md", PAGE)]);
    let kb = vault.open();
    let ann = open(&kb, "plan.md", 11);
    for round in 0..5 {
        let op = ann.types("# Plan", &format!("# Plan a{round}"));
        ann.sends(&kb, &op);
        let on_disk = vault.read("plan.md");
        vault.write(
            "plan.md",
            on_disk.replace("three", &format!("three d{round}")),
        );
        eventually("the edit on disk arrives", || {
            ann.listens().contains(&format!("three d{round}"))
        });
    }
    let put = Put {
        path: "plan.md",
        content: &vault.read("plan.md").replace("two", "two tool"),
        base_version: None,
    };
    kb.put_page(&me(), &put).unwrap();
    eventually("the tool's edit arrives", || {
        ann.listens().contains("two tool")
    });
    let text = ann.listens();
    for round in 0..5 {
        assert_eq!(text.matches(&format!("a{round}")).count(), 1, "{text}");
        assert_eq!(text.matches(&format!("d{round}")).count(), 1, "{text}");
    }
    let closed = kb.close_session(&me(), &ann.session, true).unwrap();
    assert!(closed.ok, "{closed:?}");
    assert_eq!(vault.read("plan.md"), text);
}

#[test]
fn a_restart_goes_on_with_the_same_history() {
    let vault = Vault::new(&[("plan.md", PAGE)]);
    let kb = vault.open();
    let ann = open(&kb, "plan.md", 11);
    let first = ann.types("one", "one kept");
    ann.sends(&kb, &first);
    // Typed while nobody could be reached.
    let second = ann.types("two", "two offline");
    kb.close();
    drop(kb);
    vault.write("plan.md", PAGE.replace("three", "three outside"));
    let kb = vault.open();
    assert!(live(&kb, "plan.md").body.contains("one kept"));
    let ann = ann.attached(&kb);
    ann.sends(&kb, &second);
    let all = "# Plan\n\none kept 🛶\n\ntwo offline\n\nthree outside\n";
    eventually("everything is there once", || ann.listens() == all);
    assert!(kb.close_session(&me(), &ann.session, true).unwrap().ok);
    assert_eq!(vault.read("plan.md"), all);

    kb.close();
    drop(kb);
    let kb = vault.open();
    let again = open(&kb, "plan.md", 12);
    assert_ne!(again.lineage, ann.lineage, "the former history has ended");
    let hello = Hello {
        session: again.session.clone(),
        lineage: Some(ann.lineage.clone()),
        have: None,
    };
    let other = kb.attach(&me(), &hello, Arc::new(Heard::default()));
    assert_eq!(other.unwrap_err().code.name(), "lineage_changed");
}

#[test]
fn what_one_session_drops_stays_in_history_and_others_words_are_not_dropped() {
    let vault = Vault::new(&[("plan.md", PAGE)]);
    let kb = vault.open();
    let (ann, bob) = (open(&kb, "plan.md", 11), open(&kb, "plan.md", 12));
    let op = ann.types("one", "one dropped");
    ann.sends(&kb, &op);
    let closed = kb.close_session(&me(), &ann.session, false).unwrap();
    assert!(closed.ok && closed.final_version == 3, "{closed:?}");
    bob.listens();
    assert_eq!(bob.document.text(), PAGE);
    assert_eq!(vault.read("plan.md"), PAGE);
    let draft = ExpandRequest {
        page_id: "plan.md".into(),
        version: Some(2),
        ..ExpandRequest::default()
    };
    let draft = kb.expand(&me(), &draft).unwrap().unwrap();
    assert!(draft.body.contains("one dropped"), "{}", draft.body);

    let cat = open(&kb, "plan.md", 13);
    for client in [&bob, &cat] {
        let op = client.types("two", "two more");
        client.sends(&kb, &op);
    }
    let shared = kb.close_session(&me(), &cat.session, false).unwrap_err();
    assert_eq!(shared.code.name(), "session_shared");
    assert!(kb.close_session(&me(), &cat.session, true).unwrap().ok);
}

#[test]
fn a_text_that_cannot_be_a_page_keeps_the_session_open() {
    let page = "---\nskill: note\nid: plan\n---\n# Plan\n\ntext\n";
    let vault = Vault::new(&[("plan.md", page)]);
    let kb = vault.open();
    let ann = open(&kb, "plan.md", 11);
    let op = ann.types("id: plan", "id: [plan");
    ann.sends(&kb, &op);
    let refused = kb.close_session(&me(), &ann.session, true).unwrap();
    assert!(!refused.ok && !refused.issues.is_empty(), "{refused:?}");
    let op = ann.types("id: [plan", "id: plan");
    ann.sends(&kb, &op);
    let op = ann.types("text", "better text");
    ann.sends(&kb, &op);
    assert!(kb.close_session(&me(), &ann.session, true).unwrap().ok);
    assert_eq!(vault.read("plan.md"), page.replace("text", "better text"));
}

#[test]
fn a_deleted_page_keeps_what_was_typed_until_somebody_chooses() {
    let vault = Vault::new(&[("plan.md", PAGE)]);
    let kb = vault.open();
    let ann = open(&kb, "plan.md", 11);
    let op = ann.types("two", "two typed");
    ann.sends(&kb, &op);
    let uid = live(&kb, "plan.md").page.uid;
    assert!(kb.delete_page(&me(), "plan.md", None, false).unwrap().ok);
    eventually("the client is told", || !ann.heard.other.lock().is_empty());
    let refused = kb.close_session(&me(), &ann.session, true).unwrap();
    assert_eq!(refused.issues[0].code, "page_not_found", "{refused:?}");
    let restored = kb
        .restore_page(&me(), &uid, &escurel_core::Then::Last, false)
        .unwrap();
    assert!(restored.ok, "{restored:?}");
    assert!(kb.close_session(&me(), &ann.session, true).unwrap().ok);
    assert_eq!(vault.read("plan.md"), PAGE.replace("two", "two typed"));
}

#[test]
fn what_is_no_change_of_the_text_harms_nobody() {
    let vault = Vault::new(&[("plan.md", PAGE)]);
    let kb = vault.open();
    let (ann, bob) = (open(&kb, "plan.md", 11), open(&kb, "plan.md", 12));
    let real = bob.types("two", "two real");
    let mut seed = 7u64;
    let mut random = || {
        seed = seed
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (seed >> 33) as usize
    };
    for _ in 0..1_000 {
        let mut bytes = real.clone();
        let at = random() % bytes.len();
        bytes[at] ^= 1 << (random() % 8);
        bytes.truncate(1 + random() % bytes.len());
        // A bit of the header that means nothing leaves the change what it is.
        if let Ok(ack) = kb.change(&me(), &ann.session, Some(ann.peer), &bytes, true) {
            assert_eq!(ack.text, Some(PAGE.replace("two", "two real")), "{bytes:?}");
        }
    }
    bob.sends(&kb, &real);
    let ann = ann.attached(&kb);
    assert_eq!(ann.listens(), PAGE.replace("two", "two real"));
    assert!(kb.close_session(&me(), &ann.session, true).unwrap().ok);
    assert_eq!(vault.read("plan.md"), PAGE.replace("two", "two real"));
}

#[test]
fn typing_saves_itself_where_that_was_asked_for() {
    let vault = Vault::new(&[("plan.md", PAGE)]);
    let kb = vault.open();
    let request = OpenRequest {
        page_id: "plan.md".into(),
        autosave: true,
        ..OpenRequest::default()
    };
    let opened = kb.open_session(&me(), &request).unwrap();
    let document = Document::load(&opened.snapshot).unwrap();
    let before = document.version();
    document.write_as(11).unwrap();
    document
        .set_text(&PAGE.replace("one", "one saved"))
        .unwrap();
    let op = document.since(&before).unwrap();
    kb.change(&me(), &opened.session, None, &op, false).unwrap();
    eventually("the pause saves", || {
        vault.read("plan.md").contains("one saved")
    });
    eventually("there is a version", || {
        let history = kb.page_history(&me(), "plan.md", 5).unwrap();
        history.versions.len() == 2
    });
    assert_eq!(kb.session_count(), 1, "the session goes on");
}
