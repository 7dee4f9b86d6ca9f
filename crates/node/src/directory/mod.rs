//! The directory: its lock, its identity, and how a new one is created; `docs/formats/directory.md`.
//!
//! Keeps: H1 (one opener at a time) and H2 (a directory is either complete or still being created: the identity file
//! gets its name last, so nothing is ever acknowledged in a directory without one). Only the owner can read a
//! directory, whatever the umask; opening one removes access for others. A link inside is refused by name, and a new
//! directory is never created through one, or among foreign files. Never: removes anything from a directory that has,
//! or ever had, an identity.

mod identity;
pub mod owner_only;

use std::fs::{File, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use contract::{Error, Failure, FailureKind};
use kernel::Buckets;

use crate::directory::identity::Identity;
use crate::error::{cannot_open, stopped};

const IDENTITY_FILE: &str = "IDENTITY";
/// Exists instead of the file above while a directory is being created.
const UNFINISHED_FILE: &str = "IDENTITY.new";
/// The same while it is being filled from a backup or an export: whoever opens it to work with it must not
/// take it for empty.
const UNFINISHED_TRANSFER_FILE: &str = "IDENTITY.transfer";
const UNFINISHED_FILES: [&str; 2] = [UNFINISHED_FILE, UNFINISHED_TRANSFER_FILE];
const LOCK_FILE: &str = "LOCK";
/// What may be in a folder that becomes a directory: the remains of an earlier creation, and what a new file system
/// contains.
const OURS: &[&str] = &[UNFINISHED_FILE, UNFINISHED_TRANSFER_FILE, LOCK_FILE, "store", "journal", "lost+found"];

/// An open directory.
pub(crate) struct Directory {
    path: PathBuf,
    identity: Identity,
    /// Held while the directory is open.
    _lock: File,
}

/// The result of [`Directory::open`].
pub(crate) enum Found {
    /// A directory with an identity.
    Whole(Directory),
    /// A new one: fill it, then [`finish`](Unfinished::finish) it.
    New(Unfinished),
}

/// Who fills a new directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilledBy {
    /// Whoever opens it to work with it: it starts empty.
    Opener,
    /// A restore or an import.
    Transfer,
}

impl FilledBy {
    fn unfinished_file(self) -> &'static str {
        match self {
            FilledBy::Opener => UNFINISHED_FILE,
            FilledBy::Transfer => UNFINISHED_TRANSFER_FILE,
        }
    }
}

/// A directory being created.
pub(crate) struct Unfinished {
    directory: Directory,
    filled_by: FilledBy,
}

impl Directory {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the directory at `path`, or starts a new one with the given number of buckets.
    pub(crate) fn open(path: &Path, buckets: Buckets, filled_by: FilledBy) -> Result<Found, Error> {
        let (identity_file, unfinished_file) = (path.join(IDENTITY_FILE), path.join(filled_by.unfinished_file()));
        if !identity_file.exists() {
            refuse_foreign(path)?;
            create_directory(path).map_err(|error| cannot_use(path, "create", &error))?;
        }
        let lock = lock(path)?;
        if identity_file.exists() {
            let repaired = owner_only::repair(path).map_err(|error| cannot_use(path, "look through", &error))?;
            if repaired.open_to_others > 0 {
                let (path, count) = (path.display(), repaired.open_to_others);
                tracing::warn!(%path, count, "other users could read the directory; their access was removed");
            }
            // A killed process may have left its name in memory only, and it is about to be trusted.
            sync_directory(path).map_err(|error| cannot_use(path, "sync", &error))?;
            let identity = Identity::read(&identity_file)?;
            return Ok(Found::Whole(Self { path: path.to_owned(), identity, _lock: lock }));
        }
        if filled_by == FilledBy::Opener && path.join(UNFINISHED_TRANSFER_FILE).exists() {
            return Err(cannot_open(format!(
                "a restore or import into {} was interrupted, and the folder holds a part of the data; run it again, or remove \
                 the folder",
                path.display()
            )));
        }
        let directory =
            Self { path: path.to_owned(), identity: Identity { id: random_number(), buckets }, _lock: lock };
        let leftovers = [directory.store_path(), directory.journal_path()];
        if is_unfinished(path) {
            // Making this directory was cut short; nothing in it was ever acknowledged.
            for leftover in leftovers.iter().filter(|leftover| is_there(leftover)) {
                std::fs::remove_dir_all(leftover).map_err(|error| cannot_use(leftover, "clear", &error))?;
            }
        } else if let Some(leftover) = leftovers.iter().find(|leftover| is_there(leftover)) {
            return Err(cannot_open(format!(
                "{} has a {} but no {IDENTITY_FILE} file; restore that file, or move the rest away to start over",
                path.display(),
                leftover.file_name().unwrap_or_default().to_string_lossy()
            )));
        }
        let make = || {
            write_synced(&unfinished_file, directory.identity.encode().as_bytes())?;
            sync_directory(path)?;
            if filled_by == FilledBy::Transfer && path.join(UNFINISHED_FILE).exists() {
                // Of a creation that was interrupted before; from here on it is a transfer that is unfinished.
                std::fs::remove_file(path.join(UNFINISHED_FILE))?;
            }
            owner_only::create_folder(&directory.store_path())?;
            owner_only::create_folder(&directory.journal_path())
        };
        make().map_err(|error| cannot_use(path, "begin", &error))?;
        Ok(Found::New(Unfinished { directory, filled_by }))
    }

