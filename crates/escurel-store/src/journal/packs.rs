//! The objects: packs that only grow, and where in them each object is.
//!
//! Invariant: frames of objects that a durable record names are never cut; a
//! pack with damage before its end is set aside and left as it is.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};

use super::frame::{self, Frame, Header, Step};
use super::pack_index::{self, Entry};
use crate::disk::Disk;
use crate::{Env, ObjectId, StoreError};

pub(crate) const DIR: &str = "objects";

/// First bytes of the id → (pack, offset); a second object with the same first
/// bytes is found in `rest`.
#[derive(Default)]
struct Map {
    first: HashMap<u64, (u32, u32)>,
    rest: HashMap<ObjectId, (u32, u32)>,
}

impl Map {
    fn insert(&mut self, id: ObjectId, place: (u32, u32)) {
        if let Some(old) = self.first.insert(short(&id), place)
            && old != place
        {
            self.first.insert(short(&id), old);
            self.rest.insert(id, place);
        }
    }

    fn get(&self, id: &ObjectId) -> Option<(u32, u32)> {
        self.rest
            .get(id)
            .or_else(|| self.first.get(&short(id)))
            .copied()
    }
}

fn short(id: &ObjectId) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&id.0[..8]);
    u64::from_le_bytes(bytes)
}

struct Active {
    number: u32,
    len: u64,
    entries: Vec<Entry>,
    /// Length that the stored index covers.
    indexed: u64,
}

/// A place to go back to when the records of an append could not be written.
#[derive(Clone, Copy)]
pub(crate) struct Mark {
    pub(crate) number: u32,
    len: u64,
    entries: usize,
}

pub(crate) struct Packs {
    disk: Arc<dyn Disk>,
    env: Env,
    limit: u64,
    active: Mutex<Active>,
    map: RwLock<Option<Map>>,
}

impl Packs {
    pub(crate) fn open(
        disk: Arc<dyn Disk>,
        env: Env,
        limit: u64,
        writable: bool,
        warnings: &mut Vec<String>,
    ) -> Result<Packs, StoreError> {
        let number = numbers(&*disk)?.last().copied().unwrap_or(1);
        let mut active = Active {
            number,
            len: 0,
            entries: Vec::new(),
            indexed: 0,
        };
        if let Err(error) = recover(&*disk, &mut active, writable, warnings) {
            return Err(StoreError::from_io(&disk.path(&name(number)), error));
        }
        Ok(Packs {
            disk,
            env,
            limit,
            active: Mutex::new(active),
            map: RwLock::new(None),
        })
    }

    pub(crate) fn mark(&self) -> Mark {
        let active = self.active.lock();
        Mark {
            number: active.number,
            len: active.len,
            entries: active.entries.len(),
        }
    }

    /// Durable on return; on an error nothing of it is left in the active pack.
    pub(crate) fn append(&self, frames: &[&Frame]) -> io::Result<()> {
        let mut active = self.active.lock();
        let mut part = Vec::new();
        let mut pending: Vec<Entry> = Vec::new();
        for frame in frames {
            let filled = active.len + part.len() as u64;
            if filled > 0 && filled + frame.bytes.len() as u64 > self.limit {
                self.write_part(&mut active, &mut part, &mut pending)?;
                self.roll(&mut active)?;
            }
            let offset = active.len + part.len() as u64;
            let offset = u32::try_from(offset).map_err(|_| io::ErrorKind::FileTooLarge)?;
            pending.push(Entry {
                id: frame.id,
                offset,
            });
            part.extend_from_slice(&frame.bytes);
        }
        self.write_part(&mut active, &mut part, &mut pending)
    }

    fn write_part(
        &self,
        active: &mut Active,
        part: &mut Vec<u8>,
        pending: &mut Vec<Entry>,
    ) -> io::Result<()> {
        if part.is_empty() {
            return Ok(());
        }
        let file = name(active.number);
        let point = |point| self.env.failpoints.reach(point);
        let written = point("journal.before_object_write")
            .and_then(|()| self.disk.write_at(&file, active.len, part))
            .and_then(|()| point("journal.before_object_fsync"))
            .and_then(|()| self.disk.sync(&file));
        if let Err(error) = written {
            // Later frames are written over what is left if this fails too.
            let _ = self.disk.truncate(&file, active.len);
            return Err(error);
        }
        active.len += part.len() as u64;
        part.clear();
        if let Some(map) = self.map.write().as_mut() {
            for entry in pending.iter() {
                map.insert(entry.id, (active.number, entry.offset));
            }
        }
        active.entries.append(pending);
        Ok(())
    }

    fn roll(&self, active: &mut Active) -> io::Result<()> {
        self.env.failpoints.reach("journal.before_pack_roll")?;
        self.store_index(active)?;
        *active = Active {
            number: active.number + 1,
            len: 0,
            entries: Vec::new(),
            indexed: 0,
        };
        Ok(())
    }

