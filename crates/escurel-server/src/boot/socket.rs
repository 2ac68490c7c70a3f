//! The Unix socket beside the lock.
//!
//! Invariant: only the lock's owner binds it, so a file that is already there
//! is left over from a process that died.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tokio::net::{UnixListener, UnixStream};

/// Addresses of sockets are limited to about 108 bytes.
const MAX_ADDRESS: usize = 100;

/// A bound socket; its file goes with it.
pub struct LocalSocket {
    path: PathBuf,
    listener: Option<UnixListener>,
}

impl LocalSocket {
    pub fn bind(path: &Path) -> io::Result<LocalSocket> {
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = with_address(path, |address| UnixListener::bind(address))?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
        Ok(LocalSocket {
            path: path.to_owned(),
            listener: Some(listener),
        })
    }

    /// The listener, once; the file stays until this value is dropped.
    pub fn take_listener(&mut self) -> Option<UnixListener> {
        self.listener.take()
    }
}

impl Drop for LocalSocket {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

pub async fn connect(path: &Path) -> io::Result<UnixStream> {
    if path.as_os_str().len() <= MAX_ADDRESS {
        return UnixStream::connect(path).await;
    }
    let stream = with_address(path, std::os::unix::net::UnixStream::connect)?;
    stream.set_nonblocking(true)?;
    UnixStream::from_std(stream)
}

/// Deep folders are addressed through an open handle of their parent.
fn with_address<T>(path: &Path, use_it: impl FnOnce(PathBuf) -> io::Result<T>) -> io::Result<T> {
    if path.as_os_str().len() <= MAX_ADDRESS {
        return use_it(path.to_owned());
    }
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let parent = File::open(parent)?;
    use_it(PathBuf::from(format!("/proc/self/fd/{}", parent.as_raw_fd())).join(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn deep_paths_and_leftovers() {
        let dir = tempfile::tempdir().unwrap();
        let deep = dir.path().join("d".repeat(90)).join("e".repeat(90));
        std::fs::create_dir_all(&deep).unwrap();
        for path in [dir.path().join("socket"), deep.join("socket")] {
            std::fs::write(&path, "left over").unwrap();
            let socket = LocalSocket::bind(&path).unwrap();
            connect(&path).await.unwrap();
            let mode = std::fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
            drop(socket);
            assert!(!path.exists() && connect(&path).await.is_err());
        }
    }
}
