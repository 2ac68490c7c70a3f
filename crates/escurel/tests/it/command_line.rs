use serde_json::Value;

use crate::support::{Place, Server};

#[test]
fn answers_are_the_same_with_and_without_a_server() {
    let place = Place::new();
    let ask = || {
        let (code, out, err) =
            place.run(&["search", "renewal", "--k", "5", "--folder", place.vault()]);
        assert_eq!(code, 0, "{err}");
        let answer: Value = serde_json::from_str(&out).unwrap();
        answer["hits"][0]["page_id"].as_str().unwrap().to_owned()
    };
    assert_eq!(ask(), "acme.md");
    let server = Server::start(&place, &[place.vault()]);
    server.wait_ready();
    assert_eq!(ask(), "acme.md");
}

#[test]
fn exit_codes() {
    let place = Place::new();
    for (args, code, part) in [
        (vec!["search", "--nonsense"], 2, "--nonsense"),
        (
            vec!["search", "x", "--k", "many", "--folder", place.vault()],
            2,
            "invalid_argument: ",
        ),
        (
            vec![
                "list-instances",
                "nothing-like-it",
                "--folder",
                place.vault(),
            ],
            1,
            "skill_not_found: ",
        ),
        (
            vec!["search", "x", "--folder", "/nowhere"],
            2,
            "folder_not_found: ",
        ),
        (vec![], 2, "Usage"),
    ] {
        let (got, out, err) = place.run(&args);
        assert_eq!(got, code, "{args:?} {out} {err}");
        assert!(err.contains(part), "{args:?} {err}");
    }
}

#[test]
fn upkeep() {
    let place = Place::new();
    let folder = ["--folder", place.vault()];
    let (code, _, err) = place.run(&["list-skills", "--folder", place.vault()]);
    assert_eq!(code, 0, "{err}");
    for command in [
        &["verify"][..],
        &["rebuild"],
        &["confirm-deletions"],
        &["journal", "export"],
        &["journal", "repair"],
    ] {
        let (code, _, err) = place.run(&[command, &folder].concat());
        assert!(
            code == 1 && err.starts_with("folder_not_served: "),
            "{code} {err}"
        );
    }
    let left = std::fs::read_dir(&place.vault).unwrap().count();
    assert_eq!(left, 2, "looking adds nothing to a folder");
    let mut server = Server::start(&place, &[place.vault()]);
    server.wait_ready();
    server.signal("TERM");
    assert_eq!(server.exit_code(), Some(0));
    let (code, out, err) = place.run(&[&["verify", "--json"][..], &folder].concat());
    let report: Value = serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e} {out} {err}"));
    assert_eq!((code, &report["ok"]), (0, &Value::Bool(true)), "{out}");
    let (code, out, err) = place.run(&[&["rebuild", "--json"][..], &folder].concat());
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("\"pages\""), "{out}");
    let (code, out, err) = place.run(&[&["journal", "export"][..], &folder].concat());
    assert_eq!(code, 0, "{err}");
    assert!(
        out.lines()
            .all(|line| serde_json::from_str::<Value>(line).is_ok())
            && !out.is_empty(),
        "{out}"
    );
    let server = Server::start(&place, &[place.vault()]);
    server.wait_ready();
    let (code, served, err) = place.run(&[&["journal", "export"][..], &folder].concat());
    assert_eq!(code, 0, "{err}");
    assert!(served.starts_with(out.lines().next().unwrap()));
    for command in ["verify", "confirm-deletions"] {
        let (code, out, err) = place.run(&[&[command][..], &folder].concat());
        assert_eq!(code, 0, "{command} {out} {err}");
    }
    let (code, _, err) = place.run(&[&["rebuild"][..], &folder].concat());
    assert!(
        code == 3 && err.starts_with("store_locked: "),
        "an index in use is not thrown away: {code} {err}"
    );
}