    /// Undoes an [`Packs::append`] whose records did not become durable. What
    /// went into packs that were rolled in between stays, unnamed.
    pub(crate) fn back_to(&self, mark: Mark) {
        let mut active = self.active.lock();
        if active.number != mark.number || active.len == mark.len {
            return;
        }
        if self.disk.truncate(&name(active.number), mark.len).is_ok() {
            active.len = mark.len;
            active.entries.truncate(mark.entries);
        }
    }

    /// So that the next open need not scan the active pack.
    pub(crate) fn close(&self) -> io::Result<()> {
        let mut active = self.active.lock();
        match active.indexed == active.len {
            true => Ok(()),
            false => self.store_index(&mut active),
        }
    }

    fn store_index(&self, active: &mut Active) -> io::Result<()> {
        let bytes = pack_index::encode(active.len, &active.entries);
        self.disk.put(&index_name(active.number), &bytes)?;
        active.indexed = active.len;
        Ok(())
    }

    pub(crate) fn get(&self, id: &ObjectId) -> Result<Vec<u8>, StoreError> {
        let (mut number, mut offset) = self.place(id)?.ok_or(StoreError::ObjectMissing(*id))?;
        let mut found = self.read_frame(number, offset)?;
        if !matches!(&found, Some((header, _)) if header.id == *id) {
            // The pack may have been rewritten between the look-up and the read.
            (number, offset) = self.place(id)?.ok_or(StoreError::ObjectMissing(*id))?;
            found = self.read_frame(number, offset)?;
        }
        let damaged = || StoreError::ObjectDamaged {
            id: *id,
            file: name(number),
            offset: offset.into(),
        };
        let (header, frame) = found.ok_or_else(damaged)?;
        let intact = header.intact(&frame);
        match () {
            () if header.id != *id && intact => Err(StoreError::ObjectMissing(*id)),
            () if header.id != *id || !intact => Err(damaged()),
            () if header.erased() => Err(StoreError::ContentErased(*id)),
            () => header.open(&frame).ok_or_else(damaged),
        }
    }

    fn read_frame(&self, number: u32, at: u32) -> Result<Option<(Header, Vec<u8>)>, StoreError> {
        let file = name(number);
        read_frame(&*self.disk, &file, at.into())
            .map_err(|error| StoreError::from_io(&self.disk.path(&file), error))
    }

    fn place(&self, id: &ObjectId) -> Result<Option<(u32, u32)>, StoreError> {
        if let Some(map) = self.map.read().as_ref() {
            return Ok(map.get(id));
        }
        // Lock order: active, then map, as in append.
        let active = self.active.lock();
        let mut slot = self.map.write();
        if slot.is_none() {
            *slot = Some(self.build_map(&active)?);
        }
        Ok(slot.as_ref().and_then(|map| map.get(id)))
    }

    fn build_map(&self, active: &Active) -> Result<Map, StoreError> {
        let mut map = Map::default();
        for number in numbers(&*self.disk)? {
            let sealed;
            let entries = match number == active.number {
                true => &active.entries,
                false => {
                    sealed = entries_of(&*self.disk, number)
                        .map_err(|error| {
                            StoreError::from_io(&self.disk.path(&name(number)), error)
                        })?
                        .0;
                    &sealed
                }
            };
            for entry in entries {
                map.insert(entry.id, (number, entry.offset));
            }
        }
        Ok(map)
    }

    /// Rewrites every pack that holds one of `ids`, tombstones in their place.
    pub(crate) fn erase(&self, ids: &[ObjectId]) -> Result<u64, StoreError> {
        let mut by_pack: HashMap<u32, Vec<ObjectId>> = HashMap::new();
        for id in ids {
            if let Some((number, _)) = self.place(id)? {
                by_pack.entry(number).or_default().push(*id);
            }
        }
        let mut active = self.active.lock();
        let mut erased = 0;
        for (number, ids) in by_pack {
            let count = self.rewrite(&mut active, number, &ids);
            erased += count.map_err(|e| StoreError::from_io(&self.disk.path(&name(number)), e))?;
        }
        Ok(erased)
    }

    fn rewrite(&self, active: &mut Active, number: u32, ids: &[ObjectId]) -> io::Result<u64> {
        let file = name(number);
        let old = self.disk.read_all(&file)?.unwrap_or_default();
        let (bytes, entries, erased) = without(&old, ids)?;
        if erased == 0 {
            return Ok(0);
        }
        self.env.failpoints.reach("journal.before_erase_write")?;
        // The index goes first: offsets change, and it can be made again.
        self.disk.remove(&index_name(number))?;
        self.env.failpoints.reach("journal.before_erase_swap")?;
        // A reader that looked up an offset before finds another object there
        // and looks up again.
        let mut map = self.map.write();
        *map = None;
        self.disk.put(&file, &bytes)?;
        if number == active.number {
            *active = Active {
                number,
                len: bytes.len() as u64,
                entries,
                indexed: 0,
            };
            self.store_index(active)?;
        } else {
            self.disk.put(
                &index_name(number),
                &pack_index::encode(bytes.len() as u64, &entries),
            )?;
        }
        Ok(erased)
    }
}

