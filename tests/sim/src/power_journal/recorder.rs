//! A disk that does everything on the real file system and writes down what it did.
//!
//! Two things happen below the seam and are added here. `raft-engine` makes its directory itself,
//! and after a roll it syncs that directory itself (`file_pipe_log/pipe.rs`, `sync_dir`, straight
//! through `std::fs`): it syncs the header of the new file, then the directory. So the first sync
//! of a file that was made by a roll is followed by a sync of `entries/`. That the real call is
//! there is seen by the test that watches a store's system calls.
//!
//! Never: syncs for real. What would be durable is decided by the simulated disk.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use journal::{Disk, RealDisk};
use raft_engine::env::{FileSystem, Handle, Permission, WriteExt};

use super::operation::{FileId, Note, Operation, Site};

/// The directory with the engine's files, below the journal's.
pub(crate) const ENTRIES: &str = "entries";

pub(crate) struct RecordingDisk {
    directory: PathBuf,
    recording: Arc<Mutex<Recording>>,
}

/// What was recorded, and what is needed to say where a sync comes from.
struct Recording {
    operations: Vec<Operation>,
    stopped: bool,
    names: BTreeMap<String, FileId>,
    file_next: FileId,
    /// Between the call of `open` or `create` and its return.
    opening: bool,
    /// Files with writes that were not synced yet, as seen by this recording.
    written: BTreeSet<FileId>,
    /// Files made since the journal was last opened, not synced yet.
    fresh: BTreeSet<FileId>,
}

impl RecordingDisk {
    /// Records what is done below `directory`, which holds files with the given names.
    pub(crate) fn new(directory: &Path, names: BTreeMap<String, FileId>, file_next: FileId) -> Arc<Self> {
        let recording = Recording {
            operations: Vec::new(),
            stopped: false,
            names,
            file_next,
            opening: false,
            written: BTreeSet::new(),
            fresh: BTreeSet::new(),
        };
        let recording = Arc::new(Mutex::new(recording));
        Arc::new(Self { directory: directory.to_owned(), recording })
    }

    pub(crate) fn note(&self, note: Note) {
        let mut recording = locked(&self.recording);
        match note {
            Note::Opening => {
                recording.opening = true;
                recording.fresh.clear();
                recording.written.clear();
            }
            Note::Opened { .. } => recording.opening = false,
            _ => {}
        }
        recording.add(Operation::Note(note));
    }

    /// Ends the recording and gives it away; what is still done goes to the real files only.
    pub(crate) fn finish(&self) -> Vec<Operation> {
        let mut recording = locked(&self.recording);
        recording.stopped = true;
        std::mem::take(&mut recording.operations)
    }

    fn relative(&self, path: &Path) -> String {
        let relative = path.strip_prefix(&self.directory).expect("a path below the directory");
        relative.display().to_string()
    }

    fn handle(&self, inner: <RealDisk as FileSystem>::Handle, file: FileId) -> RecordingHandle {
        let recording = self.recording.clone();
        RecordingHandle { inner: Arc::new(inner), file, recording }
    }
}

fn locked(recording: &Mutex<Recording>) -> MutexGuard<'_, Recording> {
    recording.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Recording {
    fn add(&mut self, operation: Operation) {
        if !self.stopped {
            self.operations.push(operation);
        }
    }

    fn name_of(&self, file: FileId) -> &str {
        let named = self.names.iter().find(|(_, named)| **named == file);
        named.map_or("", |(name, _)| name)
    }

    fn sync(&mut self, file: FileId) {
        let written = self.written.remove(&file);
        let fresh = self.fresh.remove(&file);
        let name = self.name_of(file);
        // The first file of all is made when the journal is, not by a roll.
        let rolled = fresh && name.starts_with(ENTRIES) && !name.contains("/0000000000000001.");
        let site = match (name.starts_with("watermark"), self.opening) {
            (true, _) if written => Site::WatermarkWrite,
            (true, _) => Site::WatermarkReopen,
            // Between its call and its return the engine's own syncs are held back by the journal.
            (false, true) => Site::RecoveredEntries,
            (false, false) if rolled || !written => Site::Engine,
            (false, false) => Site::EngineAppend,
        };
        self.add(Operation::Sync { file, site });
        if rolled {
            let path = ENTRIES.to_owned();
            self.add(Operation::SyncDirectory { path, site: Site::EngineDirectory });
        }
    }
}

pub(crate) struct RecordingHandle {
    inner: Arc<<RealDisk as FileSystem>::Handle>,
    file: FileId,
    recording: Arc<Mutex<Recording>>,
}

