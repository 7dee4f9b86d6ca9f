//! The logs of the journal as subjects of the suite.

use std::path::PathBuf;
use std::sync::Arc;

use journal::gathering::GatheringLog;
use journal::memory::{MemoryHabits, MemoryLog};
use journal::{Disk, EntryLog, RealDisk, SegmentFiles, SegmentOptions, ShardId};

use super::{Failure, Subject};

const ID: u64 = 7;

/// A log in files, in a directory of its own.
pub struct Files<D: Disk = RealDisk> {
    disk: Arc<D>,
    directory: tempfile::TempDir,
    options: SegmentOptions,
    log: Option<Arc<SegmentFiles<D>>>,
}

impl<D: Disk> Files<D> {
    /// An empty log on a disk. Small segments are begun and freed often.
    pub fn on(disk: Arc<D>, segment_bytes: u64) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let options = SegmentOptions::default().file_bytes_target(segment_bytes);
        let log = SegmentFiles::create_on(disk.clone(), directory.path(), ID, &options).expect("a journal");
        Self { disk, directory, options, log: Some(Arc::new(log)) }
    }

    fn segments(&self) -> PathBuf {
        self.directory.path().join("segments")
    }
}

impl Files {
    /// An empty log on the machine's own disk.
    pub fn new(segment_bytes: u64) -> Self {
        Self::on(Arc::new(RealDisk), segment_bytes)
    }
}

impl<D: Disk> Subject for Files<D> {
    fn log(&self) -> Arc<dyn EntryLog> {
        self.log.clone().expect("an open log")
    }

    fn reopen(&mut self) {
        drop(self.log.take());
        let log = SegmentFiles::open_on(self.disk.clone(), self.directory.path(), ID, &self.options);
        self.log = Some(Arc::new(log.expect("the journal")));
    }

    fn file_numbers(&self) -> Option<(u64, u64)> {
        let names = std::fs::read_dir(self.segments()).expect("the segments");
        let numbers = names.filter_map(|file| file.ok()?.file_name().to_str()?.parse().ok());
        numbers.fold(None, |ends, number: u64| match ends {
            Some((oldest, newest)) => Some((number.min(oldest), number.max(newest))),
            None => Some((number, number)),
        })
    }
}

/// A log in memory. It is open as long as it exists.
pub struct Memory(MemoryLog);

impl Memory {
    /// An empty log with habits.
    pub fn new(habits: MemoryHabits) -> Self {
        Self(MemoryLog::with_habits(habits))
    }
}

impl Subject for Memory {
    fn log(&self) -> Arc<dyn EntryLog> {
        Arc::new(self.0.clone())
    }

    fn reopen(&mut self) {}

    fn forget(&self, shard: ShardId, entries: usize) -> bool {
        self.0.forget(shard, entries);
        true
    }
}

/// A log whose appends are gathered from several threads.
pub struct Gathering<S> {
    below: S,
    /// None while the log below is opened again.
    log: Option<Arc<GatheringLog>>,
}

impl<S: Subject> Gathering<S> {
    /// Around the log of another subject.
    pub fn over(below: S) -> Self {
        let log = Some(Arc::new(GatheringLog::new(below.log())));
        Self { below, log }
    }

    /// The log itself, for its figures.
    pub fn gathering(&self) -> Arc<GatheringLog> {
        self.log.clone().expect("an open log")
    }
}

impl<S: Subject> Subject for Gathering<S> {
    fn log(&self) -> Arc<dyn EntryLog> {
        self.gathering()
    }

    fn reopen(&mut self) {
        drop(self.log.take());
        self.below.reopen();
        self.log = Some(Arc::new(GatheringLog::new(self.below.log())));
    }

    fn forget(&self, shard: ShardId, entries: usize) -> bool {
        self.below.forget(shard, entries)
    }

    fn file_numbers(&self) -> Option<(u64, u64)> {
        self.below.file_numbers()
    }

    fn fail_next_append(&self, failure: Failure) -> bool {
        self.below.fail_next_append(failure)
    }
}
