//! A server process: started, watched through /proc, ended.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::json;

use crate::client::{Client, request};

pub struct Server {
    pub port: u16,
    child: std::cell::RefCell<Child>,
    log: Option<PathBuf>,
}

impl Server {
    /// The product on a folder, away from the user's own settings and files;
    /// finds pages by meaning, too, if `model` holds a sentence encoder.
    pub fn start(binary: &Path, folder: &Path, home: &Path, model: Option<&Path>) -> Result<Self> {
        let port = free_port()?;
        let log = home.join("server.log");
        let file = fs::File::create(&log)?;
        let mut command = Command::new(binary);
        for (key, _) in std::env::vars_os() {
            let name = key.to_string_lossy();
            if name.starts_with("ESCUREL_") || name.starts_with("XDG_") {
                command.env_remove(&key);
            }
        }
        match model {
            Some(dir) => command.env("ESCUREL_EMBEDDING_MODEL_DIR", dir),
            None => command.env("ESCUREL_EMBEDDING_PROVIDER", "none"),
        };
        command.env("HOME", home).arg("serve").arg(folder);
        command.args(["--listen", &format!("127.0.0.1:{port}")]);
        command
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file);
        let child = command.spawn().context("the binary could not be started")?;
        Ok(Self {
            port,
            child: child.into(),
            log: Some(log),
        })
    }

    /// The handler to compare with, as a process of its own like the product.
    pub fn bare() -> Result<Self> {
        let port = free_port()?;
        let mut command = Command::new(std::env::current_exe()?);
        command
            .arg("bare")
            .env("ESCUREL_BENCH_PORT", port.to_string());
        let child = command.stdin(Stdio::null()).spawn()?;
        Ok(Self {
            port,
            child: child.into(),
            log: None,
        })
    }

    /// Waits until it accepts connections.
    pub async fn listening(&self, limit: Duration) -> Result<()> {
        let begun = Instant::now();
        while Client::connect(self.port).await.is_err() {
            if begun.elapsed() > limit {
                bail!("it does not listen\n{}", self.tail());
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        Ok(())
    }

    /// Waits until `/readyz` answers 200.
    pub async fn ready(&self, limit: Duration) -> Result<()> {
        let begun = Instant::now();
        loop {
            if let Ok(mut client) = Client::connect(self.port).await
                && client
                    .get("/readyz")
                    .await
                    .is_ok_and(|status| status == 200)
            {
                return Ok(());
            }
            if let Some(status) = self.child.borrow_mut().try_wait()? {
                bail!("the server ended ({status})\n{}", self.tail());
            }
            if begun.elapsed() > limit {
                bail!("not ready after {} s\n{}", limit.as_secs(), self.tail());
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// Waits until every page can be found by meaning, and tells how long it took.
    pub async fn meaningful(&self) -> Result<Duration> {
        let begun = Instant::now();
        let mut client = Client::connect(self.port).await?;
        let probe = request("search", &json!({"q": "what is this about", "k": 1}));
        let mut told = Instant::now();
        loop {
            let answer = client.call(probe.clone()).await?;
            let lanes = answer["lanes"].as_array();
            let lane = lanes.and_then(|lanes| lanes.iter().find(|lane| lane["lane"] == "vector"));
            let lane = lane.context("no lane for vectors")?;
            match lane["state"].as_str() {
                Some("fresh") => return Ok(begun.elapsed()),
                Some("lagging") => {}
                _ => bail!("no vectors: {}\n{}", lane["detail"], self.tail()),
            }
            if told.elapsed() > Duration::from_secs(10) {
                told = Instant::now();
                println!("{}", lane["detail"].as_str().unwrap_or_default());
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    /// Asks the process to end and waits for it.
    pub fn stop(&self) -> Result<()> {
        let mut child = self.child.borrow_mut();
        let asked = Command::new("kill").arg(child.id().to_string()).status();
        let begun = Instant::now();
        while asked.is_ok() && begun.elapsed() < Duration::from_secs(30) {
            if child.try_wait()?.is_some() {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        child.kill()?;
        child.wait()?;
        bail!("the server did not end when asked to\n{}", self.tail())
    }

    /// CPU time used so far, in seconds.
    pub fn cpu(&self) -> f64 {
        let stat = self.proc("stat");
        // After the name in brackets, which may itself hold blanks: utime and
        // stime are the 12th and 13th fields, in hundredths of a second.
        let Some((_, rest)) = stat.rsplit_once(')') else {
            return 0.0;
        };
        let ticks: u64 = rest
            .split_whitespace()
            .skip(11)
            .take(2)
            .filter_map(|f| f.parse::<u64>().ok())
            .sum();
        ticks as f64 / 100.0
    }

    /// Resident memory, in bytes.
    pub fn resident(&self) -> u64 {
        self.status_bytes("VmRSS:")
    }

    /// The part of [`Server::resident`] that is mapped files: page cache, given back when others need it.
    pub fn resident_mapped(&self) -> u64 {
        self.status_bytes("RssFile:")
    }

    pub fn resident_peak(&self) -> u64 {
        self.status_bytes("VmHWM:")
    }

    /// The last lines that the server wrote.
    pub fn tail(&self) -> String {
        let text = self
            .log
            .as_ref()
            .and_then(|log| fs::read_to_string(log).ok());
        let text = text.unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(15)..].join("\n")
    }

    fn status_bytes(&self, key: &str) -> u64 {
        let status = self.proc("status");
        let line = status.lines().find_map(|line| line.strip_prefix(key));
        let kib = line.and_then(|l| l.split_whitespace().next()?.parse::<u64>().ok());
        kib.unwrap_or(0) * 1024
    }

    fn proc(&self, name: &str) -> String {
        let id = self.child.borrow().id();
        fs::read_to_string(format!("/proc/{id}/{name}")).unwrap_or_default()
    }
}

impl Drop for Server {
    /// Also when a measurement failed, nothing is left running.
    fn drop(&mut self) {
        let mut child = self.child.borrow_mut();
        if let Ok(None) = child.try_wait() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn free_port() -> Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}
