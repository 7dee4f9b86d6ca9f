//! A socket in the file system: who may connect, the mode of its file says.
//!
//! Keeps: nobody can connect before the file has its mode, and a file is replaced only if it is a socket where nobody answers.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use socket2::{Domain, SockAddr, Socket, Type};
use tokio::net::UnixListener;

use crate::serving::ServeError;

/// The owner and the group may connect.
const MODE: u32 = 0o660;

/// Added to the name of a socket that cannot be connected to yet.
const NEW: &str = ".new";

/// Connections that wait to be accepted; as many as Tokio lets wait.
const BACKLOG: i32 = 1_024;

/// A listener, and its file, which is removed when this is dropped.
#[derive(Debug)]
pub(super) struct UnixSocket {
    pub(super) listener: UnixListener,
    path: PathBuf,
    /// Device and number of the file.
    file: (u64, u64),
}

impl UnixSocket {
    /// Listens on a path.
    pub(super) fn bind(path: &Path) -> Result<Self, ServeError> {
        let failed = |error: io::Error| ServeError::Socket { path: path.to_owned(), error };
        remove_stale(path)?;
        let mut new = path.as_os_str().to_owned();
        new.push(NEW);
        let new = PathBuf::from(new);
        if fs::symlink_metadata(&new).is_ok_and(|found| found.file_type().is_socket()) {
            // Left behind by a start that was interrupted.
            fs::remove_file(&new).map_err(failed)?;
        }
        let listener = listen(&new).and_then(|listener| fs::rename(&new, path).map(|()| listener));
        let listener = listener.map_err(|error| {
            let _ = fs::remove_file(&new);
            failed(error)
        })?;
        let found = fs::symlink_metadata(path).map_err(failed)?;
        Ok(Self { listener, path: path.to_owned(), file: (found.dev(), found.ino()) })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for UnixSocket {
    fn drop(&mut self) {
        // Another server may have replaced it.
        let is_ours = |found: fs::Metadata| (found.dev(), found.ino()) == self.file;
        if fs::symlink_metadata(&self.path).is_ok_and(is_ours) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Listens on a new socket, which has its mode before anybody can connect.
fn listen(path: &Path) -> io::Result<UnixListener> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    socket.bind(&SockAddr::unix(path)?)?;
    fs::set_permissions(path, Permissions::from_mode(MODE))?;
    socket.listen(BACKLOG)?;
    UnixListener::from_std(socket.into())
}

/// Refuses a path where something else is. A socket that its server has left behind may be replaced.
fn remove_stale(path: &Path) -> Result<(), ServeError> {
    let failed = |error: io::Error| ServeError::Socket { path: path.to_owned(), error };
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error)),
        Ok(found) if !found.file_type().is_socket() => return Err(ServeError::NoSocket(path.to_owned())),
        Ok(_) => {}
    }
    match try_connecting(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        // Whoever listens there has more waiting connections than it accepts.
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(ServeError::SocketInUse(path.to_owned())),
        Ok(()) => Err(ServeError::SocketInUse(path.to_owned())),
        Err(error) => Err(failed(error)),
    }
}

/// Says at once whether somebody listens, even if nobody is accepted there any more.
fn try_connecting(path: &Path) -> io::Result<()> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    socket.connect(&SockAddr::unix(path)?)
}
