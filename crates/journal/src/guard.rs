//! A file system that asks before a recovery cuts a file.
//!
//! `raft-engine` drops the end of its last file at the first damage and only prints a warning. Here each such cut is
//! judged first (`survey`), and one that would lose durable entries fails instead, with the file untouched.
//!
//! Keeps: J3. Never: stands in the way once the files are open.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use raft_engine::env::{FileSystem, Handle, Permission};

use crate::disk::Disk;
use crate::survey;
use crate::watermark::Marks;

pub(crate) struct Guard<D: Disk> {
    disk: Arc<D>,
    judge: Arc<Judge<D>>,
}

/// What a cut is judged by while the files are being opened.
struct Judge<D: Disk> {
    disk: Arc<D>,
    opening: AtomicBool,
    marks: Marks,
    seed: u64,
    refusal: Mutex<Option<(PathBuf, String)>>,
}

impl<D: Disk> Guard<D> {
    pub(crate) fn new(disk: Arc<D>, marks: Marks, seed: u64) -> Self {
        let judge = Judge {
            disk: disk.clone(),
            opening: AtomicBool::new(true),
            marks,
            seed,
            refusal: Mutex::default(),
        };
        Self { disk, judge: Arc::new(judge) }
    }

    /// The files are open: cuts are the engine's own business from now on.
    pub(crate) fn opened(&self) {
        self.judge.opening.store(false, Ordering::SeqCst);
    }

    /// Which file was not cut while opening, and why.
    pub(crate) fn refusal(&self) -> Option<(PathBuf, String)> {
        self.judge.refusal.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl<D: Disk> Judge<D> {
    fn allow_cut(&self, file: &Path, offset: usize) -> io::Result<()> {
        if !self.opening.load(Ordering::SeqCst) {
            return Ok(());
        }
        let reason = survey::reason_not_to_cut(&*self.disk, file, offset, &self.marks, self.seed)?;
        let Some(reason) = reason else { return Ok(()) };
        let refusal = (file.to_owned(), format!("at byte {offset}: {reason}"));
        *self.refusal.lock().unwrap_or_else(PoisonError::into_inner) = Some(refusal);
        Err(io::Error::other("refused to drop durable entries"))
    }
}

/// An open file that knows its path.
pub(crate) struct GuardedHandle<D: Disk> {
    inner: Arc<D::Handle>,
    path: PathBuf,
    judge: Arc<Judge<D>>,
}

impl<D: Disk> Handle for GuardedHandle<D> {
    fn truncate(&self, offset: usize) -> io::Result<()> {
        self.judge.allow_cut(&self.path, offset)?;
        self.inner.truncate(offset)
    }

    fn file_size(&self) -> io::Result<usize> {
        self.inner.file_size()
    }

    fn sync(&self) -> io::Result<()> {
        self.inner.sync()
    }
}

impl<D: Disk> Guard<D> {
    fn guarded(&self, inner: D::Handle, path: &Path) -> GuardedHandle<D> {
        GuardedHandle { inner: Arc::new(inner), path: path.to_owned(), judge: self.judge.clone() }
    }
}

impl<D: Disk> FileSystem for Guard<D> {
    type Handle = GuardedHandle<D>;
    type Reader = D::Reader;
    type Writer = D::Writer;

    fn create<P: AsRef<Path>>(&self, path: P) -> io::Result<Self::Handle> {
        Ok(self.guarded(self.disk.create(path.as_ref())?, path.as_ref()))
    }

    fn open<P: AsRef<Path>>(&self, path: P, permission: Permission) -> io::Result<Self::Handle> {
        Ok(self.guarded(self.disk.open(path.as_ref(), permission)?, path.as_ref()))
    }

    fn delete<P: AsRef<Path>>(&self, path: P) -> io::Result<()> {
        self.disk.delete(path)
    }

    fn rename<P: AsRef<Path>>(&self, from: P, to: P) -> io::Result<()> {
        self.disk.rename(from, to)
    }

    fn new_reader(&self, handle: Arc<Self::Handle>) -> io::Result<Self::Reader> {
        self.disk.new_reader(handle.inner.clone())
    }

    fn new_writer(&self, handle: Arc<Self::Handle>) -> io::Result<Self::Writer> {
        self.disk.new_writer(handle.inner.clone())
    }
}
