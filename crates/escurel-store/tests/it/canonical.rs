//! Our bytes and hashes against an independent implementation.

use escurel_store::{Store, canonical, chain_hash, conformance::version, export};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::support;

const MAX: i64 = (1 << 53) - 1;

fn value() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        ".*".prop_map(String::from),
        "[\\x00-\\x7f]{0,8}".prop_map(String::from),
        prop::collection::vec(any::<char>(), 0..6).prop_map(|chars| chars.into_iter().collect()),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-MAX..=MAX).prop_map(Value::from),
        text.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((text.clone(), inner), 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn bytes_and_hashes_agree(value in value()) {
        prop_assert_eq!(canonical(&value).unwrap(), korg_ledger::canonicalize(&value));
        let record = json!({ "args": value, "entry_hash": "x", "prev_hash": korg_ledger::GENESIS_HASH });
        prop_assert_eq!(chain_hash(&record).unwrap(), korg_ledger::chain_hash(&record, None));
    }
}

#[test]
fn what_cannot_be_hashed_alike_is_refused() {
    for value in [
        json!(0.5),
        json!(1e300),
        json!(MAX + 1),
        json!(-MAX - 1),
        json!(u64::MAX),
        json!([[1.0]]),
    ] {
        assert_eq!(
            canonical(&value).unwrap_err().code(),
            "bad_number",
            "{value}"
        );
    }
    assert!(chain_hash(&json!([])).is_err());
}

fn exported(count: u64) -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    let store = support::open_small(dir.path());
    for n in 0..count {
        store
            .append(vec![version(&format!("ä\u{1F600}/{n}.md"), n, b"text")])
            .unwrap();
    }
    let mut out = Vec::new();
    export(&store, &mut out).unwrap();
    out
}

#[test]
fn an_outside_verifier_accepts_the_export() {
    let text = String::from_utf8(exported(40)).unwrap();
    let events = korg_verify::load_events(&text).unwrap();
    let verdict = korg_verify::verify_journal(&events, None);
    assert!(verdict.valid, "{:?}", verdict.errors);
    assert_eq!(verdict.event_count, 40);
    assert!(korg_ledger::verify_dag(&events).is_empty());
}

/// Flip one byte of the stored journal: both name the same record.
#[test]
fn both_object_at_the_same_record() {
    let dir = tempfile::tempdir().unwrap();
    let store = support::open(dir.path());
    for n in 0..12 {
        store
            .append(vec![version(&format!("{n}.md"), n, b"text")])
            .unwrap();
    }
    let file = dir.path().join(".escurel/journal/audit/00000001.jsonl");
    let good = std::fs::read(&file).unwrap();
    let mut tried = 0;
    for at in (0..good.len()).step_by(37) {
        let mut bad = good.clone();
        bad[at] ^= 1;
        let Ok(text) = String::from_utf8(bad.clone()) else {
            continue;
        };
        let Ok(events) = korg_verify::load_events(&text) else {
            continue;
        };
        std::fs::write(&file, &bad).unwrap();
        let errors = korg_ledger::verify_chain(&events, None);
        assert!(!errors.is_empty());
        if errors.iter().any(|error| error.starts_with("seq ?")) {
            // They name a record by its seq_id only; we also know its place.
            continue;
        }
        let theirs: Vec<u64> = errors
            .iter()
            .filter_map(|error| error.strip_prefix("seq ")?.split(':').next()?.parse().ok())
            .collect();
        let ours: Vec<u64> = store
            .verify_journal()
            .findings
            .iter()
            .filter_map(|finding| finding.seq)
            .collect();
        assert_eq!(
            theirs.first(),
            ours.first(),
            "byte {at}: {theirs:?} {ours:?}"
        );
        assert!(!ours.is_empty());
        tried += 1;
    }
    assert!(tried > 50, "{tried}");
    assert_eq!(store.writable().unwrap_err().code(), "journal_broken");
}
