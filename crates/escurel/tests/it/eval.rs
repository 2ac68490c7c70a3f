use std::path::PathBuf;

use serde_json::{Value, json};

use crate::support::Place;

const DOCUMENTS: &[(&str, &str, &str)] = &[
    ("doc/1", "Acme: \"renewal\"", "The renewal is at risk."),
    (
        "2",
        "",
        "Harbours have tides.\n\nThe tide turns twice a day.",
    ),
    ("ü 3", "Bread", "Dough rests before it is baked."),
    ("4", "Ships", "A ship leaves the harbour with the tide."),
];

/// A collection in the home of the place.
fn collection(place: &Place, qrels: &str) -> PathBuf {
    let dir = place.home.path().join("tiny");
    std::fs::create_dir_all(dir.join("qrels")).unwrap();
    let document = |(id, title, text): &(&str, &str, &str)| {
        json!({"_id": id, "title": title, "text": text}).to_string()
    };
    let documents: Vec<String> = DOCUMENTS.iter().map(document).collect();
    let queries = [("a", "renewal at risk"), ("b", "tide"), ("c", "unjudged")];
    let query = |(id, text): &(&str, &str)| json!({"_id": id, "text": text}).to_string();
    let queries: Vec<String> = queries.iter().map(query).collect();
    std::fs::write(dir.join("corpus.jsonl"), documents.join("\n")).unwrap();
    std::fs::write(dir.join("queries.jsonl"), queries.join("\n")).unwrap();
    std::fs::write(dir.join("qrels/test.tsv"), qrels).unwrap();
    dir
}

const QRELS: &str =
    "query-id\tcorpus-id\tscore\na\tdoc/1\t2\nb\t2\t1\nb\t4\t1\nb\tü 3\t-1\nz\t2\t1\n";

fn report(place: &Place, args: &[&str]) -> Value {
    let (code, out, err) = place.run(&[&["eval"], args].concat());
    assert_eq!(code, 0, "{err}");
    serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {out}"))
}

#[test]
fn figures_are_the_same_in_this_process_and_through_a_server() {
    let place = Place::new();
    let dir = collection(&place, QRELS);
    let dir = dir.to_str().unwrap();
    let here = report(&place, &[dir]);
    let served = report(&place, &[dir, "--through-server"]);
    for (report, through) in [(&here, false), (&served, true)] {
        assert_eq!(report["through_server"], through);
        assert_eq!(
            (&report["documents"], &report["queries"]),
            (&json!(4), &json!(2))
        );
        assert_eq!(report["set_aside"]["judgements_of_unknown_queries"], 1);
        let lanes = report["lanes"].as_array().unwrap();
        assert_eq!(lanes.len(), 1, "{report}");
        assert_eq!(lanes[0]["lane"], "lexical");
        for figure in ["ndcg_10", "recall_100", "mrr_10"] {
            assert_eq!(lanes[0][figure], 1.0, "{figure}: {report}");
        }
        assert!(lanes[0]["p99_ms"].as_f64().unwrap() > 0.0);
        let note = report["notes"][0].as_str().unwrap();
        assert!(note.starts_with("lexical only: "), "{note}");
    }
}

#[test]
fn what_cannot_be_measured_is_told() {
    let place = Place::new();
    let dir = collection(&place, "q\td\ts\na\tdoc/1\t0\n");
    let refused = |args: &[&str], expect: &str| {
        let (code, _, err) = place.run(&[&["eval"], args].concat());
        assert!(code == 2 && err.contains(expect), "{code} {err}");
    };
    let path = dir.to_str().unwrap();
    refused(&[path], "eval_empty: ");
    refused(
        &[path, "--split", "train"],
        "qrels/train.tsv: There is no such file",
    );
    refused(&[path, "--k", "5"], "5 is not in 10..=200");
    refused(&["nowhere"], "eval_missing: nowhere/corpus.jsonl: ");
    std::fs::write(dir.join("qrels/test.tsv"), QRELS).unwrap();
    refused(&[path, "--model", "nowhere"], "embedding_model_dir");
    std::fs::write(
        dir.join("queries.jsonl"),
        "{\"_id\": \"a\", \"text\": \"x\"}\n{oops\n",
    )
    .unwrap();
    refused(&[path], "queries.jsonl, line 2: column 2: ");
}
