//! Putting new bytes in place of a page file without losing what is there.
//!
//! Invariant: whatever comes out of the exchange is read before it is removed,
//! and handed to the caller unless it is what the write was planned on.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use super::pages::Pages;
use super::sys;
use crate::{Removed, Replaced};

/// How often a name may appear and vanish under our hands.
const TRIES: usize = 16;

impl Pages {
    pub(crate) fn replace(
        &self,
        path: &str,
        planned: Option<&[u8]>,
        new: &[u8],
    ) -> io::Result<Replaced> {
        self.refuse_read_only()?;
        let target = self.locate(path)?;
        let folder = target.parent().ok_or(io::ErrorKind::InvalidInput)?;
        self.make_folders(folder)?;
        let temp = folder.join(self.names.name(planned, Some(new)));
        let file = self.write_temp(&temp, &target, new)?;
        let swapped = self.swap(&temp, &target, planned.is_some());
        let found = swapped.inspect_err(|_| remove_own(&temp, &file))?;
        self.mark_dirty(Some(&target), folder);
        // From here on an error leaves the temp, which the next open looks at.
        self.env.failpoints.reach("pages.before_compare")?;
        let stat = sys::stat_of(&file.metadata()?);
        self.env.failpoints.reach("pages.before_temp_remove")?;
        if found.is_some() {
            remove_quietly(&temp);
        }
        match found.as_deref() == planned {
            true => Ok(Replaced::Done(stat)),
            false => Ok(Replaced::Displaced { stat, found }),
        }
    }

    /// Tried with a temporary file in the nearest folder that there is.
    pub(crate) fn can_create(&self, path: &str) -> io::Result<()> {
        self.refuse_read_only()?;
        let target = self.locate(path)?;
        match fs::symlink_metadata(&target) {
            Ok(_) => return Err(io::ErrorKind::AlreadyExists.into()),
            Err(error) if !sys::is_absent(&error) => return Err(error),
            Err(_) => {}
        }
        let mut folder = target.parent().ok_or(io::ErrorKind::InvalidInput)?;
        loop {
            match sys::look(folder) {
                Ok(found) if found.is_dir() => break,
                Ok(_) => return Err(io::ErrorKind::NotADirectory.into()),
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                Err(_) => folder = folder.parent().ok_or(io::ErrorKind::InvalidInput)?,
            }
        }
        let temp = folder.join(self.names.name(None, Some(&[])));
        let file = self.write_temp(&temp, &target, &[])?;
        remove_own(&temp, &file);
        Ok(())
    }

    fn refuse_read_only(&self) -> io::Result<()> {
        match self.read_only {
            true => Err(io::Error::new(
                io::ErrorKind::ReadOnlyFilesystem,
                crate::StoreError::ReadOnly,
            )),
            false => Ok(()),
        }
    }

    /// Missing folders are made; a symbolic link among them is refused.
    fn make_folders(&self, folder: &Path) -> io::Result<()> {
        match sys::look(folder) {
            Ok(found) if found.is_dir() => return Ok(()),
            Ok(_) => return Err(io::ErrorKind::NotADirectory.into()),
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Err(_) => {}
        }
        let parent = folder.parent().ok_or(io::ErrorKind::InvalidInput)?;
        self.make_folders(parent)?;
        match fs::create_dir(folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => self.mark_dirty(None, parent),
        }
        Ok(())
    }

    /// With the permissions of the file that it will replace.
    fn write_temp(&self, temp: &Path, target: &Path, new: &[u8]) -> io::Result<File> {
        let permissions = match fs::symlink_metadata(target) {
            Ok(found) if !found.is_file() => return Err(not_a_file(target)),
            Ok(found) if found.permissions().readonly() => {
                let why = format!("{} is marked as read-only", target.display());
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
            }
            Ok(found) => Some(found.permissions()),
            Err(_) => None,
        };
        self.env.failpoints.reach("pages.before_temp_write")?;
        let mut file = OpenOptions::new().write(true).create_new(true).open(temp)?;
        let written = file.write_all(new).and_then(|()| match permissions {
            Some(permissions) => file.set_permissions(permissions),
            None => Ok(()),
        });
        written.inspect_err(|_| remove_quietly(temp))?;
        Ok(file)
    }

