//! A file that is being written, and what a killed process leaves of it.
//!
//! Touches: the folder of its sink. Keeps: each has a name of its own, whoever else writes the same batch, in whatever process or
//! container; it is locked, so that only what nobody writes any more is removed. Never: replaces a file. Where locks reach one machine
//! only, another one may remove it: then it cannot be linked, and the write fails.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Error, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What the names of partial files begin and end with: no id is like that.
const NAME: (&str, &str) = (".", ".partial");

/// How often a new file may be removed before it is locked; something else is wrong if that happens more often.
const ATTEMPTS: usize = 100;

/// A file without its final name.
pub(super) struct Partial {
    /// Open and locked.
    file: File,
    path: PathBuf,
}

impl Partial {
    /// Starts one for a batch.
    pub(super) fn create(folder: &Path, id: &str) -> Result<Self, Error> {
        let (begin, end) = NAME;
        for _ in 0..ATTEMPTS {
            let path = folder.join(format!("{begin}{id}.{:032x}{end}", random()?));
            let file = OpenOptions::new().write(true).create_new(true).open(&path)?;
            let partial = Self { file, path };
            match partial.file.try_lock() {
                // Unless it was removed between its creation and the lock.
                Ok(()) if partial.file.metadata()?.nlink() == 1 => return Ok(partial),
                Ok(()) | Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
        Err(Error::other("files that are being written are removed again and again"))
    }

    /// The file.
    pub(super) fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// Gives it its final name, which must not exist.
    pub(super) fn link(&self, path: &Path) -> Result<(), Error> {
        fs::hard_link(&self.path, path)
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        // What cannot be removed is removed by the next opening.
        let _ = fs::remove_file(&self.path);
    }
}

fn random() -> Result<u128, Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| Error::other(error.to_string()))?;
    Ok(u128::from_le_bytes(bytes))
}

/// Removes the partial files that nobody writes any more.
pub(super) fn remove_left_behind(folder: &Path) -> Result<(), Error> {
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        if !name.to_str().is_some_and(|name| name.starts_with(NAME.0) && name.ends_with(NAME.1)) {
            continue;
        }
        let path = folder.join(name);
        let removed = File::open(&path).and_then(|file| match file.try_lock() {
            Ok(()) => fs::remove_file(&path),
            Err(TryLockError::WouldBlock) => Ok(()),
            Err(TryLockError::Error(error)) => Err(error),
        });
        match removed {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}
