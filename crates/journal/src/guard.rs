//! A file system that asks before a recovery cuts a file, and that stops touching files after a failure.
//!
//! `raft-engine` drops the end of its last file at the first damage and only prints a warning. Here, each such
//! truncation is checked first (`survey`), and fails if it would lose durable entries. An allowed truncation is done
//! when the file is next written or synced, so that an open that is refused later, for whatever reason, has changed
//! nothing.
//!
//! Keeps: J3, J4. Never: interferes once the files are open; syncs or truncates a file after a sync has failed.

use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use raft_engine::env::{FileSystem, Handle, Permission, WriteExt};

use crate::disk::Disk;
use crate::survey;
use crate::watermark::Marks;

pub(crate) struct Guard<D: Disk> {
    disk: Arc<D>,
    judge: Arc<Judge<D>>,
}

/// The phase of the files.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Cuts are judged and put off.
    Opening,
    /// Cuts are the engine's own business.
    Open,
    /// Nobody waits for an answer any more; on an error the engine would panic, twice over.
    Closing,
    /// A write or sync has failed: the content of the disk is unknown and stays unchanged.
    Stopped,
}

/// What decides about a truncation while the files are being opened.
struct Judge<D: Disk> {
    disk: Arc<D>,
    phase: Mutex<Phase>,
    marks: Marks,
    seed: u64,
    refusal: Mutex<Option<(PathBuf, String)>>,
}

impl<D: Disk> Guard<D> {
    pub(crate) fn new(disk: Arc<D>, marks: Marks, seed: u64) -> Self {
        let judge =
            Judge { disk: disk.clone(), phase: Mutex::new(Phase::Opening), marks, seed, refusal: Mutex::default() };
        Self { disk, judge: Arc::new(judge) }
    }

    /// The files are open: cuts are the engine's own business from now on.
    pub(crate) fn opened(&self) {
        self.judge.enter(Phase::Open);
    }

    /// The files are about to be closed.
    pub(crate) fn closing(&self) {
        self.judge.enter(Phase::Closing);
    }

    /// A write or a sync has failed: no file is cut or synced any more, not even when it is closed.
    pub(crate) fn stop(&self) {
        self.judge.enter(Phase::Stopped);
    }

    /// Which file was not cut while opening, and why.
    pub(crate) fn refusal(&self) -> Option<(PathBuf, String)> {
        locked(&self.judge.refusal).clone()
    }
}

impl<D: Disk> Judge<D> {
    fn phase(&self) -> Phase {
        *locked(&self.phase)
    }

    fn enter(&self, phase: Phase) {
        let mut current = locked(&self.phase);
        if *current != Phase::Stopped {
            *current = phase;
        }
    }

    fn allow_cut(&self, file: &Path, offset: usize) -> io::Result<()> {
        let reason = survey::reason_not_to_cut(&*self.disk, file, offset, &self.marks, self.seed)?;
        let Some(reason) = reason else { return Ok(()) };
        *locked(&self.refusal) = Some((file.to_owned(), format!("at byte {offset}: {reason}")));
        Err(io::Error::other("refused to drop durable entries"))
    }

    /// Does `change` to a file, unless files are not to be touched any more.
    fn unless_stopped(&self, change: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        match self.phase() {
            Phase::Stopped => Ok(()),
            Phase::Closing => {
                if let Err(error) = change() {
                    tracing::warn!(%error, "a journal file was not closed cleanly");
                }
                Ok(())
            }
            Phase::Opening | Phase::Open => change(),
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An open file with its path, and where it must be truncated before it is next written or synced.
pub(crate) struct GuardedHandle<D: Disk> {
    inner: Arc<D::Handle>,
    path: PathBuf,
    judge: Arc<Judge<D>>,
    cut_at: Mutex<Option<usize>>,
}

impl<D: Disk> GuardedHandle<D> {
    /// Performs the postponed truncation.
    fn settle(&self) -> io::Result<()> {
        match locked(&self.cut_at).take() {
            Some(offset) => self.inner.truncate(offset),
            None => Ok(()),
        }
    }
}

impl<D: Disk> Handle for GuardedHandle<D> {
    fn truncate(&self, offset: usize) -> io::Result<()> {
        if self.judge.phase() == Phase::Opening {
            self.judge.allow_cut(&self.path, offset)?;
            *locked(&self.cut_at) = Some(offset);
            return Ok(());
        }
        self.judge.unless_stopped(|| {
            self.settle()?;
            self.inner.truncate(offset)
        })
    }

    fn file_size(&self) -> io::Result<usize> {
        let size = self.inner.file_size()?;
        Ok(locked(&self.cut_at).map_or(size, |cut_at| size.min(cut_at)))
    }

    fn sync(&self) -> io::Result<()> {
        if self.judge.phase() == Phase::Opening {
            // The engine has just cut the file, it thinks.
            return Ok(());
        }
        // The engine may close a file and continue with the next without another write to it.
        self.judge.unless_stopped(|| {
            self.settle()?;
            self.inner.sync()
        })
    }
}

/// Writes to a file, after the postponed truncation.
pub(crate) struct GuardedWriter<D: Disk> {
    inner: D::Writer,
    handle: Arc<GuardedHandle<D>>,
}

impl<D: Disk> Write for GuardedWriter<D> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.handle.settle()?;
        self.inner.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl<D: Disk> Seek for GuardedWriter<D> {
    fn seek(&mut self, position: SeekFrom) -> io::Result<u64> {
        self.inner.seek(position)
    }
}

impl<D: Disk> WriteExt for GuardedWriter<D> {
    fn truncate(&mut self, offset: usize) -> io::Result<()> {
        let Self { inner, handle } = self;
        handle.judge.unless_stopped(|| {
            handle.settle()?;
            inner.truncate(offset)
        })
    }

    fn allocate(&mut self, offset: usize, size: usize) -> io::Result<()> {
        self.handle.settle()?;
        self.inner.allocate(offset, size)
    }
}

impl<D: Disk> Guard<D> {
    fn guarded(&self, inner: D::Handle, path: &Path) -> GuardedHandle<D> {
        GuardedHandle {
            inner: Arc::new(inner),
            path: path.to_owned(),
            judge: self.judge.clone(),
            cut_at: Mutex::new(None),
        }
    }
}

impl<D: Disk> FileSystem for Guard<D> {
    type Handle = GuardedHandle<D>;
    type Reader = D::Reader;
    type Writer = GuardedWriter<D>;

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
        let inner = self.disk.new_writer(handle.inner.clone())?;
        Ok(GuardedWriter { inner, handle })
    }
}