    pub(crate) fn identity(&self) -> Identity {
        self.identity
    }

    pub(crate) fn store_path(&self) -> PathBuf {
        self.path.join("store")
    }

    pub(crate) fn journal_path(&self) -> PathBuf {
        self.path.join("journal")
    }
}

impl Unfinished {
    /// The directory, to be filled.
    pub(crate) fn directory(&self) -> &Directory {
        &self.directory
    }

    /// Sets the number of buckets, where the first state brings its own.
    pub(crate) fn set_buckets(&mut self, buckets: Buckets) -> Result<(), Error> {
        self.directory.identity.buckets = buckets;
        let path = self.directory.path.join(self.filled_by.unfinished_file());
        write_synced(&path, self.directory.identity.encode().as_bytes())
            .map_err(|error| cannot_use(&path, "write", &error))
    }

    /// Completes the directory.
    pub(crate) fn finish(self) -> Result<Directory, Error> {
        let path = &self.directory.path;
        let finish = || {
            // After a power failure the last name may exist without what was created before it, unless that is synced.
            sync_directory(path)?;
            std::fs::rename(path.join(self.filled_by.unfinished_file()), path.join(IDENTITY_FILE))?;
            sync_directory(path)
        };
        finish().map_err(|error| cannot_use(path, "finish", &error))?;
        Ok(self.directory)
    }
}

/// Whether creating or filling the directory was interrupted.
fn is_unfinished(path: &Path) -> bool {
    !path.join(IDENTITY_FILE).exists() && UNFINISHED_FILES.iter().any(|file| path.join(file).exists())
}

/// Refuses a path where a new directory cannot be created because something exists. An empty folder is free, and so is
/// one with an interrupted creation.
pub fn check_free(path: &Path) -> Result<(), Error> {
    if is_unfinished(path) {
        return Ok(());
    }
    let entries = match std::fs::read_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(cannot_use(path, "look into", &error)),
        Ok(entries) => entries,
    };
    match entries.count() {
        0 => Ok(()),
        count => Err(cannot_open(format!(
            "{} already exists and holds {count} entr{}; name a folder that does not exist, nothing is ever replaced",
            path.display(),
            if count == 1 { "y" } else { "ies" },
        ))),
    }
}

/// Removes the remains of an incomplete directory, and with `folder` the folder itself. One with an identity is left
/// alone.
pub fn clear_unfinished(path: &Path, folder: bool) -> Result<(), Error> {
    if !is_unfinished(path) {
        return Ok(());
    }
    let clear = || {
        for part in ["store", "journal"].map(|part| path.join(part)).iter().filter(|part| is_there(part)) {
            std::fs::remove_dir_all(part)?;
        }
        std::fs::remove_file(path.join(LOCK_FILE))?;
        for file in UNFINISHED_FILES.map(|file| path.join(file)) {
            if is_there(&file) {
                std::fs::remove_file(file)?;
            }
        }
        if folder { std::fs::remove_dir(path) } else { Ok(()) }
    };
    clear().map_err(|error| cannot_use(path, "clear", &error))
}