    /// Puts the temp in place; answers what was there. `expected`: something is.
    fn swap(&self, temp: &Path, target: &Path, expected: bool) -> io::Result<Option<Vec<u8>>> {
        self.env.failpoints.reach("pages.before_exchange")?;
        let mut exchange = expected;
        for _ in 0..TRIES {
            let done = match exchange {
                true => self.exchange(temp, target).map(Some),
                false => sys::rename_new(temp, target).map(|()| None),
            };
            match done {
                Ok(found) => return Ok(found),
                Err(error) if exchange && error.kind() == io::ErrorKind::NotFound => {
                    exchange = false
                }
                Err(error) if !exchange && error.kind() == io::ErrorKind::AlreadyExists => {
                    exchange = true
                }
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::new(
            io::ErrorKind::ResourceBusy,
            "the file appears and vanishes; try again",
        ))
    }

    fn exchange(&self, temp: &Path, target: &Path) -> io::Result<Vec<u8>> {
        match sys::exchange(temp, target) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::Unsupported => {
                return read_then_rename(temp, target);
            }
            Err(error) => return Err(error),
        }
        let found = match fs::symlink_metadata(temp)?.is_file() {
            true => fs::read(temp),
            false => Err(not_a_file(target)),
        };
        // What came out must not be lost: a folder, or a file that cannot be
        // read, goes back.
        found.inspect_err(|_| {
            if let Err(error) = sys::exchange(temp, target) {
                tracing::error!(%error, temp = %temp.display(), "a displaced file could not be put back");
            }
        })
    }

    pub(crate) fn remove(&self, path: &str, planned: &[u8]) -> io::Result<Removed> {
        self.refuse_read_only()?;
        let target = self.locate(path)?;
        let folder = target.parent().ok_or(io::ErrorKind::InvalidInput)?;
        match sys::look(&target) {
            Ok(found) if !found.is_file() => return Err(not_a_file(&target)),
            Ok(_) => {}
            Err(error) if sys::is_absent(&error) => return Ok(Removed::Absent),
            Err(error) => return Err(error),
        }
        self.env.failpoints.reach("pages.before_remove")?;
        let temp = folder.join(self.names.name(Some(planned), None));
        match sys::rename_new(&target, &temp) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Removed::Absent),
            other => other?,
        }
        let found = match fs::read(&temp) {
            Ok(found) if found == planned => {
                fs::remove_file(&temp)?;
                self.mark_dirty(None, folder);
                return Ok(Removed::Done);
            }
            other => other,
        };
        self.put_back(&temp, &target)?;
        found.map(|found| Removed::Changed { found })
    }

    /// If somebody made the file anew meanwhile, theirs stays, and the caller
    /// gets the bytes of the former one.
    fn put_back(&self, temp: &Path, target: &Path) -> io::Result<()> {
        match sys::rename_new(temp, target) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => fs::remove_file(temp),
            other => other,
        }
    }
}

fn remove_quietly(temp: &Path) {
    match fs::remove_file(temp) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(%error, temp = %temp.display(), "a temporary file could not be removed");
        }
        _ => {}
    }
}

/// After a failed exchange the name may hold what was displaced.
fn remove_own(temp: &Path, file: &File) {
    let ours = file.metadata().map(|found| sys::stat_of(&found).ino);
    let there = fs::symlink_metadata(temp).map(|found| sys::stat_of(&found).ino);
    if matches!((ours, there), (Ok(ours), Ok(there)) if ours == there) {
        remove_quietly(temp);
    }
}

/// Where names cannot be exchanged, a save between the two steps is lost; they
/// follow each other at once.
fn read_then_rename(temp: &Path, target: &Path) -> io::Result<Vec<u8>> {
    let found = fs::read(target)?;
    fs::rename(temp, target)?;
    Ok(found)
}

fn not_a_file(target: &Path) -> io::Error {
    let why = format!(
        "{} is a folder, a link or a device, not a file",
        target.display()
    );
    io::Error::new(io::ErrorKind::InvalidInput, why)
}
