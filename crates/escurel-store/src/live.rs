//! Logs of what is typed before it is committed: one file of frames a page.
//!
//! Frame, little endian: payload length 4, CRC-32 of the payload 4, payload.
//! Invariant: after [`LiveLog::sync`] has returned, every frame that was
//! appended before the call survives a power loss; what a crash leaves half
//! written is cut when the log is opened again.

use std::io;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::disk::Disk;
use crate::{Env, Uid};

const DIR: &str = "live";
const SUFFIX: &str = ".ops";
const HEADER: usize = 8;

/// Larger frames are refused, and never asked memory for.
const MAX_FRAME: usize = 256 << 20;

/// The logs of one vault or tenant.
#[derive(Clone)]
pub struct LiveLogs {
    disk: Arc<dyn Disk>,
    env: Env,
}

/// A log as it was found.
pub struct Found {
    pub log: LiveLog,
    /// Payloads, in the order of their appending.
    pub frames: Vec<Vec<u8>>,
    /// Bytes at the end that were no whole frame and were cut.
    pub torn: u64,
}

/// Appending and syncing may go on in several threads at once.
pub struct LiveLog {
    disk: Arc<dyn Disk>,
    env: Env,
    name: String,
    len: Mutex<u64>,
    synced: Mutex<u64>,
}

impl LiveLogs {
    pub(crate) fn new(disk: Arc<dyn Disk>, env: Env) -> LiveLogs {
        LiveLogs { disk, env }
    }

    /// Pages that have a log.
    ///
    /// # Errors
    /// What reading the folder ends with.
    pub fn pages(&self) -> io::Result<Vec<Uid>> {
        let names = self.disk.list(DIR)?;
        let uids = names.iter().filter_map(|name| name.strip_suffix(SUFFIX));
        Ok(uids.filter_map(|uid| uid.parse().ok()).collect())
    }

    /// `None`: the page has no log.
    ///
    /// # Errors
    /// What reading or cutting ends with.
    pub fn open(&self, page: Uid) -> io::Result<Option<Found>> {
        let log = self.log(page);
        let Some(bytes) = self.disk.read_all(&log.name)? else {
            return Ok(None);
        };
        let (frames, whole) = frames(&bytes);
        let torn = (bytes.len() - whole) as u64;
        if torn > 0 {
            self.disk.truncate(&log.name, whole as u64)?;
        }
        *log.len.lock() = whole as u64;
        Ok(Some(Found { log, frames, torn }))
    }

    /// A new log with these frames, durable on return; an older one is gone.
    ///
    /// # Errors
    /// What writing ends with; then the older one is as it was.
    pub fn create(&self, page: Uid, frames: &[Vec<u8>]) -> io::Result<LiveLog> {
        let log = self.log(page);
        log.rewrite(frames)?;
        Ok(log)
    }

    fn log(&self, page: Uid) -> LiveLog {
        LiveLog {
            disk: self.disk.clone(),
            env: self.env.clone(),
            name: format!("{DIR}/{page}{SUFFIX}"),
            len: Mutex::new(0),
            synced: Mutex::new(0),
        }
    }
}

impl LiveLog {
    /// Adds a frame; it is durable after the next [`LiveLog::sync`].
    ///
    /// # Errors
    /// Nothing of the frame counts then.
    pub fn append(&self, payload: &[u8]) -> io::Result<()> {
        let frame = framed(payload)?;
        let mut len = self.len.lock();
        self.env.failpoints.reach("live.before_append")?;
        self.disk.write_at(&self.name, *len, &frame)?;
        *len += frame.len() as u64;
        Ok(())
    }

    /// Makes all frames durable that were appended before. Callers that wait for one another
    /// share one flush.
    ///
    /// # Errors
    /// What is durable is not known then; [`LiveLog::rewrite`] settles it.
    pub fn sync(&self) -> io::Result<()> {
        let wanted = *self.len.lock();
        let mut synced = self.synced.lock();
        if *synced >= wanted {
            return Ok(());
        }
        let reached = *self.len.lock();
        self.env.failpoints.reach("live.before_sync")?;
        self.disk.sync(&self.name)?;
        *synced = reached;
        Ok(())
    }

