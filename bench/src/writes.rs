//! Durable writes, and pages that several people type into at once.

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures_util::future::try_join_all;
use futures_util::{SinkExt, StreamExt};
use loro::{ExportMode, LoroDoc};
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use crate::client::request;
use crate::connect;
use crate::ops::CLIENTS;
use crate::server::Server;
use crate::stats::{Latency, latency};

#[derive(Serialize)]
pub struct Write {
    pub name: &'static str,
    pub latency: Latency,
    pub per_s: f64,
    /// Of the same number of bytes on the same disk.
    pub times_fsync_p50: f64,
}

/// Of a page, and of what is flushed beside it for comparison. Bytes.
const PAGE: usize = 4096;
/// Pages that a writer changes in turn.
const PAGES: usize = 50;
/// Pages that are open at once, people at each, and how often one of them types.
const OPEN: usize = 100;
const PEOPLE: usize = 4;
const PAUSE: Duration = Duration::from_millis(200);

pub async fn measure(server: &Server, folder: &Path, span: Duration) -> Result<Vec<Write>> {
    let fsync = flushes(folder)?;
    let mut all = Vec::new();
    let mut keep = |name, took: Vec<Duration>, seconds: f64| {
        let per_s = took.len() as f64 / seconds;
        let latency = latency(took);
        all.push(Write {
            name,
            times_fsync_p50: latency.p50_ms / fsync.p50_ms,
            latency,
            per_s,
        });
    };
    let begun = Instant::now();
    let took = update(server, 0, span).await?;
    keep("update_page, 4 kB", took, begun.elapsed().as_secs_f64());
    let begun = Instant::now();
    let writers = (1..=CLIENTS).map(|writer| update(server, writer, span));
    let took = try_join_all(writers).await?.concat();
    keep(
        "update_page, 8 writers",
        took,
        begun.elapsed().as_secs_f64(),
    );
    let begun = Instant::now();
    let took = update_and_find(server, span).await?;
    keep(
        "update_page and search",
        took,
        begun.elapsed().as_secs_f64(),
    );
    let begun = Instant::now();
    let took = edit(server, span).await?;
    keep("edit_page", took, begun.elapsed().as_secs_f64());

    let begun = Instant::now();
    let (acks, heard) = typing(server, 0, 2, Duration::ZERO, span).await?;
    let seconds = begun.elapsed().as_secs_f64();
    keep("op to op_ack", acks, seconds);
    keep("op to peer_op", heard, seconds);
    let begun = Instant::now();
    let pages = (1..=OPEN).map(|page| typing(server, page, PEOPLE, PAUSE, span));
    let (acks, heard): (Vec<_>, Vec<_>) = try_join_all(pages).await?.into_iter().unzip();
    let seconds = begun.elapsed().as_secs_f64();
    keep("op_ack, 100 pages of 4", acks.concat(), seconds);
    keep("peer_op, 100 pages of 4", heard.concat(), seconds);
    all.push(Write {
        name: "fsync of 4 kB",
        per_s: 1e3 / fsync.p50_ms,
        times_fsync_p50: 1.0,
        latency: fsync,
    });
    Ok(all)
}

pub const HEAD: &str = "durable                    p50 ms   p95 ms        /s    x fsync p50";

pub fn line(write: &Write) -> String {
    format!(
        "{:<25}{:>8.3} {:>8.3} {:>9.0} {:>14.1}",
        write.name, write.latency.p50_ms, write.latency.p95_ms, write.per_s, write.times_fsync_p50
    )
}

fn flushes(folder: &Path) -> Result<Latency> {
    let mut file = tempfile::tempfile_in(folder)?;
    let mut took = Vec::new();
    for _ in 0..200 {
        let begun = Instant::now();
        file.write_all(&[b'x'; PAGE])?;
        file.sync_data()?;
        took.push(begun.elapsed());
    }
    Ok(latency(took))
}

fn text(writer: usize, n: usize) -> String {
    let head = format!("# Page\n\nWritten zw{writer}x{n}q by the bench.\n\n");
    let filler = "Some words that fill a line of an ordinary page of notes.\n";
    let lines = (PAGE - head.len()) / filler.len();
    head + &filler.repeat(lines)
}

async fn update(server: &Server, writer: usize, span: Duration) -> Result<Vec<Duration>> {
    let mut client = connect(server).await?;
    let mut took = Vec::new();
    let end = Instant::now() + span;
    while Instant::now() < end {
        let n = took.len();
        let page_id = format!("bench-writes/w{writer}-{}.md", n % PAGES);
        let asked = request(
            "update_page",
            &json!({"page_id": page_id, "content": text(writer, n)}),
        );
        let begun = Instant::now();
        let answer = client.call(asked).await?;
        took.push(begun.elapsed());
        ensure!(answer["ok"] == true, "refused: {answer}");
    }
    Ok(took)
}

async fn update_and_find(server: &Server, span: Duration) -> Result<Vec<Duration>> {
    let mut client = connect(server).await?;
    let mut took = Vec::new();
    let end = Instant::now() + span;
    while Instant::now() < end {
        let n = took.len();
        let page_id = format!("bench-writes/found-{}.md", n % PAGES);
        let asked = request(
            "update_page",
            &json!({"page_id": page_id, "content": text(99, n)}),
        );
        let search = request("search", &json!({"q": format!("zw99x{n}q"), "k": 1}));
        let begun = Instant::now();
        client.call(asked).await?;
        let found = client.call(search).await?;
        took.push(begun.elapsed());
        let first = found["hits"][0]["page_id"].as_str();
        ensure!(first == Some(&page_id), "{page_id} was not found: {found}");
    }
    Ok(took)
}

