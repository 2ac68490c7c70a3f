//! The system calls that have no equal in the standard library, and what takes
//! their place where they do not exist.

use std::fs::{self, File};
use std::io;
use std::path::Path;

/// Takes an exclusive advisory lock; `false` when somebody else has it.
#[cfg(unix)]
pub(crate) fn try_lock(file: &File) -> io::Result<bool> {
    use rustix::fs::{FlockOperation, flock};
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Also for copies of the handle that a child process may hold for a moment.
pub(crate) fn unlock(file: &File) {
    #[cfg(unix)]
    let _ = rustix::fs::flock(file, rustix::fs::FlockOperation::Unlock);
    #[cfg(not(unix))]
    let _ = file.unlock();
}

#[cfg(not(unix))]
pub(crate) fn try_lock(file: &File) -> io::Result<bool> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(fs::TryLockError::WouldBlock) => Ok(false),
        Err(fs::TryLockError::Error(error)) => Err(error),
    }
}

/// Swaps two names in one step. `Unsupported`: this file system cannot.
pub(crate) fn exchange(a: &Path, b: &Path) -> io::Result<()> {
    rename_with(a, b, How::Exchange)
}

/// Renames unless the new name exists (`AlreadyExists`).
pub(crate) fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    match rename_with(from, to, How::NoReplace) {
        Err(error) if error.kind() == io::ErrorKind::Unsupported => rename_new_slowly(from, to),
        other => other,
    }
}

/// A hard link is never made over an existing name.
fn rename_new_slowly(from: &Path, to: &Path) -> io::Result<()> {
    match fs::hard_link(from, to) {
        Ok(()) => fs::remove_file(from),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
        Err(_) if fs::symlink_metadata(to).is_ok() => Err(io::ErrorKind::AlreadyExists.into()),
        Err(_) => fs::rename(from, to),
    }
}

enum How {
    Exchange,
    NoReplace,
}

