//! What is erased is nowhere any more, and everything else is as it was.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use escurel_core::api::*;
use escurel_core::{Code, Kb, OpenRequest};
use escurel_store::Paths;

use crate::crash::DieAt;
use crate::support::*;

const SECRET: &str = "Zwölfuhrgeheimnis";

/// Every file under a folder that contains the text, and every journal content that does.
fn holding(vault: &Vault, secret: &str) -> Vec<String> {
    let mut found = Vec::new();
    look(vault.dir.path(), secret.as_bytes(), &mut found);
    found
}

fn look(dir: &Path, secret: &[u8], found: &mut Vec<String>) {
    for file in fs::read_dir(dir).unwrap().map(Result::unwrap) {
        let path = file.path();
        if path.is_dir() {
            look(&path, secret, found);
        } else if fs::read(&path).is_ok_and(|bytes| memchr::memmem::find(&bytes, secret).is_some())
        {
            found.push(path.display().to_string());
        }
    }
}

/// Contents in the packs that hold the text.
fn contents_holding(vault: &Vault, secret: &str) -> usize {
    let paths = Paths::detect(&vault.folder(), "default", &vault.dir.path().join("cache")).unwrap();
    let store = escurel_store::FsStore::open(&paths, escurel_store::Env::system()).unwrap();
    let store: &dyn escurel_store::Store = &store;
    let records = store.records(0).map(Result::unwrap);
    let contents = records.filter_map(|record| record.content);
    let bytes = contents.filter_map(|content| store.object(&content.object).ok());
    bytes
        .filter(|bytes| memchr::memmem::find(bytes, secret.as_bytes()).is_some())
        .count()
}

fn erase(kb: &Kb, target: EraseTarget) -> ErasedAnswer {
    let request = EraseRequest {
        target,
        reason: "asked for".into(),
        dry_run: false,
    };
    kb.erase(&me(), &request).unwrap()
}

fn a_page(id: &str) -> EraseTarget {
    EraseTarget::Page {
        name: id.into(),
        versions: Default::default(),
    }
}

fn update(kb: &Kb, page_id: &str, content: &str) -> UpdateAnswer {
    let request = UpdateRequest {
        page_id: page_id.into(),
        content: content.into(),
        ..UpdateRequest::default()
    };
    let answer = kb.update_page(&me(), &request).unwrap();
    assert!(answer.ok, "{:?}", answer.issues);
    answer
}

fn secret_text(n: usize) -> String {
    format!(
        "---\ntitle: Title {SECRET}\ncode: {SECRET}{n}\n---\n# Plan\n\nEdition {n} of {SECRET}.\n"
    )
}

fn a_vault() -> Vault {
    let vault = Vault::new(&[("other.md", "# Other\n\nSee [[plan]].\n")]);
    for n in 0..40 {
        vault.write(
            &format!("many/{n}.md"),
            format!("# Page {n}\n\nWords of {n}.\n"),
        );
    }
    vault
}

#[test]
fn nothing_of_an_erased_page_stays_while_the_server_runs() {
    let vault = a_vault();
    let kb = vault.open();
    for n in 0..3 {
        update(&kb, "plan.md", &secret_text(n));
    }
    let opened = kb
        .open_session(
            &me(),
            &OpenRequest {
                page_id: "plan.md".into(),
                ..OpenRequest::default()
            },
        )
        .unwrap();
    assert_eq!(found(&kb, SECRET), ["plan.md"]);
    let uid = page(&kb, "plan.md").unwrap().uid;
    let dry = EraseRequest {
        target: a_page("plan.md"),
        reason: "asked for".into(),
        dry_run: true,
    };
    assert_eq!(kb.erase(&me(), &dry).unwrap().contents, 3);
    assert_eq!(text_of(&kb, "plan.md"), Some(secret_text(2)));
    assert!(!holding(&vault, SECRET).is_empty());

    let answer = erase(&kb, a_page("plan.md"));
    assert_eq!((answer.contents, answer.kept), (3, vec![]));
    assert_eq!(text_of(&kb, "plan.md"), None);
    assert_eq!(found(&kb, SECRET), Vec::<String>::new());
    assert_eq!(holding(&vault, SECRET), Vec::<String>::new());
    let gone = kb.close_session(&me(), &opened.session, true).unwrap_err();
    assert_eq!(gone.code, Code::UnknownSession);
    let history = kb.page_history(&me(), &uid, 10).unwrap();
    assert!(
        history.versions.iter().all(|v| v.erased || v.deleted),
        "{history:?}"
    );
    assert_eq!(history.versions.len(), 4);
    verify_clean(&kb);
    drop(kb);
    assert_eq!(contents_holding(&vault, SECRET), 0);

    let kb = vault.open();
    assert_eq!(holding(&vault, SECRET), Vec::<String>::new());
    assert_eq!(found(&kb, "words").len(), 20);
    verify_clean(&kb);
    let again = kb.erase(&me(), &dry).unwrap();
    assert_eq!(again.contents, 3, "it can be asked for again by its path");
    drop(kb);
    fs::remove_dir_all(vault.index()).unwrap();
    let kb = vault.open();
    assert_eq!(holding(&vault, SECRET), Vec::<String>::new());
    verify_clean(&kb);
}