/// The pack's bytes with tombstones for `ids`; damage is copied as it is.
fn without(old: &[u8], ids: &[ObjectId]) -> io::Result<(Vec<u8>, Vec<Entry>, u64)> {
    let mut bytes = Vec::with_capacity(old.len());
    let mut entries = Vec::new();
    let mut erased = 0;
    frame::walk(old, |step| match step {
        Step::Damage { at, until, .. } => bytes.extend_from_slice(&old[at..until]),
        Step::Frame { at, header } => {
            entries.push(Entry {
                id: header.id,
                offset: bytes.len() as u32,
            });
            match ids.contains(&header.id) && !header.erased() {
                true => {
                    bytes.extend_from_slice(&frame::tombstone(header.id).bytes);
                    erased += 1;
                }
                false => bytes.extend_from_slice(&old[at..at + header.total()]),
            }
        }
    });
    match u32::try_from(bytes.len()) {
        Ok(_) => Ok((bytes, entries, erased)),
        Err(_) => Err(io::ErrorKind::FileTooLarge.into()),
    }
}

impl Packs {
    /// Names of the pack files that are there.
    pub(crate) fn files(&self) -> Vec<String> {
        let numbers = numbers(&*self.disk).unwrap_or_default();
        numbers.into_iter().map(name).collect()
    }
}

pub(crate) fn name(number: u32) -> String {
    format!("{DIR}/p{number:08}.pack")
}

fn index_name(number: u32) -> String {
    format!("{DIR}/p{number:08}.idx")
}

/// Numbers of the packs that are there, ascending.
pub(crate) fn numbers(disk: &dyn Disk) -> Result<Vec<u32>, StoreError> {
    let names = disk
        .list(DIR)
        .map_err(|error| StoreError::from_io(&disk.path(DIR), error))?;
    let number = |name: &String| name.strip_prefix('p')?.strip_suffix(".pack")?.parse().ok();
    Ok(names.iter().filter_map(number).collect())
}

/// Entries of a pack, and where damage that reaches its end begins.
fn entries_of(disk: &dyn Disk, number: u32) -> io::Result<(Vec<Entry>, Scanned)> {
    let len = disk.len(&name(number))?.unwrap_or(0);
    let stored = disk.read_all(&index_name(number))?;
    let (covered, mut entries) = stored
        .and_then(|bytes| pack_index::decode(&bytes))
        .filter(|(covered, _)| *covered <= len)
        .unwrap_or_default();
    let mut scanned = Scanned {
        covered,
        len,
        torn: None,
        damage: None,
    };
    if covered < len {
        let rest = usize::try_from(len - covered).map_err(|_| io::ErrorKind::FileTooLarge)?;
        let bytes = disk.read_at(&name(number), covered, rest)?;
        frame::walk(&bytes, |step| match step {
            Step::Frame { at, header } => {
                let offset = covered + at as u64;
                // Packs end far below 4 GiB.
                entries.push(Entry {
                    id: header.id,
                    offset: u32::try_from(offset).unwrap_or(u32::MAX),
                });
            }
            Step::Damage { at, until, .. } => match torn(&bytes[at..until], until == bytes.len()) {
                true => scanned.torn = Some(covered + at as u64),
                false => scanned.damage = Some(covered + at as u64),
            },
        });
    }
    Ok((entries, scanned))
}

/// A frame of full length whose bytes are wrong may have been acknowledged
/// once, so it is kept for whoever repairs it.
fn torn(rest: &[u8], at_end: bool) -> bool {
    at_end && Header::parse(rest).is_none_or(|header| header.total() != rest.len())
}

struct Scanned {
    covered: u64,
    len: u64,
    torn: Option<u64>,
    damage: Option<u64>,
}

/// Finds the end of the active pack; cuts what a crash left half written.
fn recover(
    disk: &dyn Disk,
    active: &mut Active,
    writable: bool,
    warnings: &mut Vec<String>,
) -> io::Result<()> {
    let (entries, scanned) = entries_of(disk, active.number)?;
    let file = name(active.number);
    active.entries = entries;
    active.len = scanned.len;
    active.indexed = scanned.covered;
    if let Some(at) = scanned.torn {
        warnings.push(format!(
            "{file}: {} bytes of an unfinished write were cut",
            scanned.len - at
        ));
        active.len = at;
        if writable {
            disk.truncate(&file, at)?;
        }
    }
    if writable && active.len > 0 {
        // A killed process may have written frames that it did not come to sync.
        disk.sync(&file)?;
    }
    if let Some(at) = scanned.damage {
        warnings.push(format!(
            "{file}: damaged at byte {at}; run `escurel verify`"
        ));
    }
    Ok(())
}

/// `None`: no frame begins there.
fn read_frame(disk: &dyn Disk, file: &str, offset: u64) -> io::Result<Option<(Header, Vec<u8>)>> {
    const GUESS: usize = 4096;
    let mut bytes = disk.read_at(file, offset, GUESS)?;
    let Some(header) = Header::parse(&bytes) else {
        return Ok(None);
    };
    if header.total() > bytes.len() && bytes.len() == GUESS {
        bytes = disk.read_at(file, offset, header.total())?;
    }
    bytes.truncate(header.total());
    Ok(Some((header, bytes)))
}
