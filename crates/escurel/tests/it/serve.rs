use serde_json::json;

use crate::support::{Place, Server, call, exists, http};

#[test]
fn a_vault_is_served_in_place() {
    let place = Place::new();
    let mut server = Server::start(&place, &[place.vault()]);
    let told = server.announcement();
    let url = format!("http://{}/mcp", server.address);
    for part in [
        "pages",
        "broken links",
        &format!("claude mcp add --transport http escurel {url}"),
        "\"mcpServers\"",
        "mcp '",
    ] {
        assert!(told.contains(part), "{part}\n{told}");
    }
    server.wait_ready();
    let hits = call(&server.address, "search", json!({"q": "renewal"}));
    assert_eq!(
        hits["structuredContent"]["hits"][0]["page_id"], "acme.md",
        "{hits}"
    );
    let (status, _) = http(
        &server.address,
        "POST",
        "/mcp",
        "host: evil.example\r\ncontent-type: application/json\r\n",
        "{}",
    );
    assert!(status == 400 || status == 403, "{status}");
    let added: Vec<_> = std::fs::read_dir(&place.vault)
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    assert_eq!(added.len(), 3, "only .escurel is added: {added:?}");
    server.signal("TERM");
    assert_eq!(server.exit_code(), Some(0));
    assert!(!exists(&place.vault.join(".escurel/socket")));
}

#[test]
fn the_demo_is_served_without_a_path() {
    let place = Place::new();
    let mut server = Server::start(&place, &[]);
    server.wait_ready();
    let skills = call(&server.address, "list_skills", json!({}));
    assert!(skills.to_string().contains("customer"), "{skills}");
    assert!(exists(
        &place
            .home
            .path()
            .join(".local/share/escurel/demo/tenants/demo/markdown/skills")
    ));
    server.signal("INT");
    assert_eq!(server.exit_code(), Some(0));
}

#[test]
fn a_second_server_is_refused() {
    let place = Place::new();
    let server = Server::start(&place, &[place.vault()]);
    let (code, out, err) = place.run(&["serve", place.vault(), "--listen", "127.0.0.1:0"]);
    assert_eq!((code, out.as_str()), (3, ""), "{err}");
    let pid = server.pid().to_string();
    assert!(
        err.starts_with("store_locked: ") && err.contains(&pid) && err.contains(&server.address),
        "{err}"
    );
}

#[test]
fn a_taken_port_is_named() {
    let place = Place::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let (code, _, err) = place.run(&["serve", place.vault(), "--listen", &address]);
    assert_eq!(code, 3, "{err}");
    let port = address.rsplit(':').next().unwrap();
    assert!(
        err.contains("port_in_use") && err.contains(port) && err.contains("--listen"),
        "{err}"
    );
    let mut server = Server::start(&place, &[place.vault()]);
    server.signal("TERM");
    assert_eq!(server.exit_code(), Some(0), "the folder was free again");
}

#[test]
fn settings_that_cannot_be_kept_stop_the_start() {
    let place = Place::new();
    let (code, _, err) = place.run(&["serve", place.vault(), "--listen", "0.0.0.0:0"]);
    assert!(code == 2 && err.contains("--insecure"), "{code} {err}");
    for (name, part) in [
        ("ESCUREL_LISTE", "ESCUREL_LISTEN"),
        ("ESCUREL_OIDC_ISSUER", "does not have token verification"),
    ] {
        let done = place
            .command()
            .args(["serve", place.vault()])
            .env(name, "x")
            .output()
            .unwrap();
        let err = String::from_utf8(done.stderr).unwrap();
        assert!(done.status.code() == Some(2) && err.contains(part), "{err}");
    }
    let (code, _, err) = place.run(&["serve", "/nowhere/at/all"]);
    assert!(code != 0 && err.contains("/nowhere/at/all"), "{code} {err}");
    assert!(
        !exists(&place.vault.join(".escurel")),
        "nothing was touched"
    );
}

#[test]
fn seeds_and_tenants_never_hide_a_folder_of_notes() {
    let place = Place::new();
    let seed = place.home.path().join("seed");
    std::fs::create_dir(&seed).unwrap();
    std::fs::write(seed.join("x.md"), "# X\n").unwrap();
    let seed = seed.to_str().unwrap();
    let data = place.home.path().join("data");
    let data = data.to_str().unwrap();
    for (args, part) in [
        (vec![place.vault(), "--seed-dir", seed], "folder of notes"),
        (vec![place.vault(), "--tenant", "zz"], "without tenants"),
        (
            vec![data, "--seed-dir", "/nowhere/at/all"],
            "/nowhere/at/all",
        ),
    ] {
        let (code, _, err) =
            place.run(&[&["serve"][..], &args, &["--listen", "127.0.0.1:0"]].concat());
        assert!(code == 2 && err.contains(part), "{args:?} {code} {err}");
    }
    assert_eq!(std::fs::read_dir(&place.vault).unwrap().count(), 2);
    assert!(!exists(std::path::Path::new(data)));
    let mut server = Server::start(&place, &[data, "--tenant", "one", "--seed-dir", seed]);
    server.wait_ready();
    server.signal("TERM");
    assert_eq!(server.exit_code(), Some(0));
    let (code, _, err) = place.run(&["serve", data, "--tenant", "zz", "--listen", "127.0.0.1:0"]);
    assert!(
        code == 2 && err.contains("zz") && err.contains("one"),
        "{code} {err}"
    );
    assert!(!exists(&std::path::Path::new(data).join("tenants/zz")));
    std::fs::write(std::path::Path::new(data).join("stray.md"), "# Stray\n").unwrap();
    let server = Server::start(&place, &[data]);
    assert!(server.announcement().contains("stray.md"));
}

#[test]
fn a_killed_server_leaves_nothing_that_hinders() {
    let place = Place::new();
    let mut server = Server::start(&place, &[place.vault()]);
    server.wait_ready();
    server.signal("KILL");
    server.exit_code();
    let again = Server::start(&place, &[place.vault()]);
    again.wait_ready();
    assert!(!call(&again.address, "search", json!({"q": "renewal"})).is_null());
}
