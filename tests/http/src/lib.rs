//! An HTTP server in a test's own process: real sockets, answers as the test
//! tells, and a record of what was asked.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::Value;

/// What somebody asked.
#[derive(Clone, Debug)]
pub struct Request {
    pub method: String,
    /// With the query.
    pub path: String,
    headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Request {
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self
            .headers
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// The body; null if it is not JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

/// What it is told.
#[derive(Clone, Debug)]
pub struct Reply {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    cut: Option<usize>,
    pause: Duration,
}

impl Reply {
    pub fn status(status: u16) -> Reply {
        Reply {
            status,
            headers: Vec::new(),
            body: Vec::new(),
            cut: None,
            pause: Duration::ZERO,
        }
    }

    pub fn bytes(body: impl Into<Vec<u8>>) -> Reply {
        Reply {
            body: body.into(),
            ..Reply::status(200)
        }
    }

    pub fn json(body: &Value) -> Reply {
        Reply::bytes(body.to_string()).header("content-type", "application/json")
    }

    pub fn with_status(mut self, status: u16) -> Reply {
        self.status = status;
        self
    }

    pub fn header(mut self, name: &str, value: &str) -> Reply {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The connection ends after so many bytes of the body.
    pub fn cut_after(mut self, bytes: usize) -> Reply {
        self.cut = Some(bytes);
        self
    }

    /// Time until the answer begins.
    pub fn after(mut self, pause: Duration) -> Reply {
        self.pause = pause;
        self
    }

    fn send(&self, stream: &mut TcpStream) -> std::io::Result<()> {
        std::thread::sleep(self.pause);
        let mut head = format!(
            "HTTP/1.1 {} Told\r\nconnection: close\r\ncontent-length: {}\r\n",
            self.status,
            self.body.len()
        );
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        stream.write_all(format!("{head}\r\n").as_bytes())?;
        let end = self.cut.unwrap_or(self.body.len()).min(self.body.len());
        stream.write_all(&self.body[..end])
    }
}

type Answer = dyn Fn(&Request) -> Reply + Send + Sync;

/// Listens on a free port of this machine until it is dropped.
pub struct TestServer {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<Request>>>,
    stop: Arc<AtomicBool>,
    accepting: Option<JoinHandle<()>>,
}

impl TestServer {
    /// # Panics
    /// When the test machine has no free port.
    #[allow(clippy::expect_used, reason = "a test helper")]
    pub fn start(answer: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> TestServer {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let (requests, stop) = (
            Arc::<Mutex<Vec<_>>>::default(),
            Arc::<AtomicBool>::default(),
        );
        let answer: Arc<Answer> = Arc::new(answer);
        let (seen, stopped) = (Arc::clone(&requests), Arc::clone(&stop));
        let accepting = std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if stopped.load(Ordering::SeqCst) {
                    return;
                }
                let (answer, seen) = (Arc::clone(&answer), Arc::clone(&seen));
                std::thread::spawn(move || serve(stream, &*answer, &seen));
            }
        });
        TestServer {
            address,
            requests,
            stop,
            accepting: Some(accepting),
        }
    }

    /// `path` begins with a slash.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// All so far, in the order of their arrival.
    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().clone()
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        // Wakes whoever waits for a connection.
        let _ = TcpStream::connect(self.address);
        if let Some(accepting) = self.accepting.take() {
            let _ = accepting.join();
        }
    }
}

fn serve(mut stream: TcpStream, answer: &Answer, seen: &Mutex<Vec<Request>>) {
    let Ok(request) = read(&stream) else {
        return;
    };
    seen.lock().push(request.clone());
    // Whoever asked may have gone away.
    let _ = answer(&request).send(&mut stream);
}

fn read(stream: &TcpStream) -> std::io::Result<Request> {
    let mut reader = BufReader::new(stream);
    let mut line = || -> std::io::Result<String> {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        Ok(line.trim_end().to_owned())
    };
    let first = line()?;
    let mut words = first.split(' ').map(str::to_owned);
    let (method, path) = (words.next(), words.next());
    let mut headers = Vec::new();
    loop {
        let line = line()?;
        let Some((name, value)) = line.split_once(':') else {
            break;
        };
        headers.push((name.to_owned(), value.trim().to_owned()));
    }
    let mut request = Request {
        method: method.unwrap_or_default(),
        path: path.unwrap_or_default(),
        headers,
        body: Vec::new(),
    };
    let length = request.header("content-length").unwrap_or("0").parse();
    request.body.resize(length.unwrap_or(0), 0);
    reader.read_exact(&mut request.body)?;
    Ok(request)
}
