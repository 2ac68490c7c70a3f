//! Page files in memory that know which of them were flushed.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use parking_lot::Mutex;

use super::Loss;
use crate::pathname;
use crate::{Env, Removed, Replaced, RootState, Scan, ScannedFile, Stat, StoreError};

type File = (Vec<u8>, Stat);

const SECTOR: usize = 512;

pub(super) struct MemPages {
    env: Env,
    /// Flushes do nothing.
    forgetful: bool,
    state: Mutex<State>,
}

struct State {
    files: BTreeMap<String, File>,
    durable: BTreeMap<String, File>,
    /// Changed by us and not flushed.
    dirty: BTreeSet<String>,
    root: RootState,
    /// Counts changes: new inodes, and times that differ when the clock stands.
    changes: u64,
}

impl State {
    fn stat(&mut self, env: &Env, size: usize, ino: Option<u64>) -> Stat {
        self.changes += 1;
        let step = i64::try_from(self.changes % 1000).unwrap_or(0);
        let now = env
            .clock
            .now_micros()
            .saturating_mul(1000)
            .saturating_add(step);
        let ino = ino.unwrap_or(self.changes);
        Stat {
            dev: 1,
            ino,
            size: size as u64,
            mtime_ns: now,
            ctime_ns: now,
        }
    }

    /// A rename may be durable before the bytes of the file are: with `torn`
    /// it is, and so many of the bytes, in whole sectors.
    fn survivors(&self, torn: usize) -> BTreeMap<String, File> {
        let mut survivors = self.durable.clone();
        if torn == 0 {
            return survivors;
        }
        for (path, (bytes, stat)) in &self.files {
            if self.durable.get(path).is_some_and(|(old, _)| old == bytes) {
                continue;
            }
            let mut bytes = bytes.clone();
            bytes.truncate(torn / SECTOR * SECTOR);
            let size = bytes.len() as u64;
            survivors.insert(path.clone(), (bytes, Stat { size, ..*stat }));
        }
        survivors
    }

    /// Outside programs' writes are taken to be durable at once.
    fn outside(&mut self, path: &str, file: Option<File>) {
        self.dirty.remove(path);
        match file {
            Some(file) => {
                self.durable.insert(path.to_owned(), file.clone());
                self.files.insert(path.to_owned(), file);
            }
            None => {
                self.durable.remove(path);
                self.files.remove(path);
            }
        }
    }
}

impl MemPages {
    pub(super) fn new(env: Env, forgetful: bool) -> MemPages {
        let state = State {
            files: BTreeMap::new(),
            durable: BTreeMap::new(),
            dirty: BTreeSet::new(),
            root: RootState::Ok,
            changes: 0,
        };
        MemPages {
            env,
            forgetful,
            state: Mutex::new(state),
        }
    }

    pub(super) fn put_outside(&self, path: &str, bytes: &[u8]) {
        let mut state = self.state.lock();
        let ino = state.files.get(path).map(|(_, stat)| stat.ino);
        let stat = state.stat(&self.env, bytes.len(), ino);
        state.outside(path, Some((bytes.to_vec(), stat)));
    }

    pub(super) fn delete_outside(&self, path: &str) {
        self.state.lock().outside(path, None);
    }

    pub(super) fn rename_outside(&self, from: &str, to: &str) {
        let mut state = self.state.lock();
        if let Some((bytes, mut stat)) = state.files.get(from).cloned() {
            stat.ctime_ns = state.stat(&self.env, 0, None).ctime_ns;
            state.outside(from, None);
            state.outside(to, Some((bytes, stat)));
        }
    }

    pub(super) fn set_root(&self, root: RootState) {
        self.state.lock().root = root;
    }

    pub(super) fn crash(&self) {
        let mut state = self.state.lock();
        state.files = state.durable.clone();
        state.dirty.clear();
    }

