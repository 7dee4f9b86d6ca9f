//! The file calls of the store, in one directory.
//!
//! Keeps: a new file is `0600` whatever the umask and is never created through a link; a file that was not finished is
//! removed. A failed sync is [`Failure::InDoubt`], any other failure leaves everything as it was.
//! Never: retries a failed call.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use kv::KvError;
use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::failure::Failure;

const FILE_MODE: u32 = 0o600;
const FOLDER_MODE: u32 = 0o700;

/// A kind of call; tests let any of them fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    Create,
    Open,
    Read,
    Write,
    Sync,
    SyncDirectory,
    Rename,
    Remove,
}

/// The directory of a store.
pub(crate) struct Files {
    directory: PathBuf,
    /// The directory itself, open to be synced.
    opened: OnceLock<File>,
    #[cfg(test)]
    pub(crate) faults: tests::Faults,
}

impl Files {
    pub(crate) fn new(directory: &Path) -> Self {
        Self {
            directory: directory.to_owned(),
            opened: OnceLock::new(),
            #[cfg(test)]
            faults: tests::Faults::default(),
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    fn called(&self, _call: Call) -> io::Result<()> {
        #[cfg(test)]
        self.faults.called(_call)?;
        Ok(())
    }

    fn error(&self, action: &'static str, name: &str, error: &io::Error, bytes: u64) -> KvError {
        let reason = format!("{}: {error}", self.path(name).display());
        match error.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::NOSPC | Errno::DQUOT) => KvError::NoSpace { action, bytes_needed: bytes, reason },
            _ => KvError::Io { action, reason },
        }
    }

    fn retry(&self, action: &'static str, name: &str, error: &io::Error) -> Failure {
        Failure::Retry(self.error(action, name, error, 0))
    }

    fn in_doubt(&self, action: &'static str, name: &str, error: &io::Error) -> Failure {
        Failure::InDoubt(self.error(action, name, error, 0))
    }

    /// Creates the directory, unless it exists.
    pub(crate) fn create_directory(&self) -> Result<(), Failure> {
        if self.directory.is_dir() {
            return Ok(());
        }
        let made = DirBuilder::new().mode(FOLDER_MODE).create(&self.directory);
        let made = made.and_then(|()| std::fs::set_permissions(&self.directory, Permissions::from_mode(FOLDER_MODE)));
        made.map_err(|error| self.retry("create the store's directory", "", &error))
    }

    pub(crate) fn create(self: &Arc<Self>, name: &str) -> Result<NewFile, Failure> {
        let options = || {
            let mut options = OpenOptions::new();
            options.write(true).create_new(true).mode(FILE_MODE);
            options
        };
        let created = self.called(Call::Create).and_then(|()| options().open(self.path(name)));
        let file = created.map_err(|error| self.retry("create a file", name, &error))?;
        let new = NewFile { files: self.clone(), name: name.to_owned(), file, bytes: 0, bytes_synced: 0, kept: false };
        // The umask removes permissions, and may have removed the owner's.
        let private = new.file.set_permissions(Permissions::from_mode(FILE_MODE));
        private.map_err(|error| self.retry("make a file private", name, &error))?;
        Ok(new)
    }

    /// Opens a file to read. A link is an error.
    pub(crate) fn open(&self, name: &str) -> io::Result<File> {
        self.called(Call::Open)?;
        let no_follow = i32::try_from(OFlags::NOFOLLOW.bits()).expect("a flag of open()");
        OpenOptions::new().read(true).custom_flags(no_follow).open(self.path(name))
    }

    pub(crate) fn read_at(&self, file: &File, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        self.called(Call::Read)?;
        file.read_exact_at(bytes, offset)
    }

    pub(crate) fn rename(&self, from: &str, to: &str) -> Result<(), Failure> {
        let renamed = self.called(Call::Rename).and_then(|()| std::fs::rename(self.path(from), self.path(to)));
        renamed.map_err(|error| self.retry("rename a file", from, &error))
    }

    pub(crate) fn remove(&self, name: &str) -> Result<(), Failure> {
        let removed = self.called(Call::Remove).and_then(|()| std::fs::remove_file(self.path(name)));
        removed.map_err(|error| self.retry("remove a file", name, &error))
    }

    /// Opens the directory, unless that was done before. Whoever is about to do what only a sync of the directory ends calls
    /// this first: afterwards, a failure to open it would leave everybody in doubt.
    pub(crate) fn open_directory(&self) -> Result<&File, Failure> {
        if let Some(directory) = self.opened.get() {
            return Ok(directory);
        }
        let opened = self.called(Call::Open).and_then(|()| File::open(&self.directory));
        let directory = opened.map_err(|error| self.retry("open the store's directory", "", &error))?;
        Ok(self.opened.get_or_init(|| directory))
    }

    /// Makes the names in the directory durable.
    pub(crate) fn sync_directory(&self) -> Result<(), Failure> {
        let directory = self.open_directory()?;
        let synced = self.called(Call::SyncDirectory).and_then(|()| directory.sync_all());
        synced.map_err(|error| self.in_doubt("sync the store's directory", "", &error))
    }