fn lock(path: &Path) -> Result<File, Error> {
    let lock_file = path.join(LOCK_FILE);
    let mut file = owner_only::open_or_create(&lock_file).map_err(|error| cannot_use(&lock_file, "create", &error))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(in_use(path, &mut file)),
        Err(TryLockError::Error(error)) => return Err(cannot_use(&lock_file, "lock", &error)),
    }
    // For anyone who finds it locked. Failing to write it is no reason not to open.
    let say = || {
        file.set_len(0)?;
        file.write_all(format!("{}\n", std::process::id()).as_bytes())
    };
    if let Err(error) = { say }() {
        tracing::debug!(%error, "the lock does not name its holder");
    }
    Ok(file)
}

/// The process that has the directory open, according to the lock.
fn in_use(path: &Path, lock: &mut File) -> Error {
    let mut said = String::new();
    let read = lock.rewind().and_then(|()| lock.take(32).read_to_string(&mut said));
    let holder = match (read, said.trim().parse::<u32>()) {
        (Ok(_), Ok(process)) if process == std::process::id() => "in this process".to_owned(),
        (Ok(_), Ok(process)) => format!("in process {process}"),
        _ => "in this or another process".to_owned(),
    };
    let message = format!("{} is already open, {holder}; close it there first", path.display());
    Failure::not_applied(FailureKind::InUse, message).into()
}

/// Whether something has this name, be it a link that leads nowhere.
fn is_there(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok()
}

/// Refuses to create a directory through a link, in place of a file, or among foreign files.
fn refuse_foreign(path: &Path) -> Result<(), Error> {
    let Ok(found) = std::fs::symlink_metadata(path) else {
        return Ok(());
    };
    if found.is_symlink() {
        let message = format!(
            "{} is a link, and a new directory is not created through a link; name the folder itself",
            path.display()
        );
        return Err(cannot_open(message));
    }
    if !found.is_dir() {
        return Err(cannot_open(format!("{} is a file; name a folder", path.display())));
    }
    let entries = std::fs::read_dir(path).map_err(|error| cannot_use(path, "look into", &error))?;
    let names = entries.filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned()));
    let mut foreign: Vec<String> = names.filter(|name| !OURS.contains(&name.as_str())).collect();
    foreign.sort();
    match foreign.first() {
        None => Ok(()),
        Some(first) => Err(cannot_open(format!(
            "{} is not a statehouse directory and is not empty: it holds {first:?}{}; name an empty folder, or one that does not exist",
            path.display(),
            if foreign.len() == 1 { String::new() } else { format!(" and {} more", foreign.len() - 1) },
        ))),
    }
}

/// Creates a directory with its parents, and makes the entry of each durable.
fn create_directory(path: &Path) -> io::Result<()> {
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    if path.is_dir() {
        // If a killed process created it, its entry may be in memory only. A user who may not even read the parent has
        // hardly created it.
        return match sync_directory(parent) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
            synced => synced,
        };
    }
    create_directory(parent)?;
    owner_only::create_folder(path)?;
    sync_directory(parent)
}

/// Writes the file that says that a directory is unfinished. If it is there, it keeps its name: without it, a power failure
/// would leave what nobody takes for unfinished. A link, or a file that has another name too, is replaced.
fn write_synced(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = match std::fs::symlink_metadata(path) {
        Ok(found) if found.is_file() && found.nlink() == 1 => owner_only::open_or_create(path)?,
        found => {
            if found.is_ok() {
                std::fs::remove_file(path)?;
            }
            owner_only::create_new(path)?
        }
    };
    file.set_len(0)?;
    file.write_all(bytes)?;
    file.sync_all()
}

fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

pub(crate) fn cannot_use(path: &Path, action: &str, error: &io::Error) -> Error {
    let advice = match error.kind() {
        io::ErrorKind::PermissionDenied => "; this user may not access it: run as the owner, or choose another folder",
        io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => "; a part of the path is a file",
        io::ErrorKind::StorageFull => return stopped(error.to_string()),
        io::ErrorKind::ReadOnlyFilesystem => "; choose a folder on a writable disk",
        _ => "",
    };
    cannot_open(format!("could not {action} {}: {error}{advice}", path.display()))
}

/// A number that no other directory has. It tells directories apart and needs no secrecy.
fn random_number() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(std::process::id())
}

#[cfg(test)]
mod tests;