    pub(super) fn after(&self, loss: Loss, env: Env) -> MemPages {
        let state = self.state.lock();
        let files = match loss {
            Loss::Kill => state.files.clone(),
            Loss::Power { torn } => state.survivors(torn),
        };
        let durable = match loss {
            Loss::Kill => state.durable.clone(),
            Loss::Power { .. } => files.clone(),
        };
        let state = State {
            files,
            durable,
            dirty: BTreeSet::new(),
            root: state.root.clone(),
            changes: state.changes,
        };
        MemPages {
            env,
            forgetful: self.forgetful,
            state: Mutex::new(state),
        }
    }

    pub(super) fn scan(&self) -> Scan {
        let state = self.state.lock();
        let mut scan = Scan {
            files: Vec::new(),
            unknown: Vec::new(),
            root: state.root.clone(),
        };
        if state.root == RootState::Ok {
            let listed = state.files.iter().filter(|(path, _)| is_listed(path));
            scan.files = listed
                .map(|(path, (_, stat))| ScannedFile {
                    path: path.clone(),
                    stat: *stat,
                })
                .collect();
        }
        scan
    }

    pub(super) fn read(&self, path: &str) -> io::Result<Option<File>> {
        check(path)?;
        let state = self.state.lock();
        match state.root {
            RootState::Ok => Ok(state.files.get(path).cloned()),
            _ => Err(io::Error::other("the folder of pages cannot be looked at")),
        }
    }

    pub(super) fn can_create(&self, path: &str) -> io::Result<()> {
        match self.read(path)? {
            Some(_) => Err(io::ErrorKind::AlreadyExists.into()),
            None => Ok(()),
        }
    }

    pub(super) fn replace(
        &self,
        path: &str,
        planned: Option<&[u8]>,
        new: &[u8],
    ) -> io::Result<Replaced> {
        check(path)?;
        let point = |point| self.env.failpoints.reach(point);
        point("pages.before_temp_write")?;
        point("pages.before_exchange")?;
        let (stat, found) = {
            let mut state = self.state.lock();
            let stat = state.stat(&self.env, new.len(), None);
            state.dirty.insert(path.to_owned());
            let old = state.files.insert(path.to_owned(), (new.to_vec(), stat));
            (stat, old.map(|(bytes, _)| bytes))
        };
        point("pages.before_compare")?;
        point("pages.before_temp_remove")?;
        match found.as_deref() == planned {
            true => Ok(Replaced::Done(stat)),
            false => Ok(Replaced::Displaced { stat, found }),
        }
    }

    pub(super) fn remove(&self, path: &str, planned: &[u8]) -> io::Result<Removed> {
        check(path)?;
        self.env.failpoints.reach("pages.before_remove")?;
        let mut state = self.state.lock();
        match state.files.get(path) {
            None => Ok(Removed::Absent),
            Some((found, _)) if found != planned => Ok(Removed::Changed {
                found: found.clone(),
            }),
            Some(_) => {
                state.files.remove(path);
                state.dirty.insert(path.to_owned());
                Ok(Removed::Done)
            }
        }
    }

    pub(super) fn mark_unflushed(&self, path: &str) -> io::Result<()> {
        check(path)?;
        self.state.lock().dirty.insert(path.to_owned());
        Ok(())
    }

    pub(super) fn flush(&self) -> io::Result<()> {
        self.env.failpoints.reach("pages.before_flush")?;
        let mut state = self.state.lock();
        if self.forgetful {
            state.dirty.clear();
        }
        for path in std::mem::take(&mut state.dirty) {
            match state.files.get(&path).cloned() {
                Some(file) => state.durable.insert(path, file),
                None => state.durable.remove(&path),
            };
        }
        Ok(())
    }
}

fn check(path: &str) -> io::Result<()> {
    let refuse = |error: StoreError| io::Error::new(io::ErrorKind::InvalidInput, error);
    pathname::decode(path).map(drop).map_err(refuse)
}

fn is_listed(path: &str) -> bool {
    let mut names = path.split('/');
    let last = names.next_back().unwrap_or_default();
    check(path).is_ok() && pathname::is_page(last) && !path.split('/').any(pathname::skipped)
}
