//! The file system as the journal uses it: `raft-engine`'s seam, and the one call that it lacks.

use std::fs::{OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;

use raft_engine::env::{DefaultFileSystem, FileSystem, Permission};

/// A file system that can also make directory entries durable.
pub trait Disk: FileSystem + 'static {
    /// Makes the entries of a directory durable.
    fn sync_directory(&self, path: &Path) -> io::Result<()>;
}

/// Only the owner reads and writes.
const FILE_MODE: u32 = 0o600;

/// The flag of `open()` that refuses a link.
#[allow(clippy::cast_possible_wrap, reason = "a flag of open() is an int")]
const O_NOFOLLOW: i32 = rustix::fs::OFlags::NOFOLLOW.bits() as i32;

/// The machine's own file system.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealDisk;

impl Disk for RealDisk {
    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        std::fs::File::open(path)?.sync_all()
    }
}

impl FileSystem for RealDisk {
    type Handle = <DefaultFileSystem as FileSystem>::Handle;
    type Reader = <DefaultFileSystem as FileSystem>::Reader;
    type Writer = <DefaultFileSystem as FileSystem>::Writer;

    fn create<P: AsRef<Path>>(&self, path: P) -> io::Result<Self::Handle> {
        // For its owner only, and not through a link; the engine below creates files that everybody can read.
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(FILE_MODE).custom_flags(O_NOFOLLOW);
        options.open(&path)?.set_permissions(Permissions::from_mode(FILE_MODE))?;
        DefaultFileSystem.open(path, Permission::ReadWrite)
    }

    fn open<P: AsRef<Path>>(&self, path: P, permission: Permission) -> io::Result<Self::Handle> {
        DefaultFileSystem.open(path, permission)
    }

    fn delete<P: AsRef<Path>>(&self, path: P) -> io::Result<()> {
        DefaultFileSystem.delete(path)
    }

    fn rename<P: AsRef<Path>>(&self, from: P, to: P) -> io::Result<()> {
        DefaultFileSystem.rename(from, to)
    }

    fn new_reader(&self, handle: Arc<Self::Handle>) -> io::Result<Self::Reader> {
        DefaultFileSystem.new_reader(handle)
    }

    fn new_writer(&self, handle: Arc<Self::Handle>) -> io::Result<Self::Writer> {
        DefaultFileSystem.new_writer(handle)
    }
}
