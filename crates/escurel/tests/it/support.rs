//! Starts the binary away from the user's files, and talks to it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

pub const PATIENCE: Duration = Duration::from_secs(30);

/// A home with a small vault in it.
pub struct Place {
    pub home: TempDir,
    pub vault: PathBuf,
}

impl Place {
    pub fn new() -> Place {
        let home = tempfile::tempdir().unwrap();
        let vault = home.path().join("my notes");
        std::fs::create_dir(&vault).unwrap();
        std::fs::write(
            vault.join("acme.md"),
            "# Acme\n\nThe renewal is at risk, see [[sued]].\n",
        )
        .unwrap();
        std::fs::write(vault.join("sued.md"), "# Süd\n\nQuiet.\n").unwrap();
        Place { home, vault }
    }

    pub fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_escurel"));
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy().into_owned();
            if ["ESCUREL_", "XDG_", "PIP_"]
                .iter()
                .any(|of| name.starts_with(of))
            {
                command.env_remove(name);
            }
        }
        command
            .env("HOME", self.home.path())
            .current_dir(self.home.path());
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs to the end: exit code, output, errors.
    pub fn run(&self, args: &[&str]) -> (i32, String, String) {
        let done = self.command().args(args).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (
            done.status.code().unwrap_or(-1),
            text(done.stdout),
            text(done.stderr),
        )
    }

    pub fn vault(&self) -> &str {
        self.vault.to_str().unwrap()
    }
}

pub struct Server {
    child: Child,
    pub address: String,
    /// Lines of standard output.
    pub lines: Receiver<String>,
}

impl Server {
    pub fn start(place: &Place, args: &[&str]) -> Server {
        let mut child = place
            .command()
            .arg("serve")
            .args(args)
            .args(["--listen", "127.0.0.1:0"])
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let lines = lines_of(child.stdout.take().unwrap());
        let first = lines.recv_timeout(PATIENCE).unwrap();
        let address = first
            .split("http://")
            .nth(1)
            .unwrap()
            .trim_end_matches("/mcp")
            .to_owned();
        Server {
            child,
            address,
            lines,
        }
    }

    /// All output until it says how to connect.
    pub fn announcement(&self) -> String {
        let mut text = String::new();
        while !text.contains("\"args\"") {
            text.push_str(&self.lines.recv_timeout(PATIENCE).unwrap());
            text.push('\n');
        }
        text
    }

    pub fn wait_ready(&self) {
        let end = Instant::now() + PATIENCE;
        while http(&self.address, "GET", "/readyz", "", "").0 != 200 {
            assert!(Instant::now() < end, "not ready");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(
            Command::new("kill")
                .args([&format!("-{name}"), &pid])
                .status()
                .unwrap()
                .success()
        );
    }

    pub fn exit_code(&mut self) -> Option<i32> {
        wait(&mut self.child)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn wait(child: &mut Child) -> Option<i32> {
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    None
}

fn lines_of(output: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

/// One request on its own connection.
pub fn http(address: &str, method: &str, path: &str, headers: &str, body: &str) -> (u16, Value) {
    let mut stream = TcpStream::connect(address).unwrap();
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n{body}"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let status = answer
        .split(' ')
        .nth(1)
        .and_then(|s| s.parse().ok())
        .unwrap_or(0);
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    (status, serde_json::from_str(body).unwrap_or(Value::Null))
}

pub fn call(address: &str, tool: &str, arguments: Value) -> Value {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}});
    http(
        address,
        "POST",
        "/mcp",
        "content-type: application/json\r\n",
        &body.to_string(),
    )
    .1["result"]
        .clone()
}

/// An agent's own server.
pub struct Agent {
    pub child: Child,
    input: Option<ChildStdin>,
    replies: Receiver<String>,
    next: u64,
}

impl Agent {
    pub fn start(place: &Place) -> Agent {
        let mut child = place
            .command()
            .args(["mcp", place.vault()])
            .stdin(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let (input, replies) = (child.stdin.take(), lines_of(child.stdout.take().unwrap()));
        Agent {
            child,
            input,
            replies,
            next: 0,
        }
    }

    pub fn write(&mut self, line: &str) {
        let input = self.input.as_mut().unwrap();
        input.write_all(line.as_bytes()).unwrap();
        input.write_all(b"\n").unwrap();
        input.flush().unwrap();
    }

    pub fn read(&self) -> Value {
        serde_json::from_str(&self.replies.recv_timeout(PATIENCE).unwrap()).unwrap()
    }

    pub fn ask(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let id = self.next;
        self.write(
            &json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string(),
        );
        let answer = self.read();
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    /// Titles found for "renewal".
    pub fn search(&mut self) -> Value {
        let answer = self.ask(
            "tools/call",
            json!({"name": "search", "arguments": {"q": "renewal"}}),
        );
        answer["result"]["structuredContent"]["hits"][0]["page_id"].clone()
    }

    pub fn end(mut self) -> Option<i32> {
        self.input.take();
        wait(&mut self.child)
    }

    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}
