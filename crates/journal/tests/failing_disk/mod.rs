//! A disk whose syncs and deletes fail on command, and that counts requests.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use raft_engine::env::{FileSystem, Handle, Permission};
use statehouse_journal::{Disk, RealDisk};

/// Fails the `first`-th sync of a file and all after it, up to `count` of them.
pub struct FailingDisk {
    plan: Arc<Plan>,
}

pub struct Plan {
    syncs: AtomicU64,
    first: AtomicU64,
    count: u64,
    deletes_left: AtomicU64,
}

impl Plan {
    /// The number of requested syncs.
    pub fn syncs(&self) -> u64 {
        self.syncs.load(Ordering::SeqCst)
    }

    /// Lets all deletes fail after `n` more.
    #[allow(dead_code)]
    pub fn fail_deletes_after(&self, n: u64) {
        self.deletes_left.store(n, Ordering::SeqCst);
    }

    /// Lets the `n`-th sync from now fail, and those after it as planned.
    pub fn fail_after(&self, n: u64) {
        self.first.store(self.syncs() + n, Ordering::SeqCst);
    }
}

impl FailingDisk {
    /// A disk that works until it is told to fail `count` syncs.
    pub fn new(count: u64) -> (Arc<Self>, Arc<Plan>) {
        let plan = Arc::new(Plan {
            syncs: AtomicU64::new(0),
            first: AtomicU64::new(u64::MAX),
            count,
            deletes_left: AtomicU64::new(u64::MAX),
        });
        (Arc::new(Self { plan: plan.clone() }), plan)
    }
}

pub struct FailingHandle {
    inner: Arc<<RealDisk as FileSystem>::Handle>,
    plan: Arc<Plan>,
}

impl Handle for FailingHandle {
    fn truncate(&self, offset: usize) -> io::Result<()> {
        self.inner.truncate(offset)
    }

    fn file_size(&self) -> io::Result<usize> {
        self.inner.file_size()
    }

    fn sync(&self) -> io::Result<()> {
        let number = self.plan.syncs.fetch_add(1, Ordering::SeqCst) + 1;
        let first = self.plan.first.load(Ordering::SeqCst);
        if number >= first && number - first < self.plan.count {
            return Err(io::Error::other("the disk is gone"));
        }
        self.inner.sync()
    }
}

impl FailingDisk {
    fn handle(&self, inner: <RealDisk as FileSystem>::Handle) -> FailingHandle {
        FailingHandle { inner: Arc::new(inner), plan: self.plan.clone() }
    }
}

impl FileSystem for FailingDisk {
    type Handle = FailingHandle;
    type Reader = <RealDisk as FileSystem>::Reader;
    type Writer = <RealDisk as FileSystem>::Writer;

    fn create<P: AsRef<Path>>(&self, path: P) -> io::Result<Self::Handle> {
        Ok(self.handle(RealDisk.create(path)?))
    }

    fn open<P: AsRef<Path>>(&self, path: P, permission: Permission) -> io::Result<Self::Handle> {
        Ok(self.handle(RealDisk.open(path, permission)?))
    }

    fn delete<P: AsRef<Path>>(&self, path: P) -> io::Result<()> {
        let left = &self.plan.deletes_left;
        if left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_err() {
            return Err(io::Error::other("the disk is gone"));
        }
        RealDisk.delete(path)
    }

    fn rename<P: AsRef<Path>>(&self, from: P, to: P) -> io::Result<()> {
        RealDisk.rename(from, to)
    }

    fn new_reader(&self, handle: Arc<Self::Handle>) -> io::Result<Self::Reader> {
        RealDisk.new_reader(handle.inner.clone())
    }

    fn new_writer(&self, handle: Arc<Self::Handle>) -> io::Result<Self::Writer> {
        RealDisk.new_writer(handle.inner.clone())
    }
}

impl Disk for FailingDisk {
    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        RealDisk.sync_directory(path)
    }
}