    /// Puts these frames in the place of all there are, in one step and durably.
    ///
    /// # Errors
    /// The log is as it was.
    pub fn rewrite(&self, frames: &[Vec<u8>]) -> io::Result<()> {
        let framed: Vec<Vec<u8>> = frames
            .iter()
            .map(|f| framed(f))
            .collect::<io::Result<_>>()?;
        let bytes = framed.concat();
        let mut synced = self.synced.lock();
        let mut len = self.len.lock();
        self.env.failpoints.reach("live.before_rewrite")?;
        self.disk.put(&self.name, &bytes)?;
        *len = bytes.len() as u64;
        *synced = *len;
        Ok(())
    }

    /// # Errors
    /// What removing ends with.
    pub fn remove(&self) -> io::Result<()> {
        self.env.failpoints.reach("live.before_remove")?;
        self.disk.remove(&self.name)
    }

    /// Bytes.
    pub fn size(&self) -> u64 {
        *self.len.lock()
    }
}

fn framed(payload: &[u8]) -> io::Result<Vec<u8>> {
    if payload.len() > MAX_FRAME {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let mut frame = Vec::with_capacity(HEADER + payload.len());
    frame.extend_from_slice(&(payload.len() as u32).to_le_bytes());
    frame.extend_from_slice(&crc32fast::hash(payload).to_le_bytes());
    frame.extend_from_slice(payload);
    Ok(frame)
}

/// The whole frames at the beginning, and where they end.
fn frames(bytes: &[u8]) -> (Vec<Vec<u8>>, usize) {
    let (mut frames, mut at) = (Vec::new(), 0);
    while let Some((payload, end)) = frame_at(bytes, at) {
        frames.push(payload.to_vec());
        at = end;
    }
    (frames, at)
}

fn frame_at(bytes: &[u8], at: usize) -> Option<(&[u8], usize)> {
    let number = |from: usize| {
        let four: [u8; 4] = bytes.get(from..from + 4)?.try_into().ok()?;
        Some(u32::from_le_bytes(four))
    };
    let (length, sum) = (number(at)? as usize, number(at + 4)?);
    let payload = bytes.get(at + HEADER..)?.get(..length)?;
    // A hole of NULs, as a power loss may leave it, is no empty frame.
    (length > 0 && crc32fast::hash(payload) == sum).then_some((payload, at + HEADER + length))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::MemDisk;

    fn logs(disk: &Arc<MemDisk>) -> LiveLogs {
        LiveLogs::new(disk.clone(), Env::system())
    }

    #[test]
    fn what_was_synced_is_there_after_a_power_loss_and_a_torn_frame_is_cut() {
        let (disk, page) = (Arc::new(MemDisk::default()), Uid(7));
        let log = logs(&disk).create(page, &[b"first".to_vec()]).unwrap();
        log.append(b"second").unwrap();
        log.sync().unwrap();
        log.append(b"third").unwrap();
        for (torn, left) in [(0, 0), (5, 5), (12, 12), (13, 0)] {
            let disk = Arc::new(disk.after_crash(torn));
            let found = logs(&disk).open(page).unwrap().unwrap();
            let expected: &[&[u8]] = match torn {
                13 => &[b"first", b"second", b"third"],
                _ => &[b"first", b"second"],
            };
            assert_eq!(found.frames, expected);
            assert_eq!(found.torn, left);
            found.log.append(b"more").unwrap();
            found.log.sync().unwrap();
            let again = logs(&disk).open(page).unwrap().unwrap();
            assert_eq!(again.frames.last().map(Vec::as_slice), Some(&b"more"[..]));
        }
        assert_eq!(logs(&disk).pages().unwrap(), [page]);
        log.remove().unwrap();
        assert!(logs(&disk).open(page).unwrap().is_none());
    }

    #[test]
    fn a_damaged_frame_ends_the_log_and_asks_for_no_memory() {
        let whole = [framed(b"one").unwrap(), framed(b"two").unwrap()].concat();
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x5a;
            let (found, end) = frames(&bytes);
            let intact = usize::from(at >= HEADER + 3);
            assert_eq!(found.len(), intact, "byte {at}");
            assert_eq!(end, intact * (HEADER + 3));
        }
        assert_eq!(frames(&[0; 64]).1, 0);
    }
}
