//! A disk whose calls fail on command, and that counts them.

#![allow(dead_code)]

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use statehouse_journal::{Disk, DiskDirectory, DiskFile, RealDisk};

/// What is asked of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    Create,
    Open,
    Read,
    Write,
    Allocate,
    Sync,
    SyncDirectory,
    Rename,
    Remove,
    List,
}

impl Call {
    /// Whether nothing may be done after it has failed with this error. The journal goes on where only space is missing.
    pub fn is_fatal(self, errno: i32) -> bool {
        match self {
            Call::Sync | Call::SyncDirectory => true,
            Call::Write | Call::Create | Call::Allocate => errno == EIO,
            _ => false,
        }
    }
}

pub const ENOSPC: i32 = 28;
pub const EIO: i32 = 5;
pub const EMFILE: i32 = 24;

/// Which calls fail.
struct Fault {
    /// Only calls of this kind, if given.
    call: Option<Call>,
    /// So many of them succeed first,
    after: u64,
    /// then so many fail.
    count: u64,
    errno: i32,
}

#[derive(Default)]
pub struct Plan {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    fault: Option<Fault>,
    calls: u64,
    syncs: u64,
    failed: Vec<Call>,
}

impl Plan {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nobody panics while it is held")
    }

    /// The number of requested syncs of files.
    pub fn syncs(&self) -> u64 {
        self.lock().syncs
    }

    /// The number of all calls.
    pub fn calls(&self) -> u64 {
        self.lock().calls
    }

    /// The calls that have failed.
    pub fn failed(&self) -> Vec<Call> {
        self.lock().failed.clone()
    }

    /// Lets calls of one kind, or all, fail: after so many from now, so many times.
    pub fn fail(&self, call: Option<Call>, after: u64, count: u64, errno: i32) {
        self.lock().fault = Some(Fault { call, after, count, errno });
    }

    /// Nothing fails any more.
    pub fn heal(&self) {
        self.lock().fault = None;
    }

    fn ask(&self, call: Call) -> io::Result<()> {
        let mut state = self.lock();
        state.calls += 1;
        state.syncs += u64::from(call == Call::Sync);
        let Some(fault) = &mut state.fault else { return Ok(()) };
        if fault.call.is_some_and(|wanted| wanted != call) {
            return Ok(());
        }
        if fault.after > 0 {
            fault.after -= 1;
            return Ok(());
        }
        if fault.count == 0 {
            return Ok(());
        }
        fault.count -= 1;
        let errno = fault.errno;
        state.failed.push(call);
        Err(io::Error::from_raw_os_error(errno))
    }
}

/// A disk that works until its plan says otherwise.
pub struct FailingDisk {
    plan: Arc<Plan>,
}

impl FailingDisk {
    pub fn new() -> (Arc<Self>, Arc<Plan>) {
        let plan = Arc::new(Plan::default());
        (Arc::new(Self { plan: plan.clone() }), plan)
    }

    fn wrap(&self, inner: File) -> FailingFile {
        FailingFile { inner, plan: self.plan.clone() }
    }
}

/// A file or a directory.
pub struct FailingFile {
    inner: File,
    plan: Arc<Plan>,
}

impl Disk for FailingDisk {
    type File = FailingFile;
    type Directory = FailingFile;

    fn create(&self, path: &Path) -> io::Result<FailingFile> {
        self.plan.ask(Call::Create)?;
        Ok(self.wrap(RealDisk.create(path)?))
    }

    fn open(&self, path: &Path) -> io::Result<FailingFile> {
        self.plan.ask(Call::Open)?;
        Ok(self.wrap(RealDisk.open(path)?))
    }

    fn create_directory(&self, path: &Path) -> io::Result<()> {
        self.plan.ask(Call::Create)?;
        RealDisk.create_directory(path)
    }

    fn open_directory(&self, path: &Path) -> io::Result<FailingFile> {
        self.plan.ask(Call::Open)?;
        Ok(self.wrap(RealDisk.open_directory(path)?))
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        self.plan.ask(Call::List)?;
        RealDisk.list(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.plan.ask(Call::Rename)?;
        RealDisk.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.plan.ask(Call::Remove)?;
        RealDisk.remove(path)
    }
}

impl DiskFile for FailingFile {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        self.plan.ask(Call::Read)?;
        DiskFile::read_at(&self.inner, bytes, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let asked = self.plan.ask(Call::Write);
        if asked.is_err() {
            // A failed write may have written something.
            DiskFile::write_at(&self.inner, &bytes[..bytes.len() / 2], offset)?;
        }
        asked?;
        DiskFile::write_at(&self.inner, bytes, offset)
    }

    fn allocate(&self, length: u64) -> io::Result<()> {
        self.plan.ask(Call::Allocate)?;
        self.inner.allocate(length)
    }

    fn length(&self) -> io::Result<u64> {
        self.inner.length()
    }

    fn sync_data(&self) -> io::Result<()> {
        self.plan.ask(Call::Sync)?;
        DiskFile::sync_data(&self.inner)
    }
}

impl DiskDirectory for FailingFile {
    fn sync(&self) -> io::Result<()> {
        self.plan.ask(Call::SyncDirectory)?;
        DiskDirectory::sync(&self.inner)
    }

    fn try_lock(&self) -> io::Result<bool> {
        DiskDirectory::try_lock(&self.inner)
    }
}
