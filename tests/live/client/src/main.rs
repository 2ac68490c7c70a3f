//! One live editor that is not the JavaScript one, told what to do by lines of JSON.
//!
//! `open` joins a session, `edit` types as its seed says, `report` tells what there is. Each line is
//! answered by one; `problem` in it is something that must not happen. What others type is taken
//! while nothing is asked.

mod editor;
mod edits;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};

use editor::Editor;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    let mut editor: Option<Editor> = None;
    let mut problem = None;
    loop {
        let line = tokio::select! {
            line = lines.next_line() => line?,
            heard = listen(&mut editor), if problem.is_none() => {
                problem = heard.err();
                continue;
            }
        };
        let Some(line) = line else { return Ok(()) };
        let answer = match problem.take() {
            Some(error) => Err(error),
            None => obey(&mut editor, &line).await,
        };
        let answer = answer.unwrap_or_else(|error| json!({ "problem": format!("{error:#}") }));
        println!("{answer}");
    }
}

async fn listen(editor: &mut Option<Editor>) -> Result<()> {
    match editor {
        Some(editor) => editor.listen().await,
        None => std::future::pending().await,
    }
}

async fn obey(editor: &mut Option<Editor>, line: &str) -> Result<Value> {
    let asked: Value = serde_json::from_str(line)?;
    let text = |key: &str| {
        asked[key]
            .as_str()
            .with_context(|| format!("`{key}` is missing"))
    };
    let number = |key: &str| {
        asked[key]
            .as_u64()
            .with_context(|| format!("`{key}` is missing"))
    };
    if text("do")? == "open" {
        *editor = Some(Editor::open(text("url")?, text("session")?).await?);
        return Ok(json!({}));
    }
    let editor = editor.as_mut().context("nothing is open")?;
    match text("do")? {
        "edit" => {
            editor.edit(number("seed")?, number("times")?).await?;
            Ok(json!({}))
        }
        "report" => Ok(editor.report()),
        other => bail!("cannot {other}; there are open, edit and report"),
    }
}