#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
fn rename_with(from: &Path, to: &Path, how: How) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    use rustix::io::Errno;
    let flags = match how {
        How::Exchange => RenameFlags::EXCHANGE,
        How::NoReplace => RenameFlags::NOREPLACE,
    };
    match renameat_with(CWD, from, CWD, to, flags) {
        Ok(()) => Ok(()),
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => Err(io::ErrorKind::Unsupported.into()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
fn rename_with(_: &Path, _: &Path, _: How) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Opens a file to be read, no symbolic link on the way to it followed, and
/// without waiting for the other end of a pipe.
#[cfg(target_os = "linux")]
pub(crate) fn open_plain(path: &Path) -> io::Result<File> {
    use rustix::fs::OFlags;
    open_linux(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY)
}

/// Opens anything only to look at its metadata.
#[cfg(target_os = "linux")]
pub(crate) fn look(path: &Path) -> io::Result<fs::Metadata> {
    open_linux(path, rustix::fs::OFlags::PATH)?.metadata()
}

#[cfg(target_os = "linux")]
fn open_linux(path: &Path, flags: rustix::fs::OFlags) -> io::Result<File> {
    use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
    use rustix::io::Errno;
    let flags = flags | OFlags::CLOEXEC;
    match openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
        Ok(file) => Ok(file.into()),
        // An old kernel, or a sandbox that does not know the call.
        Err(Errno::NOSYS | Errno::PERM) => {
            refuse_links(path)?;
            Ok(rustix::fs::open(path, flags | OFlags::NOFOLLOW, Mode::empty())?.into())
        }
        Err(error) => Err(error.into()),
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn open_plain(path: &Path) -> io::Result<File> {
    match look(path)?.is_file() {
        true => File::open(path),
        false => Err(io::ErrorKind::InvalidInput.into()),
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn look(path: &Path) -> io::Result<fs::Metadata> {
    refuse_links(path)?;
    fs::symlink_metadata(path)
}

/// Fails like the kernel does when a part of the path is a symbolic link.
fn refuse_links(path: &Path) -> io::Result<()> {
    for part in path.ancestors() {
        if fs::symlink_metadata(part).is_ok_and(|found| found.is_symlink()) {
            return Err(io::ErrorKind::NotADirectory.into());
        }
    }
    Ok(())
}

/// Whether the error says that nothing is there under that name.
pub(crate) fn is_absent(error: &io::Error) -> bool {
    #[cfg(unix)]
    if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) {
        return true;
    }
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// Makes everything on the folder's file system durable; `false` where there is
/// no such call.
#[cfg(target_os = "linux")]
pub(crate) fn sync_file_system(folder: &Path) -> io::Result<bool> {
    rustix::fs::syncfs(File::open(folder)?)?;
    Ok(true)
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn sync_file_system(_: &Path) -> io::Result<bool> {
    Ok(false)
}

/// A folder whose files are looked at one after another, without walking the
/// path to each of them again.
#[cfg(unix)]
pub(crate) struct Folder(std::os::fd::OwnedFd);

#[cfg(unix)]
impl Folder {
    pub(crate) fn open(folder: &Path) -> io::Result<Folder> {
        use rustix::fs::{Mode, OFlags};
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(Folder(rustix::fs::open(folder, flags, Mode::empty())?))
    }

    /// None: it is no plain file.
    pub(crate) fn stat(&self, file: &Path) -> io::Result<Option<crate::Stat>> {
        use rustix::fs::{AtFlags, FileType, statat};
        let name = file.file_name().unwrap_or_default();
        let found = statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW)?;
        let is_file = FileType::from_raw_mode(found.st_mode) == FileType::RegularFile;
        #[allow(
            clippy::unnecessary_cast,
            clippy::cast_lossless,
            reason = "the fields' types differ between systems"
        )]
        Ok(is_file.then_some(crate::Stat {
            dev: found.st_dev as u64,
            ino: found.st_ino as u64,
            size: found.st_size as u64,
            mtime_ns: nanos(found.st_mtime as i64, found.st_mtime_nsec as i64),
            ctime_ns: nanos(found.st_ctime as i64, found.st_ctime_nsec as i64),
        }))
    }
}

#[cfg(not(unix))]
pub(crate) struct Folder;

#[cfg(not(unix))]
impl Folder {
    pub(crate) fn open(_: &Path) -> io::Result<Folder> {
        Ok(Folder)
    }

    /// None: it is no plain file.
    pub(crate) fn stat(&self, file: &Path) -> io::Result<Option<crate::Stat>> {
        let found = fs::symlink_metadata(file)?;
        Ok(found.is_file().then(|| stat_of(&found)))
    }
}

pub(crate) fn stat_of(found: &fs::Metadata) -> crate::Stat {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        crate::Stat {
            dev: found.dev(),
            ino: found.ino(),
            size: found.len(),
            mtime_ns: nanos(found.mtime(), found.mtime_nsec()),
            ctime_ns: nanos(found.ctime(), found.ctime_nsec()),
        }
    }
    #[cfg(not(unix))]
    {
        let since = |time: io::Result<std::time::SystemTime>| {
            let time = time
                .ok()
                .and_then(|t| t.duration_since(std::time::UNIX_EPOCH).ok());
            time.and_then(|t| i64::try_from(t.as_nanos()).ok())
                .unwrap_or(0)
        };
        let (mtime_ns, ctime_ns) = (since(found.modified()), since(found.created()));
        crate::Stat {
            dev: 0,
            ino: 0,
            size: found.len(),
            mtime_ns,
            ctime_ns,
        }
    }
}

#[cfg(unix)]
fn nanos(seconds: i64, nanos: i64) -> i64 {
    seconds.saturating_mul(1_000_000_000).saturating_add(nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_one_stat_however_it_is_looked_at() {
        let folder = tempfile::tempdir().expect("temp");
        let file = folder.path().join("a.md");
        fs::write(&file, "a").expect("write");
        let known = stat_of(&fs::symlink_metadata(&file).expect("metadata"));
        let open = Folder::open(folder.path()).expect("open");
        assert_eq!(open.stat(&file).expect("stat"), Some(known));
        assert_eq!(open.stat(folder.path()).ok().flatten(), None);
        assert!(is_absent(
            &open.stat(&folder.path().join("b.md")).expect_err("none")
        ));
    }
}
