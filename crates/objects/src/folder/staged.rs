//! A file that is being written, and what a killed process leaves of it.
//!
//! Touches: `.objects/staged`, and the file's name at the end. Keeps: a file that is being written is locked, so that only what
//! nobody writes any more is removed. Never: shows a file under its name before its bytes are on disk.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Files;
use crate::backend::Upload;
use crate::error::ObjectsError;
use crate::names;

/// Deletions of the folder in between are rare; something else is wrong if there are so many.
const ATTEMPTS: usize = 100;

/// A file without its name.
pub(super) struct Staged {
    files: Arc<Files>,
    name: String,
    /// Open and locked.
    file: File,
    path: PathBuf,
    /// After a write that failed, nobody knows what is in the file.
    failed: Option<ObjectsError>,
}

impl Staged {
    /// Starts one.
    pub(super) fn new(files: Arc<Files>, name: &str) -> Result<Self, ObjectsError> {
        let folder = files.staged();
        let (file, path) = create_locked(&folder).map_err(|error| files.failed("start to write", name, &error))?;
        Ok(Self { files, name: name.to_owned(), file, path, failed: None })
    }

    /// Gives it its name.
    pub(super) fn publish(self) -> Result<(), ObjectsError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let path = self.files.path(&self.name);
        match self.link(&path) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::AlreadyExists && path.is_dir() => {
                return Err(self.files.failed("write", &self.name, &ErrorKind::IsADirectory.into()));
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                // Whoever wrote it may not have synced its name yet, and our caller relies on it from here on.
                let synced = self.files.sync_folders(&path);
                synced.map_err(|error| self.files.failed("write", &self.name, &error))?;
                return Err(self.files.exists(&self.name));
            }
            Err(error) => return Err(self.files.failed("write", &self.name, &error)),
        }
        // It is there, but may not be after a power failure.
        self.files.sync_folders(&path).map_err(|error| ObjectsError::Unknown {
            name: self.name.clone(),
            target: self.files.target.clone(),
            reason: error.to_string(),
        })
    }

    /// Every write fails from here on.
    #[cfg(test)]
    pub(super) fn break_file(&mut self) {
        self.file = File::open(&self.path).expect("it is there");
    }

    fn link(&self, path: &Path) -> io::Result<()> {
        self.file.sync_all()?;
        let mut attempts = 0;
        loop {
            let linked = self.files.create_folders(path).and_then(|()| fs::hard_link(&self.path, path));
            match linked {
                // A deletion removed the folder just now.
                Err(error) if error.kind() == ErrorKind::NotFound && attempts < ATTEMPTS => attempts += 1,
                linked => return linked,
            }
        }
    }
}

impl Write for Staged {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(error) = &self.failed {
            return Err(error.clone().into());
        }
        match self.file.write(bytes) {
            Err(error) if error.kind() != ErrorKind::Interrupted => {
                let failed = self.files.failed("write", &self.name, &error);
                self.failed = Some(failed.clone());
                Err(failed.into())
            }
            written => written,
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Upload for Staged {
    fn finish(self: Box<Self>) -> Result<(), ObjectsError> {
        self.publish()
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        // What cannot be removed is removed by the next opening.
        let _ = fs::remove_file(&self.path);
    }
}

/// A new locked file in the folder.
fn create_locked(folder: &Path) -> io::Result<(File, PathBuf)> {
    for _ in 0..ATTEMPTS {
        let path = folder.join(names::unique()?);
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        match file.try_lock() {
            // Unless it was removed between its creation and the lock.
            Ok(()) if file.metadata()?.nlink() == 1 => return Ok((file, path)),
            Ok(()) | Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => {
                let _ = fs::remove_file(&path);
                return Err(error);
            }
        }
    }
    Err(io::Error::other("files that are being written are removed again and again"))
}

/// Removes the files that nobody writes any more.
pub(super) fn remove_left_behind(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        match File::open(&path) {
            Ok(file) if file.try_lock().is_ok() => match fs::remove_file(&path) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                _ => {}
            },
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