    /// The bytes that this user can still write.
    pub(crate) fn bytes_available(&self) -> Result<u64, Failure> {
        #[cfg(test)]
        if let Some(bytes) = *self.faults.bytes_available.lock().expect("no test panics with it") {
            return Ok(bytes);
        }
        #[cfg(test)]
        if let Some(bytes) = self.faults.small_disk() {
            let taken: u64 = self.list()?.iter().map(|(_, bytes)| bytes).sum();
            return Ok(bytes.saturating_sub(taken));
        }
        let space = rustix::fs::statvfs(&self.directory);
        let space = space.map_err(|error| self.retry("look for space", "", &error.into()))?;
        Ok(space.f_bavail.saturating_mul(space.f_frsize))
    }

    /// Every name in the directory, with the size of the file.
    pub(crate) fn list(&self) -> Result<Vec<(String, u64)>, Failure> {
        let list = || {
            let mut found = Vec::new();
            for entry in std::fs::read_dir(&self.directory)? {
                let entry = entry?;
                match entry.metadata() {
                    Ok(metadata) => found.push((entry.file_name().to_string_lossy().into_owned(), metadata.len())),
                    // It was removed after it was listed.
                    Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(found)
        };
        list().map_err(|error| self.retry("list the store's directory", "", &error))
    }
}

/// A file being written. It is removed again unless it is [`kept`](Self::keep).
pub(crate) struct NewFile {
    files: Arc<Files>,
    name: String,
    file: File,
    bytes: u64,
    bytes_synced: u64,
    kept: bool,
}

impl NewFile {
    pub(crate) fn append(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let written = self.files.called(Call::Write);
        #[cfg(test)]
        let written = written.and_then(|()| match self.files.faults.small_disk() {
            Some(_) if self.files.bytes_available().is_ok_and(|free| free < bytes.len() as u64) => {
                Err(Errno::NOSPC.into())
            }
            _ => Ok(()),
        });
        let written = written.and_then(|()| self.file.write_all(bytes));
        let bytes = bytes.len() as u64;
        written.map_err(|error| {
            Failure::Retry(self.files.error("write a file", &self.name, &error, self.bytes + bytes))
        })?;
        self.bytes += bytes;
        Ok(())
    }

    /// The bytes that the next sync writes.
    pub(crate) fn bytes_unsynced(&self) -> u64 {
        self.bytes - self.bytes_synced
    }

    pub(crate) fn sync(&mut self) -> Result<(), Failure> {
        let synced = self.files.called(Call::Sync).and_then(|()| self.file.sync_data());
        synced.map_err(|error| self.files.in_doubt("sync a file", &self.name, &error))?;
        self.bytes_synced = self.bytes;
        Ok(())
    }

    pub(crate) fn keep(mut self) {
        self.kept = true;
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if !self.kept && self.files.remove(&self.name).is_err() {
            // The next opening removes it, since no manifest names it.
            tracing::warn!(file = self.name, "an unfinished file could not be removed");
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

    use super::*;

    type Plan = Box<dyn FnMut(Call) -> Option<Errno> + Send>;

    /// Decides about each call whether it fails.
    #[derive(Default)]
    pub(crate) struct Faults {
        plan: Mutex<Option<Plan>>,
        pub(crate) bytes_available: Mutex<Option<u64>>,
        planned: AtomicBool,
        /// What files of this store may take together; zero for as much as there is.
        pub(crate) disk_bytes: AtomicU64,
    }

    impl Faults {
        pub(crate) fn set(&self, plan: impl FnMut(Call) -> Option<Errno> + Send + 'static) {
            *self.plan.lock().unwrap() = Some(Box::new(plan));
            self.planned.store(true, Ordering::SeqCst);
        }

        pub(super) fn small_disk(&self) -> Option<u64> {
            Some(self.disk_bytes.load(Ordering::SeqCst)).filter(|bytes| *bytes > 0)
        }

        pub(crate) fn clear(&self) {
            self.planned.store(false, Ordering::SeqCst);
        }

        pub(super) fn called(&self, call: Call) -> io::Result<()> {
            if !self.planned.load(Ordering::SeqCst) {
                return Ok(());
            }
            let failed = self.plan.lock().unwrap().as_mut().and_then(|plan| plan(call));
            failed.map_or(Ok(()), |error| Err(error.into()))
        }
    }

    #[test]
    fn a_file_is_private_and_gone_unless_it_is_kept() {
        let directory = tempfile::tempdir().unwrap();
        let files = Arc::new(Files::new(directory.path()));
        let mut new = files.create("a").unwrap();
        new.append(b"bytes").unwrap();
        let mode = std::fs::metadata(files.path("a")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, FILE_MODE);
        drop(new);
        assert!(!files.path("a").exists());
        files.create("a").unwrap().keep();
        assert!(files.create("a").is_err(), "a name is never used twice");
        std::os::unix::fs::symlink(files.path("a"), files.path("link")).unwrap();
        assert!(files.create("link").is_err() && files.open("link").is_err());
    }

    #[test]
    fn a_full_disk_has_an_error_of_its_own() {
        let directory = tempfile::tempdir().unwrap();
        let files = Arc::new(Files::new(directory.path()));
        for (errno, full) in [(Errno::NOSPC, true), (Errno::DQUOT, true), (Errno::IO, false)] {
            let mut new = files.create("a").unwrap();
            files.faults.set(move |call| (call == Call::Write).then_some(errno));
            let failed = new.append(&[0; 10]);
            files.faults.clear();
            assert_eq!(matches!(failed, Err(Failure::Retry(KvError::NoSpace { bytes_needed: 10, .. }))), full);
            assert_eq!(matches!(failed, Err(Failure::Retry(KvError::Io { .. }))), !full);
        }
    }
}
