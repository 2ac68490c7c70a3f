//! History, provenance and SQL over all versions, in one DuckDB file.
//!
//! Holds what the journal says and what the directory resolves; refuses to be
//! needed: a file that cannot be used is moved aside and a fresh one begun.
//! SQL text of the project stands here and nowhere else, values are bound.
//!
//! Invariant: [`Duck::seq`] never runs ahead of the rows that readers see.

mod apply;
mod history;
mod open;
mod provenance;
mod rows;
mod tables;
#[cfg(test)]
mod tests;
mod verify;

use std::ops::Deref;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use duckdb::Connection;
use parking_lot::{Condvar, Mutex};

pub use rows::*;

use crate::IndexError;

const READERS_KEPT: usize = 4;

/// One writing connection and a few reading ones on one file.
pub struct Duck {
    writer: Mutex<Writer>,
    /// Readers are cloned from it; it never runs a statement itself.
    source: Mutex<Connection>,
    readers: Mutex<Vec<Connection>>,
    seq: AtomicU64,
    gate: Mutex<()>,
    moved: Condvar,
}

struct Writer {
    conn: Connection,
    /// One past the highest page number that has rows.
    known: u32,
}

impl Duck {
    pub fn open(dir: &Path, generation: u128) -> Result<(Duck, DuckState), IndexError> {
        let opened = open::open(dir, generation)?;
        let source = opened
            .conn
            .try_clone()
            .map_err(IndexError::sql("cannot connect"))?;
        let duck = Duck {
            writer: Mutex::new(Writer {
                conn: opened.conn,
                known: opened.known,
            }),
            source: Mutex::new(source),
            readers: Mutex::default(),
            seq: AtomicU64::new(opened.seq),
            gate: Mutex::default(),
            moved: Condvar::new(),
        };
        Ok((duck, opened.state))
    }

    /// Deletes the file, so that the next opening begins a fresh one.
    pub fn forget(dir: &Path) -> Result<(), IndexError> {
        open::forget(dir)
    }

    /// Journal number through which versions are contained.
    pub fn seq(&self) -> u64 {
        self.seq.load(Ordering::Acquire)
    }

    fn reached(&self, seq: u64) {
        let _gate = self.gate.lock();
        self.seq.fetch_max(seq, Ordering::Release);
        self.moved.notify_all();
    }

    /// Waits until versions through `seq` are contained; false after `timeout`.
    pub fn wait_for(&self, seq: u64, timeout: Duration) -> bool {
        let end = Instant::now() + timeout;
        let mut gate = self.gate.lock();
        while self.seq() < seq {
            if self.moved.wait_until(&mut gate, end).timed_out() {
                return self.seq() >= seq;
            }
        }
        true
    }

    fn reader(&self) -> Result<Reader<'_>, IndexError> {
        let kept = self.readers.lock().pop();
        let conn = match kept {
            Some(conn) => conn,
            None => self.connect().map_err(IndexError::sql("cannot connect"))?,
        };
        Ok(Reader {
            conn: Some(conn),
            pool: &self.readers,
        })
    }

    fn connect(&self) -> duckdb::Result<Connection> {
        let conn = self.source.lock().try_clone()?;
        conn.execute_batch("CREATE TEMP TABLE hidden (page_no INTEGER)")?;
        Ok(conn)
    }

    /// Folds the log into the file.
    pub fn checkpoint(&self) -> Result<(), IndexError> {
        let writer = self.writer.lock();
        writer
            .conn
            .execute_batch("CHECKPOINT")
            .map_err(IndexError::sql("cannot checkpoint"))?;
        Ok(())
    }
}

/// A connection on loan from the pool.
struct Reader<'a> {
    conn: Option<Connection>,
    pool: &'a Mutex<Vec<Connection>>,
}

impl Deref for Reader<'_> {
    type Target = Connection;

    #[allow(clippy::expect_used)]
    fn deref(&self) -> &Connection {
        // Taken only by `drop`.
        self.conn
            .as_ref()
            .expect("a reader holds its connection until it is dropped")
    }
}

impl Drop for Reader<'_> {
    fn drop(&mut self) {
        let mut pool = self.pool.lock();
        if let Some(conn) = self.conn.take().filter(|_| pool.len() < READERS_KEPT) {
            pool.push(conn);
        }
    }
}
