//! Pages written through the one door.

use std::sync::Arc;

use escurel_access::{Caller, OpenPolicy, PageFacts, Policy, Verb};
use escurel_core::{Code, OpenOptions, Put};

use crate::support::*;

fn put<'a>(path: &'a str, content: &'a str) -> Put<'a> {
    Put {
        path,
        content,
        base_version: None,
    }
}

#[test]
fn a_written_page_is_in_the_file_and_in_the_next_search() {
    let vault = Vault::new(&[]);
    let kb = vault.open();
    for n in 1..=20 {
        let text = format!("# Note\n\nword{n}\n");
        let written = kb.put_page(&me(), &put("n.md", &text)).unwrap();
        assert_eq!(written.version, n);
        assert_eq!(vault.read("n.md"), text);
        assert_eq!(found(&kb, &format!("word{n}")), ["n.md"]);
    }
    std::thread::sleep(std::time::Duration::from_millis(500));
    assert_eq!(
        page(&kb, "n.md").unwrap().version,
        20,
        "our own writes are not outside edits"
    );
    verify_clean(&kb);
}

#[test]
fn concurrent_writers_share_the_journal_and_lose_nothing() {
    let vault = Vault::new(&[]);
    let kb = vault.open();
    std::thread::scope(|scope| {
        for writer in 0..8 {
            let kb = &kb;
            scope.spawn(move || {
                for n in 0..25 {
                    let (path, text) = (
                        format!("w{writer}.md"),
                        format!("# W{writer}\n\ntoken{writer}x{n}\n"),
                    );
                    kb.put_page(&me(), &put(&path, &text)).unwrap();
                    assert_eq!(found(kb, &format!("token{writer}x{n}")), [path]);
                }
            });
        }
    });
    for writer in 0..8 {
        assert_eq!(page(&kb, &format!("w{writer}.md")).unwrap().version, 25);
    }
    verify_clean(&kb);
}

#[test]
fn what_was_refused_changed_nothing() {
    let vault = Vault::new(&[("a.md", "---\nid: a\n---\n# A\n")]);
    let kb = vault.open();
    let refused = |put: &Put<'_>| kb.put_page(&me(), put).unwrap_err().code;
    assert_eq!(refused(&put("../x.md", "x")), Code::PageIdInvalid);
    assert_eq!(refused(&put("x.txt", "x")), Code::PageIdInvalid);
    assert_eq!(
        refused(&put("b.md", "---\nid: a\n---\n")),
        Code::DuplicateId
    );
    assert_eq!(
        refused(&put("a.md", "---\nid: z\n---\n")),
        Code::IdentityChanged
    );
    assert_eq!(
        refused(&Put {
            base_version: Some(7),
            ..put("a.md", "---\nid: a\n---\n")
        }),
        Code::Conflict
    );
    assert_eq!(vault.read("a.md"), "---\nid: a\n---\n# A\n");
    assert_eq!(page(&kb, "a.md").unwrap().version, 1);
    verify_clean(&kb);
}

/// Hides pages of skill `secret` from everybody but admins.
struct Secrets;

impl Policy for Secrets {
    fn reads_everything(&self, caller: &Caller) -> bool {
        caller.is_admin()
    }

    fn may(&self, caller: &Caller, _: Verb, page: &PageFacts<'_>) -> bool {
        OpenPolicy.may(caller, Verb::Read, page) && (caller.is_admin() || page.skill != "secret")
    }
}

#[test]
fn a_hidden_page_is_as_absent_as_one_that_never_was() {
    let vault = Vault::new(&[
        ("open.md", "# Open\n\nplover [[hidden]] [[nowhere]]\n"),
        (
            "hidden.md",
            "---\nskill: secret\nid: hidden\naliases: [Open]\n---\n# Hidden\n\nplover [[open]]\n",
        ),
    ]);
    let kb = vault.open_with(OpenOptions {
        policy: Arc::new(Secrets),
        ..vault.options()
    });
    let guest = Caller::agent("guest", []);
    let search = |caller: &Caller| {
        let request = escurel_core::api::SearchRequest {
            queries: vec!["plover".into()],
            k: 10,
            ..Default::default()
        };
        kb.search(caller, &request)
            .unwrap()
            .hits
            .into_iter()
            .map(|h| h.page.page_id)
            .collect::<Vec<_>>()
    };
    assert_eq!(search(&guest), ["open.md"]);
    assert_eq!(search(&me()).len(), 2);
    let ask = |link: &str| kb.resolve(&guest, link, None).unwrap();
    assert_eq!(ask("[[hidden]]").page, ask("[[nowhere]]").page);
    assert!(
        ask("[[Open]]").page.is_some(),
        "a hidden alias makes nothing ambiguous"
    );
    let edges = |id: &str| {
        kb.neighbours(
            &guest,
            &escurel_core::api::NeighboursRequest {
                page_id: id.into(),
                ..Default::default()
            },
        )
    };
    assert_eq!(edges("open.md").unwrap().edges.len(), 0);
    let (absent, hidden) = (
        edges("never.md").unwrap_err(),
        edges("hidden.md").unwrap_err(),
    );
    assert_eq!(absent.message.replace("never", "hidden"), hidden.message);
    assert!(
        kb.expand(
            &guest,
            &escurel_core::api::ExpandRequest {
                page_id: "hidden.md".into(),
                ..Default::default()
            }
        )
        .unwrap()
        .is_none()
    );
    assert_eq!(
        kb.list_snapshots(&guest, "hidden.md").unwrap(),
        Vec::<String>::new()
    );
    assert_eq!(
        kb.put_page(&guest, &put("hidden.md", "x"))
            .unwrap_err()
            .code,
        Code::Forbidden
    );
}
