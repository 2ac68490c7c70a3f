//! One suite that every store passes. `make` gives a fresh, empty store.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use serde_json::Value;

use crate::{Draft, Kind, Record, Removed, Replaced, RootState, Store, export};

/// Runs everything; panics at the first difference.
pub fn run(make: impl Fn() -> Box<dyn Store>) {
    starts_empty(&*make());
    keeps_the_chain(&*make());
    refuses_whole(&*make());
    keeps_contents(&*make());
    reads_from_anywhere(&*make());
    moves_applied_forward(&*make());
    shares_the_journal(&*make());
    exports(&*make());
    replaces(&*make());
    removes(&*make());
    lists(&*make());
    refuses_paths(&*make());
}

/// A version record of `path` with `content`.
pub fn version(path: &str, number: u64, content: &[u8]) -> Draft {
    let mut draft = Draft::new(Kind::PageVersion, "human:ada");
    draft.uid = Some(crate::Uid::from_parts(
        1_700_000_000_000_000,
        u128::from(number),
    ));
    draft.path = Some(path.to_owned());
    draft.version = Some(number);
    draft.content = Some(Arc::from(content));
    draft.note.insert("origin".into(), Value::from("write"));
    draft
}

fn all(store: &dyn Store) -> Vec<Record> {
    store.records(0).collect::<Result<_, _>>().unwrap()
}

fn clean(store: &dyn Store) {
    let report = store.verify_journal();
    assert!(report.clean(), "{:#?}", report.findings);
    assert_eq!(report.head, store.head());
}

fn starts_empty(store: &dyn Store) {
    assert_eq!((store.head(), store.applied()), (0, 0));
    assert!(all(store).is_empty() && store.warnings().is_empty());
    assert!(store.writable().is_ok() && !store.read_only());
    let scan = store.scan();
    assert!(scan.files.is_empty() && scan.unknown.is_empty());
    assert_eq!(scan.root, RootState::Ok);
    assert!(store.append(Vec::new()).unwrap().is_empty());
    clean(store);
}

fn keeps_the_chain(store: &dyn Store) {
    let mut appended = Vec::new();
    for round in 0..5u64 {
        let drafts = (0..=round)
            .map(|n| version("a.md", round * 10 + n, b"x"))
            .collect();
        appended.extend(store.append(drafts).unwrap());
    }
    let mut prev = [0; 32];
    for (index, record) in appended.iter().enumerate() {
        assert_eq!(record.seq, index as u64 + 1);
        assert_eq!(record.prev_hash, prev);
        prev = record.entry_hash;
    }
    assert_eq!(all(store), appended);
    assert_eq!(store.head(), appended.len() as u64);
    clean(store);
}

fn refuses_whole(store: &dyn Store) {
    let with_note = |key: &str, value: Value| {
        let mut draft = version("b.md", 2, b"y");
        draft.note.insert(key.into(), value);
        vec![version("a.md", 1, b"x"), draft]
    };
    let refused = |drafts, code| assert_eq!(store.append(drafts).unwrap_err().code(), code);
    refused(with_note("big", Value::from(1i64 << 53)), "bad_number");
    refused(with_note("half", Value::from(0.5)), "bad_record");
    refused(with_note("list", Value::Array(Vec::new())), "bad_record");
    refused(with_note("entry_hash", Value::from("0")), "bad_record");
    refused(
        vec![Draft::new(Kind::PageVersion, "human:ada")],
        "bad_record",
    );
    let mut late = version("a.md", 1, b"x");
    late.at = Some(i64::MAX);
    refused(vec![late], "bad_record");
    assert_eq!(store.head(), 0);
    assert_eq!(
        store
            .append(with_note("fine", Value::from(-7)))
            .unwrap()
            .len(),
        2
    );
    clean(store);
}

fn keeps_contents(store: &dyn Store) {
    let contents: Vec<Vec<u8>> = vec![
        Vec::new(),
        b"same".to_vec(),
        b"same".to_vec(),
        vec![7; 100_000],
        vec![0xff, 0, 0xfe],
    ];
    let drafts = contents
        .iter()
        .enumerate()
        .map(|(n, c)| version("a.md", n as u64, c))
        .collect();
    let records = store.append(drafts).unwrap();
    let id = |index: usize| records[index].content.unwrap().object;
    assert_ne!(id(1), id(2), "equal contents must not be recognisable");
    for (index, content) in contents.iter().enumerate() {
        assert_eq!(records[index].content.unwrap().bytes, content.len() as u64);
        assert_eq!(&store.object(&id(index)).unwrap(), content);
    }
    let unknown = crate::ObjectId([3; 32]);
    assert_eq!(store.object(&unknown).unwrap_err().code(), "object_missing");
    assert_eq!(store.erase(&[id(1), unknown]).unwrap(), 1);
    assert_eq!(store.erase(&[id(1)]).unwrap(), 0);
    assert_eq!(store.object(&id(1)).unwrap_err().code(), "content_erased");
    for index in [0, 2, 3, 4] {
        assert_eq!(store.object(&id(index)).unwrap(), contents[index]);
    }
    let after = store.append(vec![version("a.md", 9, b"after")]).unwrap();
    assert_eq!(
        store.object(&after[0].content.unwrap().object).unwrap(),
        b"after"
    );
    clean(store);
    assert_eq!(store.verify_journal().erased, 1);
}

