//! A disk that does everything on the real file system and writes down what it did.
//!
//! Never: syncs for real. What would be durable is decided by the simulated disk.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use journal::{Disk, DiskDirectory, DiskFile, RealDisk};

use super::operation::{FileId, Note, Operation, Site};

/// The directory with the segments, below the journal's.
pub(crate) const SEGMENTS: &str = "segments";

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
    /// Files with other bytes than they had when they were last synced, as seen by this recording.
    changed: BTreeSet<FileId>,
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
            changed: BTreeSet::new(),
        };
        let recording = Arc::new(Mutex::new(recording));
        Arc::new(Self { directory: directory.to_owned(), recording })
    }

    pub(crate) fn note(&self, note: Note) {
        let mut recording = locked(&self.recording);
        match note {
            Note::Opening => {
                recording.opening = true;
                recording.changed.clear();
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

    fn sync(&mut self, file: FileId) {
        let changed = self.changed.remove(&file);
        let named = self.names.iter().find(|(_, named)| **named == file);
        let is_watermark = named.is_some_and(|(name, _)| name.starts_with("watermark"));
        let site = match (is_watermark, self.opening) {
            (true, _) if changed => Site::WatermarkWrite,
            // It was written again as it was.
            (true, _) => Site::WatermarkReopen,
            (false, true) => Site::RecoveredEntries,
            (false, false) => Site::Append,
        };
        self.add(Operation::Sync { file, site });
    }
}

pub(crate) struct RecordingFile {
    inner: File,
    file: FileId,
    recording: Arc<Mutex<Recording>>,
}

impl DiskFile for RecordingFile {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        DiskFile::read_at(&self.inner, bytes, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut before = vec![0; bytes.len()];
        let length = DiskFile::read_at(&self.inner, &mut before, offset)?;
        DiskFile::write_at(&self.inner, bytes, offset)?;
        let mut recording = locked(&self.recording);
        if before[..length] != *bytes {
            recording.changed.insert(self.file);
        }
        let offset = usize::try_from(offset).expect("an offset fits");
        recording.add(Operation::Write { file: self.file, offset, bytes: bytes.into() });
        Ok(())
    }

    fn allocate(&self, length: u64) -> io::Result<()> {
        self.inner.allocate(length)?;
        let end = usize::try_from(length).expect("a length fits");
        locked(&self.recording).add(Operation::Allocate { file: self.file, end });
        Ok(())
    }

    fn length(&self) -> io::Result<u64> {
        self.inner.length()
    }

    fn sync_data(&self) -> io::Result<()> {
        locked(&self.recording).sync(self.file);
        Ok(())
    }
}

pub(crate) struct RecordingDirectory {
    inner: File,
    path: String,
    recording: Arc<Mutex<Recording>>,
}

impl DiskDirectory for RecordingDirectory {
    fn sync(&self) -> io::Result<()> {
        let mut recording = locked(&self.recording);
        let site = match (self.path.is_empty(), recording.opening) {
            (true, _) => Site::JournalDirectory,
            (false, true) => Site::SegmentsDirectory,
            (false, false) => Site::SpareDirectory,
        };
        recording.add(Operation::SyncDirectory { path: self.path.clone(), site });
        Ok(())
    }

    fn try_lock(&self) -> io::Result<bool> {
        DiskDirectory::try_lock(&self.inner)
    }
}

impl Disk for RecordingDisk {
    type File = RecordingFile;
    type Directory = RecordingDirectory;

    fn create(&self, path: &Path) -> io::Result<RecordingFile> {
        let inner = RealDisk.create(path)?;
        let path = self.relative(path);
        let mut recording = locked(&self.recording);
        let file = recording.file_next;
        recording.file_next += 1;
        recording.names.insert(path.clone(), file);
        recording.add(Operation::Create { path, file });
        Ok(RecordingFile { inner, file, recording: self.recording.clone() })
    }

    fn open(&self, path: &Path) -> io::Result<RecordingFile> {
        let inner = RealDisk.open(path)?;
        let file = locked(&self.recording).names[&self.relative(path)];
        Ok(RecordingFile { inner, file, recording: self.recording.clone() })
    }

    fn create_directory(&self, path: &Path) -> io::Result<()> {
        RealDisk.create_directory(path)?;
        // The simulated disk takes it as nothing new if it is there already.
        locked(&self.recording).add(Operation::CreateDirectory { path: self.relative(path) });
        Ok(())
    }

    fn open_directory(&self, path: &Path) -> io::Result<RecordingDirectory> {
        let inner = RealDisk.open_directory(path)?;
        Ok(RecordingDirectory { inner, path: self.relative(path), recording: self.recording.clone() })
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        RealDisk.list(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        RealDisk.rename(from, to)?;
        let (from, to) = (self.relative(from), self.relative(to));
        let mut recording = locked(&self.recording);
        if let Some(file) = recording.names.remove(&from) {
            recording.names.insert(to.clone(), file);
        }
        recording.add(Operation::Rename { from, to });
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        RealDisk.remove(path)?;
        let path = self.relative(path);
        let mut recording = locked(&self.recording);
        recording.names.remove(&path);
        recording.add(Operation::Delete { path });
        Ok(())
    }
}
