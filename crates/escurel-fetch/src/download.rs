//! A file over HTTP, continued where an earlier attempt ended.

use std::io::Read;
use std::time::Duration;

use ureq::Body;
use ureq::http::Response;
use url::Url;

use crate::client::{Client, shown};
use crate::part::Part;
use crate::{FetchError, Pinned};

/// Attempts in a row that get no further than those before them.
const FRUITLESS: u32 = 3;
const PAUSE: Duration = Duration::from_millis(300);

/// What ends an attempt.
enum Ended {
    /// Nobody answered.
    Unreached(String),
    /// Another attempt may get further.
    Broken(String),
    For(FetchError),
}

impl From<FetchError> for Ended {
    fn from(error: FetchError) -> Ended {
        Ended::For(error)
    }
}

/// Fills `part` up to the whole of `file`. `told` hears how many bytes are there.
/// What is in `part` when this fails is the beginning of the file.
pub(crate) fn download(
    client: &Client,
    url: &Url,
    file: &Pinned,
    part: &mut Part,
    told: &mut dyn FnMut(u64),
) -> Result<(), FetchError> {
    let (mut furthest, mut fruitless, mut answered) = (part.len()?, 0, false);
    loop {
        let reason = match attempt(client, url, file, part, told) {
            Ok(()) => return Ok(()),
            Err(Ended::For(error)) => return Err(error),
            Err(Ended::Unreached(reason)) if !answered => {
                let url = shown(url);
                return Err(FetchError::Offline { url, reason });
            }
            Err(Ended::Unreached(reason) | Ended::Broken(reason)) => reason,
        };
        answered = true;
        let got = part.len()?;
        fruitless = if got > furthest { 0 } else { fruitless + 1 };
        furthest = furthest.max(got);
        if fruitless == FRUITLESS {
            let whole = file.bytes;
            return Err(FetchError::Interrupted { got, whole, reason });
        }
        std::thread::sleep(PAUSE);
    }
}

fn attempt(
    client: &Client,
    url: &Url,
    file: &Pinned,
    part: &mut Part,
    told: &mut dyn FnMut(u64),
) -> Result<(), Ended> {
    let have = part.len()?;
    if have == file.bytes {
        return Ok(());
    }
    if have > file.bytes {
        part.cut(0)?;
    }
    let have = part.len()?;
    let range = format!("bytes={have}-");
    // What is compressed on the way cannot be continued.
    let mut headers = vec![("accept-encoding", "identity")];
    if have > 0 {
        headers.push(("range", &range));
    }
    let mut response = client
        .get(url, &headers)
        .map_err(|error| Ended::Unreached(error.0))?;
    let from = begins_at(&response, url, file)?;
    if from == have || from == 0 {
        part.cut(from)?;
        return copy(&mut response, file, part, told);
    }
    part.cut(0)?;
    Err(Ended::Broken("it sent another part".to_owned()))
}

/// The place in the file at which the answer's body begins.
fn begins_at(response: &Response<Body>, url: &Url, file: &Pinned) -> Result<u64, Ended> {
    let header = |name: &str| response.headers().get(name)?.to_str().ok();
    let (from, whole) = match response.status().as_u16() {
        200 => (0, header("content-length").and_then(|n| n.parse().ok())),
        206 => content_range(header("content-range").unwrap_or_default())
            .ok_or_else(|| Ended::Broken("it sent an unknown part".to_owned()))?,
        // Nothing of its file lies beyond what is here, so that is of another.
        416 => return Ok(u64::MAX),
        status @ (429 | 500..) => {
            return Err(Ended::Broken(format!("it answered with status {status}")));
        }
        status => {
            let url = shown(url);
            return Err(FetchError::Refused { url, status }.into());
        }
    };
    match whole {
        Some(whole) if whole != file.bytes => Err(FetchError::Checksum {
            what: shown(url),
            found: format!("it has {whole} bytes instead of {}", file.bytes),
        }
        .into()),
        _ => Ok(from),
    }
}

/// `bytes 5-9/10`: 5, and 10 if it is told.
fn content_range(text: &str) -> Option<(u64, Option<u64>)> {
    let (range, whole) = text.strip_prefix("bytes ")?.split_once('/')?;
    let from = range.split_once('-')?.0.trim().parse().ok()?;
    Some((from, whole.trim().parse().ok()))
}

fn copy(
    response: &mut Response<Body>,
    file: &Pinned,
    part: &mut Part,
    told: &mut dyn FnMut(u64),
) -> Result<(), Ended> {
    let mut have = part.len()?;
    let mut body = response.body_mut().as_reader().take(file.bytes - have);
    let mut buffer = vec![0; 1 << 16];
    told(have);
    while have < file.bytes {
        let read = body
            .read(&mut buffer)
            .map_err(|error| Ended::Broken(error.to_string()))?;
        let Some(bytes) = buffer.get(..read).filter(|bytes| !bytes.is_empty()) else {
            return Err(Ended::Broken("the connection ended".to_owned()));
        };
        part.append(bytes)?;
        have += read as u64;
        told(have);
    }
    Ok(())
}
