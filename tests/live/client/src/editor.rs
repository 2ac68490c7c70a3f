//! A replica of one page and its socket.

use anyhow::{Context, Result, bail, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures_util::{SinkExt, StreamExt};
use loro::{ExportMode, LoroDoc};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use crate::edits::{self, Dice};

pub struct Editor {
    doc: LoroDoc,
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    session: String,
    /// Changes that were sent and are not acknowledged.
    unacknowledged: usize,
}

impl Editor {
    pub async fn open(url: &str, session: &str) -> Result<Editor> {
        let (socket, _) = connect_async(url).await?;
        let mut editor = Editor {
            doc: LoroDoc::new(),
            socket,
            session: session.to_owned(),
            unacknowledged: 0,
        };
        editor
            .write(&json!({ "type": "hello", "session": session, "content": false }))
            .await?;
        let answer = editor.read().await?;
        ensure!(
            answer["type"] == "hello_ack",
            "hello is answered with {answer}"
        );
        editor.import(&answer["update"])?;
        Ok(editor)
    }

    /// Makes changes and sends each.
    pub async fn edit(&mut self, seed: u64, times: u64) -> Result<()> {
        let mut dice = Dice::new(seed);
        for _ in 0..times {
            let before = self.doc.oplog_vv();
            edits::make(&self.doc.get_text("body"), &mut dice)?;
            self.doc.commit();
            if self.doc.oplog_vv() == before {
                continue;
            }
            let op = self.doc.export(ExportMode::updates(&before))?;
            self.unacknowledged += 1;
            let op = STANDARD.encode(op);
            self.write(&json!({ "type": "op", "session": self.session, "op": op }))
                .await?;
        }
        Ok(())
    }

    /// Takes the next frame. May be given up at any time.
    pub async fn listen(&mut self) -> Result<()> {
        let frame = self.read().await?;
        match frame["type"].as_str() {
            Some("op_ack") => {
                let left = self.unacknowledged.checked_sub(1);
                self.unacknowledged = left.context("an acknowledgement of nothing")?;
            }
            Some("peer_op") => self.import(&frame["op"])?,
            _ => bail!("unexpected: {frame}"),
        }
        Ok(())
    }

    pub fn report(&self) -> Value {
        let version = self.doc.oplog_vv();
        let version = version
            .iter()
            .map(|(peer, end)| (peer.to_string(), json!(end)));
        json!({
            "text": self.doc.get_text("body").to_string(),
            "version": Value::Object(version.collect()),
            "unacknowledged": self.unacknowledged,
        })
    }

    fn import(&self, update: &Value) -> Result<()> {
        let bytes = STANDARD.decode(update.as_str().context("no update")?)?;
        let status = self.doc.import(&bytes)?;
        ensure!(
            status.pending.is_none(),
            "a change waits for one that never came"
        );
        Ok(())
    }

    async fn write(&mut self, frame: &Value) -> Result<()> {
        Ok(self.socket.send(Message::text(frame.to_string())).await?)
    }

    async fn read(&mut self) -> Result<Value> {
        loop {
            match self.socket.next().await.context("the server went away")?? {
                Message::Text(text) => return Ok(serde_json::from_str(&text)?),
                Message::Close(frame) => bail!("the server closed: {frame:?}"),
                _ => {}
            }
        }
    }
}
