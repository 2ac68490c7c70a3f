use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::{Agent, Place, Server};

#[test]
fn both_eras_on_one_pipe() {
    let place = Place::new();
    let mut agent = Agent::start(&place);
    let opened = agent.ask("initialize", json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}));
    assert_eq!(opened["result"]["protocolVersion"], "2025-06-18");
    agent.write(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    assert_eq!(agent.search(), "acme.md");
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}});
    let found = agent.ask("server/discover", json!({"_meta": meta}));
    assert_eq!(found["result"]["resultType"], "complete");
    agent.write("{broken");
    let answer = agent.read();
    assert!(
        answer["error"]["code"] == -32700 && answer.get("id").is_none(),
        "{answer}"
    );
    assert_eq!(agent.end(), Some(0));
}

#[test]
fn many_requests_at_once_are_all_answered() {
    let place = Place::new();
    let mut agent = Agent::start(&place);
    const COUNT: usize = 300;
    for id in 0..COUNT {
        agent.write(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "search", "arguments": {"q": "renewal"}}}).to_string());
    }
    let mut ids: Vec<u64> = (0..COUNT)
        .map(|_| agent.read()["id"].as_u64().unwrap())
        .collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), COUNT);
    assert_eq!(agent.end(), Some(0));
}

#[test]
fn the_end_of_the_input_lets_answers_out() {
    let place = Place::new();
    let mut agent = Agent::start(&place);
    agent.write(r#"{"jsonrpc":"2.0","id":"last","method":"ping"}"#);
    let (child, answer) = {
        let answer = agent.read();
        (agent.end(), answer)
    };
    assert_eq!((child, answer["id"].as_str()), (Some(0), Some("last")));
}

#[test]
fn agents_share_a_server() {
    let place = Place::new();
    let mut server = Server::start(&place, &[place.vault()]);
    server.wait_ready();
    let mut agents: Vec<Agent> = (0..3).map(|_| Agent::start(&place)).collect();
    for agent in &mut agents {
        assert_eq!(agent.search(), "acme.md");
    }
    server.signal("KILL");
    server.exit_code();
    let killed = Instant::now();
    for agent in &mut agents {
        assert_eq!(agent.search(), "acme.md");
    }
    assert!(
        killed.elapsed() < Duration::from_secs(5),
        "{:?}",
        killed.elapsed()
    );
}

#[test]
fn a_killed_owner_is_replaced_without_being_asked() {
    let place = Place::new();
    let mut first = Agent::start(&place);
    assert_eq!(first.search(), "acme.md");
    let mut second = Agent::start(&place);
    let mut third = Agent::start(&place);
    assert_eq!(
        (second.search(), third.search()),
        (json!("acme.md"), json!("acme.md"))
    );
    first.kill();
    // Somebody owns the folder again, so the command line is answered by it.
    let (code, out, err) = place.run(&["search", "renewal", "--folder", place.vault()]);
    assert!(code == 0 && out.contains("acme.md"), "{out} {err}");
    assert_eq!(second.search(), "acme.md");
    second.kill();
    assert_eq!(third.search(), "acme.md");
    assert_eq!(third.end(), Some(0));
}