#[test]
fn a_broken_journal_is_a_finding_and_no_endless_wait() {
    let place = Place::new();
    let folder = ["--folder", place.vault()];
    let mut server = Server::start(&place, &[place.vault()]);
    server.wait_ready();
    server.signal("TERM");
    assert_eq!(server.exit_code(), Some(0));
    let segment = place.vault.join(".escurel/journal/audit/00000001.jsonl");
    let text = std::fs::read_to_string(&segment).unwrap();
    std::fs::write(&segment, text.replacen("page_version", "page_versiom", 1)).unwrap();
    let named = |out: &str| {
        let report: Value = serde_json::from_str(out).unwrap();
        let findings = report["findings"].as_array().unwrap().clone();
        findings
            .iter()
            .any(|f| f["part"] == "journal" && f["item"].to_string().contains("record 1"))
    };
    let (code, out, err) = place.run(&[&["verify", "--json"][..], &folder].concat());
    assert!(code == 1 && named(&out), "{code} {out} {err}");
    let (code, _, err) = place.run(&[&["rebuild"][..], &folder].concat());
    assert!(
        code == 3 && err.starts_with("journal_broken: "),
        "{code} {err}"
    );
    let server = Server::start(&place, &[place.vault()]);
    server.wait_ready();
    let told = server.announcement();
    assert!(
        told.contains("(read-only)") && told.contains("backup"),
        "{told}"
    );
    let hits = crate::support::call(
        &server.address,
        "search",
        serde_json::json!({"q": "renewal"}),
    );
    assert_eq!(
        hits["structuredContent"]["hits"][0]["page_id"], "acme.md",
        "{hits}"
    );
    let (code, out, err) = place.run(&[&["verify", "--json"][..], &folder].concat());
    assert!(code == 1 && named(&out), "{code} {out} {err}");
}

#[test]
fn a_broken_journal_is_repaired_while_nobody_serves() {
    let place = Place::new();
    let stop = |mut server: Server| {
        server.signal("TERM");
        assert_eq!(server.exit_code(), Some(0));
    };
    let repair = |args: &[&str]| {
        let (code, out, err) = place.run(&[&["journal", "repair"][..], args].concat());
        assert_eq!(code, 0, "{err}");
        serde_json::from_str::<Value>(&out).unwrap()
    };
    let server = Server::start(&place, &[place.vault()]);
    server.wait_ready();
    let (code, _, err) = place.run(&["journal", "repair", place.vault()]);
    assert!(
        code == 3 && err.starts_with("store_locked: ") && err.contains("process"),
        "{code} {err}"
    );
    stop(server);
    assert_eq!(repair(&[place.vault()])["broken"], Value::Null);
    let journal = place.vault.join(".escurel/journal");
    let segment = journal.join("audit/00000001.jsonl");
    let broken =
        std::fs::read_to_string(&segment)
            .unwrap()
            .replacen("page_version", "page_versiom", 1);
    std::fs::write(&segment, &broken).unwrap();
    let planned = repair(&["--folder", place.vault(), "--dry-run"]);
    assert_eq!(
        (&planned["repaired"], &planned["broken"]["lost_records"]),
        (&false.into(), &"1".into())
    );
    assert_eq!(std::fs::read_to_string(&segment).unwrap(), broken);
    let done = repair(&[place.vault()]);
    assert_eq!(
        (&done["repaired"], &done["broken"]),
        (&true.into(), &planned["broken"])
    );
    let aside = journal.join("audit.broken-1/00000001.jsonl");
    assert_eq!(std::fs::read_to_string(aside).unwrap(), broken);
    let server = Server::start(&place, &[place.vault()]);
    server.wait_ready();
    assert!(!server.announcement().contains("read-only"));
    stop(server);
    let (code, out, err) = place.run(&["verify", "--folder", place.vault()]);
    assert_eq!(code, 0, "{out} {err}");
}

#[test]
fn help_teaches() {
    let place = Place::new();
    let (code, out, _) = place.run(&["--help"]);
    assert!(
        code == 0
            && out.contains("Examples:")
            && out.contains("escurel serve ~/notes")
            && out.contains("Exit codes"),
        "{out}"
    );
    for command in ["serve", "mcp", "search", "expand", "verify"] {
        let (code, out, _) = place.run(&[command, "--help"]);
        assert!(code == 0 && out.contains("Usage: escurel"), "{out}");
    }
    for shell in ["bash", "zsh", "fish"] {
        assert!(place.run(&["completions", shell]).1.contains("list-skills"));
    }
    assert!(place.run(&["man"]).1.contains(".TH escurel"));
    assert_eq!(
        place.run(&["version"]).1.trim(),
        format!("escurel {}", env!("CARGO_PKG_VERSION"))
    );
}

#[test]
fn a_reader_that_goes_away_ends_it_quietly() {
    let place = Place::new();
    let run = |args: &[&str]| {
        let mut child = place.command().args(args).spawn().unwrap();
        drop(child.stdout.take());
        let done = child.wait_with_output().unwrap();
        (done.status.code(), String::from_utf8(done.stderr).unwrap())
    };
    let folder = ["--folder", place.vault()];
    let mut server = Server::start(&place, &[place.vault()]);
    server.wait_ready();
    server.signal("TERM");
    assert_eq!(server.exit_code(), Some(0));
    for args in [
        &["search", "renewal"][..],
        &["journal", "export"],
        &["list-skills"],
    ] {
        let (code, err) = run(&[args, &folder].concat());
        assert_eq!((code, err.as_str()), (Some(0), ""), "{args:?}");
    }
}