async fn edit(server: &Server, span: Duration) -> Result<Vec<Duration>> {
    let mut client = connect(server).await?;
    let mut took = Vec::new();
    let end = Instant::now() + span;
    while Instant::now() < end {
        let n = took.len();
        let page_id = format!("bench-writes/w0-{}.md", n % PAGES.min(10));
        let asked = request(
            "edit_page",
            &json!({"page_id": page_id, "key": "edited", "value": n}),
        );
        let begun = Instant::now();
        let answer = client.call(asked).await?;
        took.push(begun.elapsed());
        ensure!(answer["ok"] == true, "refused: {answer}");
    }
    Ok(took)
}

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// One page, one who types, the others listening: the time to each acknowledgement, and to each
/// change that somebody hears.
async fn typing(
    server: &Server,
    page: usize,
    people: usize,
    pause: Duration,
    span: Duration,
) -> Result<(Vec<Duration>, Vec<Duration>)> {
    let page_id = format!("bench-live/p{page}.md");
    let mut client = connect(server).await?;
    let made = request(
        "update_page",
        &json!({"page_id": page_id, "content": text(page, 0)}),
    );
    client.call(made).await?;
    let mut sockets = Vec::new();
    let mut document = None;
    for _ in 0..people {
        let opened = client
            .call(request("open_session", &json!({ "page_id": page_id })))
            .await?;
        let session = opened["session"].as_str().context("no session")?.to_owned();
        let snapshot = opened["snapshot"].as_str().context("no snapshot")?;
        if document.is_none() {
            let doc = LoroDoc::new();
            doc.import(&STANDARD.decode(snapshot)?)?;
            document = Some(doc);
        }
        sockets.push((attach(server, &session).await?, session));
    }
    let (typist, session) = sockets.remove(0);
    let document = document.context("nobody types")?;
    let sent: Arc<Mutex<Vec<Instant>>> = Arc::default();
    let (over, _) = tokio::sync::watch::channel(false);
    let listeners = sockets.into_iter().map(|(socket, session)| {
        let (sent, over) = (sent.clone(), over.subscribe());
        async move {
            listen(socket, sent, over)
                .await
                .map(|heard| (heard, session))
        }
    });
    let listening = try_join_all(listeners);
    let typing = async {
        let took = types(typist, &session, &document, &sent, pause, span).await;
        // The last changes are still on their way.
        tokio::time::sleep(Duration::from_millis(100)).await;
        over.send_replace(true);
        took
    };
    let (acks, heard) = tokio::join!(typing, listening);
    let (heard, mut sessions): (Vec<_>, Vec<_>) = heard?.into_iter().unzip();
    sessions.push(session);
    for session in sessions {
        client
            .call(request("close_session", &json!({ "session": session })))
            .await?;
    }
    Ok((acks?, heard.concat()))
}

async fn attach(server: &Server, session: &str) -> Result<Socket> {
    let (mut socket, _) = connect_async(format!("ws://127.0.0.1:{}/ws", server.port)).await?;
    let hello = json!({"type": "hello", "session": session, "content": false, "have": null});
    socket.send(Message::text(hello.to_string())).await?;
    let answer = next(&mut socket).await?;
    ensure!(answer["type"] == "hello_ack", "{answer}");
    Ok(socket)
}

async fn next(socket: &mut Socket) -> Result<Value> {
    while let Some(message) = socket.next().await {
        if let Message::Text(text) = message? {
            return Ok(serde_json::from_str(&text)?);
        }
    }
    bail!("the socket was closed")
}

async fn types(
    mut socket: Socket,
    session: &str,
    document: &LoroDoc,
    sent: &Mutex<Vec<Instant>>,
    pause: Duration,
    span: Duration,
) -> Result<Vec<Duration>> {
    let mut took = Vec::new();
    let end = Instant::now() + span;
    let body = document.get_text("body");
    while Instant::now() < end {
        let before = document.oplog_vv();
        body.insert(took.len() % 30, "x")?;
        document.commit();
        let op = document.export(ExportMode::updates(&before))?;
        let frame = json!({"type": "op", "session": session, "op": STANDARD.encode(op)});
        let begun = Instant::now();
        sent.lock().push(begun);
        socket.send(Message::text(frame.to_string())).await?;
        let answer = next(&mut socket).await?;
        took.push(begun.elapsed());
        ensure!(answer["type"] == "op_ack", "{answer}");
        tokio::time::sleep(pause).await;
    }
    Ok(took)
}

async fn listen(
    mut socket: Socket,
    sent: Arc<Mutex<Vec<Instant>>>,
    mut over: tokio::sync::watch::Receiver<bool>,
) -> Result<Vec<Duration>> {
    let mut took = Vec::new();
    loop {
        let frame = tokio::select! {
            frame = next(&mut socket) => frame?,
            _ = over.wait_for(|over| *over) => return Ok(took),
        };
        ensure!(frame["type"] == "peer_op", "{frame}");
        let begun = sent.lock().get(took.len()).copied();
        took.push(begun.context("heard before it was typed")?.elapsed());
    }
}
