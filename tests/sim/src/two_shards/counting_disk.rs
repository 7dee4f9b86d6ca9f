//! The machine's disk, with its syncs counted.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use journal::{Disk, DiskDirectory, DiskFile, RealDisk};

/// The machine's disk, with its syncs counted, of files and of folders.
#[derive(Default)]
pub(super) struct CountingDisk {
    syncs: Arc<AtomicU64>,
}

/// A file or a folder of it.
pub(super) struct Counted<F> {
    inner: F,
    syncs: Arc<AtomicU64>,
}

impl CountingDisk {
    pub(super) fn syncs(&self) -> u64 {
        self.syncs.load(Ordering::Relaxed)
    }

    fn counted<F>(&self, opened: io::Result<F>) -> io::Result<Counted<F>> {
        opened.map(|inner| Counted { inner, syncs: self.syncs.clone() })
    }
}

impl Disk for CountingDisk {
    type File = Counted<<RealDisk as Disk>::File>;
    type Directory = Counted<<RealDisk as Disk>::Directory>;

    fn create(&self, path: &Path) -> io::Result<Self::File> {
        self.counted(RealDisk.create(path))
    }

    fn open(&self, path: &Path) -> io::Result<Self::File> {
        self.counted(RealDisk.open(path))
    }

    fn create_directory(&self, path: &Path) -> io::Result<()> {
        RealDisk.create_directory(path)
    }

    fn open_directory(&self, path: &Path) -> io::Result<Self::Directory> {
        self.counted(RealDisk.open_directory(path))
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        RealDisk.list(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        RealDisk.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        RealDisk.remove(path)
    }
}

impl<F: DiskFile> DiskFile for Counted<F> {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        self.inner.read_at(bytes, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.inner.write_at(bytes, offset)
    }

    fn allocate(&self, length: u64) -> io::Result<()> {
        self.inner.allocate(length)
    }

    fn length(&self) -> io::Result<u64> {
        self.inner.length()
    }

    fn sync_data(&self) -> io::Result<()> {
        self.syncs.fetch_add(1, Ordering::Relaxed);
        self.inner.sync_data()
    }
}

impl<F: DiskDirectory> DiskDirectory for Counted<F> {
    fn sync(&self) -> io::Result<()> {
        self.syncs.fetch_add(1, Ordering::Relaxed);
        self.inner.sync()
    }

    fn try_lock(&self) -> io::Result<bool> {
        self.inner.try_lock()
    }
}