fn reads_from_anywhere(store: &dyn Store) {
    let long = "ü\"\\\u{1F600}\u{7f}".repeat(3000);
    for number in 0..40 {
        store
            .append(vec![version(&format!("{long}{number}.md"), number, b"x")])
            .unwrap();
    }
    let whole = all(store);
    for after in 0..=41usize {
        let part: Vec<Record> = store
            .records(after as u64)
            .collect::<Result<_, _>>()
            .unwrap();
        assert_eq!(part, whole[after.min(40)..]);
    }
    let records = store.records(39);
    store.append(vec![version("later.md", 1, b"x")]).unwrap();
    assert_eq!(records.count(), 1, "records end at the head of the call");
}

fn moves_applied_forward(store: &dyn Store) {
    store
        .append((0..5).map(|n| version("a.md", n, b"x")).collect())
        .unwrap();
    store.set_applied(3).unwrap();
    store.set_applied(2).unwrap();
    assert_eq!(store.applied(), 3);
    assert_eq!(store.set_applied(6).unwrap_err().code(), "bad_record");
    assert_eq!(store.applied(), 3);
}

fn shares_the_journal(store: &dyn Store) {
    const WRITERS: u64 = 20;
    const EACH: u64 = 10;
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            scope.spawn(move || {
                for number in 0..EACH {
                    let text = format!("{writer}/{number}");
                    let pair = vec![
                        version(&text, number, text.as_bytes()),
                        version("b", 0, b""),
                    ];
                    let records = store.append(pair).unwrap();
                    assert_eq!(records[1].seq, records[0].seq + 1, "a call stays together");
                    assert!(store.head() >= records[1].seq);
                    let object = records[0].content.unwrap().object;
                    assert_eq!(store.object(&object).unwrap(), text.as_bytes());
                }
            });
        }
    });
    assert_eq!(all(store).len() as u64, WRITERS * EACH * 2);
    clean(store);
}

fn exports(store: &dyn Store) {
    let records = store
        .append((0..5).map(|n| version("ä.md", n, b"x")).collect())
        .unwrap();
    let mut out = Vec::new();
    assert_eq!(export(store, &mut out).unwrap(), 5);
    for (line, record) in out.split(|b| *b == b'\n').zip(&records) {
        let value: Value = serde_json::from_slice(line).unwrap();
        assert_eq!(
            crate::chain_hash(&value).unwrap(),
            crate::hex::encode(&record.entry_hash)
        );
        assert_eq!(crate::canonical(&value).unwrap(), line);
    }
}

fn replaces(store: &dyn Store) {
    assert!(store.can_create("can/it.md").is_ok());
    assert!(store.read("can/it.md").is_ok_and(|found| found.is_none()));
    let put = |planned, new: &[u8]| store.replace("notes/a.md", planned, new).unwrap();
    let Replaced::Done(first) = put(None, b"one") else {
        panic!("a new file")
    };
    assert_eq!(
        store.read("notes/a.md").unwrap(),
        Some((b"one".to_vec(), first))
    );
    let Replaced::Done(second) = put(Some(b"one"), b"two") else {
        panic!("as planned")
    };
    assert_eq!(store.stat("notes/a.md").unwrap(), Some(second));
    assert_ne!(first, second);
    let found = |replaced| match replaced {
        Replaced::Displaced { found, .. } => found,
        Replaced::Done(_) => panic!("it was not as planned"),
    };
    assert_eq!(found(put(Some(b"one"), b"three")), Some(b"two".to_vec()));
    assert_eq!(found(put(None, b"four")), Some(b"three".to_vec()));
    assert_eq!(store.read("notes/a.md").unwrap().unwrap().0, b"four");
    let gone = store
        .replace("notes/b.md", Some(b"was here"), b"back")
        .unwrap();
    assert_eq!(found(gone), None);
    assert_eq!(store.read("notes/b.md").unwrap().unwrap().0, b"back");
    store.flush_files().unwrap();
    store.flush_files().unwrap();
}

fn removes(store: &dyn Store) {
    store.replace("a.md", None, b"one").unwrap();
    assert_eq!(
        store.remove("a.md", b"other").unwrap(),
        Removed::Changed {
            found: b"one".to_vec()
        }
    );
    assert_eq!(store.read("a.md").unwrap().unwrap().0, b"one");
    assert_eq!(store.remove("a.md", b"one").unwrap(), Removed::Done);
    assert_eq!(store.remove("a.md", b"one").unwrap(), Removed::Absent);
    assert_eq!(store.read("a.md").unwrap(), None);
    assert_eq!(store.stat("none/a.md").unwrap(), None);
    store.flush_files().unwrap();
}

fn lists(store: &dyn Store) {
    for path in [
        "b.md",
        "a/z.MD",
        "a/b/c.markdown",
        "a.txt",
        "node_modules/x.md",
        "a/b.md~",
    ] {
        store.replace(path, None, path.as_bytes()).unwrap();
    }
    let scan = store.scan();
    let paths: Vec<&str> = scan.files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(paths, ["a/b/c.markdown", "a/z.MD", "b.md"]);
    for file in &scan.files {
        assert_eq!(store.stat(&file.path).unwrap(), Some(file.stat));
    }
}

fn refuses_paths(store: &dyn Store) {
    for path in [
        "",
        "/etc/passwd",
        "../a.md",
        "a/../../b.md",
        ".git/x.md",
        "a//b.md",
        "a\\b.md",
        "\\x2E./a",
    ] {
        let kind = std::io::ErrorKind::InvalidInput;
        assert_eq!(
            store.replace(path, None, b"x").unwrap_err().kind(),
            kind,
            "{path}"
        );
        assert_eq!(store.read(path).unwrap_err().kind(), kind, "{path}");
        assert_eq!(store.stat(path).unwrap_err().kind(), kind, "{path}");
        assert_eq!(store.remove(path, b"x").unwrap_err().kind(), kind, "{path}");
    }
}
