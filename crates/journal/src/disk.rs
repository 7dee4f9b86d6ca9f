//! The file system as the journal uses it: the few calls it needs, so that tests can fail, record or lose each of them.
//!
//! Keeps: files are readable by their owner only, and links are never followed. Never: syncs by itself.

use std::fs::{DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use rustix::fs::{FallocateFlags, OFlags};
use rustix::io::Errno;

/// A file system.
pub trait Disk: Send + Sync + 'static {
    /// An open file.
    type File: DiskFile;
    /// An open directory.
    type Directory: DiskDirectory;

    /// Creates a file. One that is there already is an error, as is a link.
    fn create(&self, path: &Path) -> io::Result<Self::File>;

    /// Opens a file to read and write.
    fn open(&self, path: &Path) -> io::Result<Self::File>;

    /// Creates a directory, unless it is there already.
    fn create_directory(&self, path: &Path) -> io::Result<()>;

    /// Opens a directory, to list, lock and sync it.
    fn open_directory(&self, path: &Path) -> io::Result<Self::Directory>;

    /// The names in a directory.
    fn list(&self, path: &Path) -> io::Result<Vec<String>>;

    /// Gives a file another name in the same directory.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;
}

/// An open file of a [`Disk`].
pub trait DiskFile: Send + Sync + 'static {
    /// Reads up to as many bytes as fit; fewer at the end of the file.
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes all bytes.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Reserves space: the file is at least this long afterwards, and writes up to there need no more. If that fails,
    /// the file takes no more space than before.
    fn allocate(&self, length: u64) -> io::Result<()>;

    /// The length of the file.
    fn length(&self) -> io::Result<u64>;

    /// Makes the bytes and the length durable.
    fn sync_data(&self) -> io::Result<()>;
}

/// An open directory of a [`Disk`].
pub trait DiskDirectory: Send + Sync + 'static {
    /// Makes the names in it durable.
    fn sync(&self) -> io::Result<()>;

    /// Locks it until it is closed; false if somebody else has.
    fn try_lock(&self) -> io::Result<bool>;
}

const FILE_MODE: u32 = 0o600;
const DIRECTORY_MODE: u32 = 0o700;

/// The flag of `open()` that refuses a link.
#[allow(clippy::cast_possible_wrap, reason = "a flag of open() is an int")]
const O_NOFOLLOW: i32 = OFlags::NOFOLLOW.bits() as i32;

/// Written where a file system cannot reserve space.
static ZEROS: [u8; 1 << 16] = [0; 1 << 16];

/// The machine's own file system.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealDisk;

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(FILE_MODE).custom_flags(O_NOFOLLOW);
    options
}

impl Disk for RealDisk {
    type File = File;
    type Directory = File;

    fn create(&self, path: &Path) -> io::Result<File> {
        let file = options().create_new(true).open(path)?;
        // The umask may have removed permissions of the owner.
        file.set_permissions(Permissions::from_mode(FILE_MODE))?;
        Ok(file)
    }

    fn open(&self, path: &Path) -> io::Result<File> {
        options().open(path)
    }

    fn create_directory(&self, path: &Path) -> io::Result<()> {
        match DirBuilder::new().mode(DIRECTORY_MODE).create(path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
            created => created,
        }
    }

    fn open_directory(&self, path: &Path) -> io::Result<File> {
        OpenOptions::new().read(true).custom_flags(O_NOFOLLOW).open(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(path)? {
            // A name that is no text is none of ours.
            names.extend(entry?.file_name().into_string());
        }
        Ok(names)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(path)
    }
}

impl DiskFile for File {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut filled = 0;
        while filled < bytes.len() {
            match FileExt::read_at(self, &mut bytes[filled..], offset + filled as u64) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.write_all_at(bytes, offset)
    }

    fn allocate(&self, length: u64) -> io::Result<()> {
        let before = self.metadata()?.len();
        let reserved = loop {
            match rustix::fs::fallocate(self, FallocateFlags::empty(), 0, length) {
                Err(Errno::INTR) => {}
                Err(Errno::OPNOTSUPP | Errno::NOSYS) => break fill_with_zeros(self, length),
                done => break done.map_err(io::Error::from),
            }
        };
        if reserved.is_err() {
            // A file system may have reserved a part, and that would be the last space that others have.
            let _ = self.set_len(before);
        }
        reserved
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn sync_data(&self) -> io::Result<()> {
        File::sync_data(self)
    }
}

impl DiskDirectory for File {
    fn sync(&self) -> io::Result<()> {
        self.sync_all()
    }

    fn try_lock(&self) -> io::Result<bool> {
        match File::try_lock(self) {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

fn fill_with_zeros(file: &File, length: u64) -> io::Result<()> {
    let mut offset = file.metadata()?.len();
    while offset < length {
        let count = (length - offset).min(ZEROS.len() as u64);
        let zeros = usize::try_from(count).expect("no more than there are");
        file.write_all_at(&ZEROS[..zeros], offset)?;
        offset += count;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_the_owners_and_links_are_refused() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = |name: &str| directory.path().join(name);
        std::fs::write(path("victim"), "kept").expect("written");
        std::os::unix::fs::symlink(path("victim"), path("link")).expect("planted");
        assert!(RealDisk.create(&path("link")).is_err() && RealDisk.open(&path("link")).is_err());
        RealDisk.create(&path("new")).expect("created");
        RealDisk.create_directory(&path("folder")).expect("created");
        for (name, mode) in [("new", 0o600), ("folder", 0o700)] {
            let permissions = std::fs::metadata(path(name)).expect("there").permissions();
            assert_eq!(permissions.mode() & 0o777, mode, "{name}");
        }
        assert!(RealDisk.create(&path("new")).is_err(), "it is there already");
    }

    #[test]
    fn a_file_that_cannot_be_reserved_is_filled() {
        let directory = tempfile::tempdir().expect("a directory");
        for fill in [fill_with_zeros, |file: &File, length| file.allocate(length)] {
            let path = directory.path().join("file");
            let file = RealDisk.create(&path).expect("created");
            DiskFile::write_at(&file, b"kept", 0).expect("written");
            fill(&file, 200_000).expect("room");
            let mut bytes = [1; 300_000];
            assert_eq!(DiskFile::read_at(&file, &mut bytes, 0).expect("read"), 200_000);
            assert!(bytes.starts_with(b"kept\0\0") && bytes[4..200_000].iter().all(|byte| *byte == 0));
            std::fs::remove_file(path).expect("removed");
        }
    }
}