#[test]
fn an_earlier_version_is_erased_and_the_page_goes_on() {
    let vault = a_vault();
    let kb = vault.open();
    update(&kb, "plan.md", &secret_text(1));
    update(&kb, "plan.md", "# Plan\n\nNothing secret.\n");
    let versions = |versions: &[u64]| EraseTarget::Page {
        name: "plan.md".into(),
        versions: versions.iter().copied().collect(),
    };
    let refused = |target| {
        let request = EraseRequest {
            target,
            reason: "asked for".into(),
            dry_run: false,
        };
        kb.erase(&me(), &request).unwrap_err()
    };
    assert_eq!(
        refused(versions(&[2])).location.as_deref(),
        Some("versions")
    );
    assert_eq!(
        refused(versions(&[9])).location.as_deref(),
        Some("versions")
    );
    assert_eq!(refused(a_page("nowhere.md")).code, Code::PageNotFound);
    assert_eq!(
        refused(EraseTarget::Event("e".into())).code,
        Code::EventNotFound
    );
    assert_eq!(
        refused(EraseTarget::Chat("nobody".into())).code,
        Code::InvalidArgument
    );
    assert_eq!(erase(&kb, versions(&[1])).contents, 1);
    assert_eq!(holding(&vault, SECRET), Vec::<String>::new());
    assert_eq!(
        text_of(&kb, "plan.md").unwrap(),
        "# Plan\n\nNothing secret.\n"
    );
    let request = ExpandRequest {
        page_id: "plan.md".into(),
        version: Some(1),
        ..ExpandRequest::default()
    };
    assert_eq!(
        kb.expand(&me(), &request).unwrap_err().code,
        Code::ContentErased
    );
    verify_clean(&kb);
    drop(kb);
    assert_eq!(contents_holding(&vault, SECRET), 0);
}

#[test]
fn events_messages_and_what_a_person_wrote_are_erased() {
    let vault = a_vault();
    let kb = vault.open();
    let ann = escurel_access::Caller::agent("ann", []);
    for (caller, id) in [(&me(), "mine"), (&ann, "hers"), (&ann, "other")] {
        let event = NewEvent {
            event_id: Some(id.into()),
            title: Some(format!("{SECRET} {id}")),
            body: Some(format!("body {SECRET} of {id}")),
            ..NewEvent::default()
        };
        kb.capture_event(caller, &event).unwrap();
        let message = NewMessage {
            chat_group_id: format!("group-{id}"),
            msg_id: Some(id.into()),
            content: format!("{SECRET} said in {id}"),
            ..NewMessage::default()
        };
        kb.append_message(caller, &message).unwrap();
    }
    assert_eq!(erase(&kb, EraseTarget::Event("mine".into())).contents, 1);
    assert_eq!(
        erase(&kb, EraseTarget::Chat("group-mine".into())).contents,
        1
    );
    let write = |caller, content: &str| {
        let request = UpdateRequest {
            page_id: "hers.md".into(),
            content: content.into(),
            ..UpdateRequest::default()
        };
        assert!(kb.update_page(caller, &request).unwrap().ok);
    };
    write(&ann, &secret_text(1));
    write(&ann, "# Hers\n");
    let answer = erase(&kb, EraseTarget::Subject("ann".into()));
    assert_eq!(
        (answer.contents, answer.kept),
        (5, vec!["hers.md".to_owned()])
    );
    assert_eq!(holding(&vault, SECRET), Vec::<String>::new());
    verify_clean(&kb);
    drop(kb);
    assert_eq!(contents_holding(&vault, SECRET), 0);
}

/// Names the child's job: `<failpoint> <folder>`.
const JOB: &str = "ERASE_CHILD_JOB";

#[test]
fn child_of_the_erase_test() {
    let Ok(job) = std::env::var(JOB) else { return };
    let (point, folder) = job.split_once(' ').unwrap();
    let folder = Path::new(folder);
    let options = escurel_core::OpenOptions {
        env: escurel_store::Env {
            failpoints: Arc::new(DieAt::new(point, 0)),
            ..escurel_store::Env::system()
        },
        cache_home: Some(folder.with_file_name("cache")),
        ..escurel_core::OpenOptions::default()
    };
    let kb = Kb::open(folder, options).unwrap();
    kb.wait_ready(&mut |_| {});
    println!("BEGUN");
    erase(&kb, a_page("plan.md"));
    println!("ERASED");
}

/// The process really dies in the middle; the next start finishes what was recorded.
#[test]
fn an_erasure_that_was_recorded_is_finished_after_a_crash() {
    for point in [
        "core.after_erase_record",
        "journal.before_erase_write",
        "journal.before_erase_swap",
        "core.before_purge",
        "core.before_directory_save",
    ] {
        let vault = a_vault();
        let kb = vault.open();
        update(&kb, "plan.md", &secret_text(1));
        drop(kb);
        let output = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "erase::child_of_the_erase_test", "--nocapture"])
            .env(JOB, format!("{point} {}", vault.folder().display()))
            .output()
            .unwrap();
        let out = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            out.contains("BEGUN") && !out.contains("ERASED"),
            "{point}: {out}"
        );
        let kb = vault.open();
        assert_eq!(text_of(&kb, "plan.md"), None, "{point}");
        eventually(point, || holding(&vault, SECRET).is_empty());
        verify_clean(&kb);
        drop(kb);
        assert_eq!(contents_holding(&vault, SECRET), 0, "{point}");
    }
}