impl Handle for RecordingHandle {
    fn truncate(&self, offset: usize) -> io::Result<()> {
        self.inner.truncate(offset)?;
        locked(&self.recording).add(Operation::Truncate { file: self.file, length: offset });
        Ok(())
    }

    fn file_size(&self) -> io::Result<usize> {
        self.inner.file_size()
    }

    fn sync(&self) -> io::Result<()> {
        locked(&self.recording).sync(self.file);
        Ok(())
    }
}

/// Writes, and remembers where it stands.
pub(crate) struct RecordingWriter {
    inner: <RealDisk as FileSystem>::Writer,
    handle: Arc<RecordingHandle>,
    offset: usize,
}

impl Write for RecordingWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let length = self.inner.write(bytes)?;
        let mut recording = locked(&self.handle.recording);
        let file = self.handle.file;
        recording.written.insert(file);
        let bytes = bytes[..length].into();
        recording.add(Operation::Write { file, offset: self.offset, bytes });
        self.offset += length;
        Ok(length)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl Seek for RecordingWriter {
    fn seek(&mut self, position: SeekFrom) -> io::Result<u64> {
        let offset = self.inner.seek(position)?;
        self.offset = usize::try_from(offset).expect("an offset fits");
        Ok(offset)
    }
}

impl WriteExt for RecordingWriter {
    fn truncate(&mut self, offset: usize) -> io::Result<()> {
        self.inner.truncate(offset)?;
        self.offset = offset;
        let operation = Operation::Truncate { file: self.handle.file, length: offset };
        locked(&self.handle.recording).add(operation);
        Ok(())
    }

    fn allocate(&mut self, offset: usize, size: usize) -> io::Result<()> {
        self.inner.allocate(offset, size)?;
        let operation = Operation::Allocate { file: self.handle.file, end: offset + size };
        locked(&self.handle.recording).add(operation);
        Ok(())
    }
}

impl FileSystem for RecordingDisk {
    type Handle = RecordingHandle;
    type Reader = <RealDisk as FileSystem>::Reader;
    type Writer = RecordingWriter;

    fn create<P: AsRef<Path>>(&self, path: P) -> io::Result<Self::Handle> {
        let inner = RealDisk.create(path.as_ref())?;
        let path = self.relative(path.as_ref());
        let mut recording = locked(&self.recording);
        if let Some(file) = recording.names.get(&path).copied() {
            drop(recording);
            return Ok(self.handle(inner, file));
        }
        let file = recording.file_next;
        recording.file_next += 1;
        recording.names.insert(path.clone(), file);
        recording.fresh.insert(file);
        if let Some((directory, _)) = path.split_once('/') {
            // The simulated disk takes it as nothing new if it is there already.
            recording.add(Operation::CreateDirectory { path: directory.to_owned() });
        }
        recording.add(Operation::Create { path, file });
        drop(recording);
        Ok(self.handle(inner, file))
    }

    fn open<P: AsRef<Path>>(&self, path: P, permission: Permission) -> io::Result<Self::Handle> {
        let inner = RealDisk.open(path.as_ref(), permission)?;
        let file = locked(&self.recording).names[&self.relative(path.as_ref())];
        Ok(self.handle(inner, file))
    }

    fn delete<P: AsRef<Path>>(&self, path: P) -> io::Result<()> {
        RealDisk.delete(path.as_ref())?;
        let path = self.relative(path.as_ref());
        let mut recording = locked(&self.recording);
        recording.names.remove(&path);
        recording.add(Operation::Delete { path });
        Ok(())
    }

    fn rename<P: AsRef<Path>>(&self, from: P, to: P) -> io::Result<()> {
        RealDisk.rename(from.as_ref(), to.as_ref())?;
        let (from, to) = (self.relative(from.as_ref()), self.relative(to.as_ref()));
        let mut recording = locked(&self.recording);
        if let Some(file) = recording.names.remove(&from) {
            recording.names.insert(to.clone(), file);
        }
        recording.add(Operation::Rename { from, to });
        Ok(())
    }

    fn new_reader(&self, handle: Arc<Self::Handle>) -> io::Result<Self::Reader> {
        RealDisk.new_reader(handle.inner.clone())
    }

    fn new_writer(&self, handle: Arc<Self::Handle>) -> io::Result<Self::Writer> {
        let inner = RealDisk.new_writer(handle.inner.clone())?;
        Ok(RecordingWriter { inner, handle, offset: 0 })
    }
}

impl Disk for RecordingDisk {
    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        let path = self.relative(path);
        let site = if path.is_empty() { Site::JournalDirectory } else { Site::EntriesDirectory };
        locked(&self.recording).add(Operation::SyncDirectory { path, site });
        Ok(())
    }
}
