//! Entries on `raft-engine`: one file set for all shards of a node, one sync for each batch.
//!
//! Touches: `entries/` and the watermark files in the journal's directory.
//! Keeps: J1 to J4. Every write comes through one lock, because a follower in `raft-engine`'s own group commit would
//! be told "done" when its leader's sync failed; and every read runs on a thread of its own, because its block cache
//! is per thread and does not know which engine a block came from.
//! Never: lets `raft-engine` copy old entries together, or use a file again: raw entries in a file are this file's own.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use protobuf::well_known_types::BytesValue;
use raft_engine::internals::LogQueue;
use raft_engine::{Command, Config, Engine, LogBatch, MessageExt, ReadableSize, RecoveryMode};

use crate::disk::{Disk, RealDisk};
use crate::error::JournalError;
use crate::files::{EntryFiles, Verified};
use crate::frame::{Entry, Place, ShardId};
use crate::guard::Guard;
use crate::watermark::{Marks, Watermark};

/// Sizes of the files.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EngineOptions {
    /// A file is closed and a new one begun when it is this large. Files are deleted whole.
    pub file_bytes_target: u64,
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self { file_bytes_target: 32 << 20 }
    }
}

impl EngineOptions {
    /// Sets [`file_bytes_target`](Self::file_bytes_target).
    pub fn file_bytes_target(mut self, bytes: u64) -> Self {
        self.file_bytes_target = bytes;
        self
    }
}

/// How `raft-engine` finds the index of an entry: its first eight bytes.
struct Framed;

impl MessageExt for Framed {
    type Entry = BytesValue;

    fn index(entry: &BytesValue) -> u64 {
        entry.value.first_chunk().map_or(u64::MAX, |bytes| u64::from_le_bytes(*bytes))
    }
}

/// [`EntryFiles`] on `raft-engine`.
pub struct EngineFiles<D: Disk = RealDisk> {
    engine: Option<Engine<Guard<D>>>,
    entries_directory: PathBuf,
    seed: u64,
    state: Mutex<State<D>>,
    file_bytes_target: u64,
}

struct State<D: Disk> {
    tails: BTreeMap<ShardId, Tail>,
    watermark: Watermark<D>,
    /// Bytes of the files when they were last counted, and what was appended since.
    bytes_counted: u64,
    bytes_appended: u64,
    active_file: u64,
    /// Bytes appended since stale files were last deleted.
    bytes_since_purge: u64,
    failure: Option<String>,
}

/// The end of a shard's entries.
#[derive(Clone, Copy, Default)]
struct Tail {
    last_index: u64,
    last_hash: u64,
}

impl EngineFiles<RealDisk> {
    /// Makes an empty journal in `directory`, which must exist. `id` becomes part of every hash.
    pub fn create(directory: &Path, id: u64, options: &EngineOptions) -> Result<Self, JournalError> {
        Self::create_on(Arc::new(RealDisk), directory, id, options)
    }

    /// Opens the journal in `directory`.
    pub fn open(directory: &Path, id: u64, options: &EngineOptions) -> Result<Self, JournalError> {
        Self::open_on(Arc::new(RealDisk), directory, id, options)
    }
}

impl<D: Disk> EngineFiles<D> {
    /// [`create`](EngineFiles::create) on a given file system.
    pub fn create_on(disk: Arc<D>, directory: &Path, id: u64, options: &EngineOptions) -> Result<Self, JournalError> {
        let watermark = Watermark::create(disk.clone(), directory, id)?;
        let files = Self::open_engine(disk, directory, id, options, watermark)?;
        if files.engine().raft_groups().is_empty() {
            Ok(files)
        } else {
            Err(JournalError::damaged(directory.display(), "a new journal was asked for, but this one holds entries"))
        }
    }

    /// [`open`](EngineFiles::open) on a given file system.
    pub fn open_on(disk: Arc<D>, directory: &Path, id: u64, options: &EngineOptions) -> Result<Self, JournalError> {
        let watermark = Watermark::open(disk.clone(), directory, id)?;
        Self::open_engine(disk, directory, id, options, watermark)
    }

    fn open_engine(
        disk: Arc<D>,
        directory: &Path,
        id: u64,
        options: &EngineOptions,
        watermark: Watermark<D>,
    ) -> Result<Self, JournalError> {
        let entries_directory = directory.join("entries");
        let guard = Arc::new(Guard::new(disk.clone(), watermark.marks().clone(), id));
        let config = Config {
            dir: entries_directory.display().to_string(),
            recovery_mode: RecoveryMode::TolerateTailCorruption,
            recovery_threads: 1,
            // Entries stay readable to a search of the raw file.
            batch_compression_threshold: ReadableSize(0),
            target_file_size: ReadableSize(options.file_bytes_target),
            // Never reached: stale files are deleted in `cut`, live ones are never rewritten.
            purge_threshold: ReadableSize(u64::MAX / 4),
            enable_log_recycle: false,
            ..Config::default()
        };
        let opened = catch_unwind(AssertUnwindSafe(|| Engine::open_with_file_system(config, guard.clone())));
        let engine = match opened {
            Ok(Ok(engine)) => engine,
            Ok(Err(error)) => {
                return Err(match guard.refusal() {
                    Some((file, reason)) => JournalError::damaged(file.display(), reason),
                    None => opening_error(&entries_directory, &error),
                });
            }
            Err(_) => {
                let what = "its files do not fit together (the engine below panicked while it read them)";
                return Err(JournalError::damaged(entries_directory.display(), what));
            }
        };
        guard.opened();
        // The engine syncs neither the entry of its directory nor those of its first files.
        for path in [&entries_directory, directory] {
            disk.sync_directory(path).map_err(|error| JournalError::io("sync the journal's directory", error))?;
        }

        let active_file = engine.file_span(LogQueue::Append).1;
        let marks = watermark.marks().clone();
        let state = State {
            tails: BTreeMap::new(),
            watermark,
            bytes_counted: 0,
            bytes_appended: 0,
            active_file,
            bytes_since_purge: 0,
            failure: None,
        };
        let files = Self {
            engine: Some(engine),
            entries_directory,
            seed: id,
            state: Mutex::new(state),
            file_bytes_target: options.file_bytes_target,
        };
        files.recover_tails(&marks)?;
        Ok(files)
    }

    /// Finds each shard's end, compares it with the watermark, and makes durable what was found.
    fn recover_tails(&self, marks: &Marks) -> Result<(), JournalError> {
        let mut state = self.lock();
        let mut batch = LogBatch::default();
        for shard in self.engine().raft_groups() {
            let Some(last_index) = self.engine().last_index(shard) else { continue };
            let last = self.read_framed(shard, last_index, last_index + 1, usize::MAX)?;
            let (_, last_hash) = last.into_iter().next().expect("the last entry was read");
            state.tails.insert(shard, Tail { last_index, last_hash });
            let first_index = self.engine().first_index(shard).unwrap_or(last_index);
            batch.add_command(shard, Command::Compact { index: first_index });
        }
        for (shard, mark) in marks {
            let last_index = state.tails.get(shard).map_or(0, |tail| tail.last_index);
            if last_index < *mark {
                let what = format!("entry {mark} was durable, but the entries end at {last_index}");
                return Err(JournalError::damaged(format!("shard {shard}"), what));
            }
        }
        if !batch.is_empty() {
            // What a killed process wrote may be in memory only. It is about to be believed, so it is synced now:
            // a batch that changes nothing, because the engine syncs only what it writes.
            self.write(&mut state, &mut batch)?;
        }
        state.bytes_counted = self.count_bytes();
        Ok(())
    }

    fn engine(&self) -> &Engine<Guard<D>> {
        self.engine.as_ref().expect("the engine lives until it is dropped")
    }

    fn lock(&self) -> MutexGuard<'_, State<D>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes and syncs a batch. A panic is the engine's way to report a failed sync.
    fn write(&self, state: &mut State<D>, batch: &mut LogBatch) -> Result<(), JournalError> {
        state.refuse_if_failed()?;
        let written = catch_unwind(AssertUnwindSafe(|| self.engine().write(batch, true)));
        let error = match written {
            Ok(Ok(bytes)) => {
                state.bytes_appended += bytes as u64;
                state.bytes_since_purge += bytes as u64;
                return Ok(());
            }
            Ok(Err(error)) => JournalError::io("append", error),
            Err(panic) => JournalError::io("sync", panic_text(&*panic)),
        };
        state.failure = Some(error.to_string());
        Err(error)
    }

    /// Entries from `first` to before `end`, with their hashes, checked one by one.
    fn read_framed(
        &self,
        shard: ShardId,
        first: u64,
        end: u64,
        bytes_max: usize,
    ) -> Result<Vec<(Entry, u64)>, JournalError> {
        let fetch = || {
            let mut framed = Vec::new();
            let fetched = self.engine().fetch_entries_to::<Framed>(shard, first, end, Some(bytes_max), &mut framed);
            fetched.map(|_| framed)
        };
        let fetched = std::thread::scope(|scope| scope.spawn(fetch).join());
        let place = |index| format!("shard {shard}, entry {index}");
        let framed = match fetched {
            Ok(Ok(framed)) => framed,
            Ok(Err(error)) => return Err(JournalError::damaged(place(first), error)),
            Err(panic) => return Err(JournalError::damaged(place(first), panic_text(&*panic))),
        };
        let mut entries = Vec::with_capacity(framed.len());
        let mut previous_hash = None;
        for (index, framed) in (first..end).zip(&framed) {
            let (entry, hash, length) = Entry::decode(&framed.value, self.seed)
                .map_err(|error| JournalError::damaged(place(index), error))?;
            let fits = entry.shard == shard && entry.index == index && length == framed.value.len();
            if !fits || previous_hash.is_some_and(|previous| previous != entry.previous_hash) {
                return Err(JournalError::damaged(place(index), "another entry stands in its place"));
            }
            previous_hash = Some(hash);
            entries.push((entry, hash));
        }
        if entries.is_empty() {
            return Err(JournalError::damaged(place(first), "the entry is missing"));
        }
        Ok(entries)
    }

    /// What the files take on disk.
    fn count_bytes(&self) -> u64 {
        let Ok(listed) = std::fs::read_dir(&self.entries_directory) else { return 0 };
        listed.filter_map(|file| file.ok()?.metadata().ok()).map(|metadata| metadata.len()).sum()
    }

    fn write_watermark(&self, state: &mut State<D>) -> Result<(), JournalError> {
        let marks: Marks = state.tails.iter().map(|(shard, tail)| (*shard, tail.last_index)).collect();
        if *state.watermark.marks() == marks {
            return Ok(());
        }
        state.refuse_if_failed()?;
        let written = state.watermark.write(marks);
        if let Err(error) = &written {
            state.failure = Some(error.to_string());
        }
        written
    }
}

impl<D: Disk> State<D> {
    fn refuse_if_failed(&self) -> Result<(), JournalError> {
        match &self.failure {
            Some(first) => Err(JournalError::Poisoned { first: first.clone() }),
            None => Ok(()),
        }
    }
}

impl<D: Disk> EntryFiles for EngineFiles<D> {
    fn append(&self, shard: ShardId, term: u64, payloads: &[&[u8]]) -> Result<u64, JournalError> {
        let mut state = self.lock();
        let mut tail = state.tails.get(&shard).copied().unwrap_or_default();
        let durable = tail.last_index;
        let first_index = durable + 1;
        let mut framed = Vec::with_capacity(payloads.len());
        for payload in payloads {
            let index = tail.last_index + 1;
            let place = Place { index, shard, term, durable, previous_hash: tail.last_hash };
            let (bytes, hash) = place.encode(payload, self.seed);
            tail = Tail { last_index: index, last_hash: hash };
            let mut value = BytesValue::new();
            value.value = bytes;
            framed.push(value);
        }
        // A hole would make the directory impossible to open, so it is ruled out here (J2).
        let engine_last = self.engine().last_index(shard);
        assert!(engine_last.is_none_or(|last| last + 1 == first_index), "J2: {engine_last:?} then {first_index}");
        let mut batch = LogBatch::default();
        batch.add_entries::<Framed>(shard, &framed).map_err(|error| JournalError::io("append", error))?;
        self.write(&mut state, &mut batch)?;
        state.tails.insert(shard, tail);
        let active_file = self.engine().file_span(LogQueue::Append).1;
        if active_file != state.active_file {
            state.active_file = active_file;
            self.write_watermark(&mut state)?;
        }
        Ok(first_index)
    }

    fn read(&self, shard: ShardId, first: u64, bytes_max: usize) -> Result<Vec<Entry>, JournalError> {
        let end = self.last_index(shard).unwrap_or(0) + 1;
        if first >= end {
            return Ok(Vec::new());
        }
        let entries = self.read_framed(shard, first, end, bytes_max)?;
        Ok(entries.into_iter().map(|(entry, _)| entry).collect())
    }

    fn first_index(&self, shard: ShardId) -> Option<u64> {
        self.engine().first_index(shard)
    }

    fn last_index(&self, shard: ShardId) -> Option<u64> {
        self.engine().last_index(shard)
    }

    fn start_after(&self, shard: ShardId, index: u64) -> Result<(), JournalError> {
        let mut state = self.lock();
        if state.tails.contains_key(&shard) {
            let what = "a start was given for a shard that already has entries";
            return Err(JournalError::damaged(format!("shard {shard}"), what));
        }
        state.tails.insert(shard, Tail { last_index: index, last_hash: 0 });
        Ok(())
    }

    fn cut(&self, shard: ShardId, first_kept: u64) -> Result<(), JournalError> {
        let mut state = self.lock();
        let Some(last_index) = self.engine().last_index(shard) else { return Ok(()) };
        // The last entry stays: it holds the shard's place, and the hash that the next entry refers to.
        let first_kept = first_kept.min(last_index);
        if self.engine().first_index(shard).is_some_and(|first| first >= first_kept) {
            return Ok(());
        }
        let mut batch = LogBatch::default();
        batch.add_command(shard, Command::Compact { index: first_kept });
        self.write(&mut state, &mut batch)?;
        // Deleting begins new files, so it waits until there is a file's worth to delete.
        if state.bytes_since_purge >= self.file_bytes_target {
            state.bytes_since_purge = 0;
            let purge = || self.engine().purge_manager().must_purge_all_stale();
            if let Err(panic) = catch_unwind(AssertUnwindSafe(purge)) {
                let error = JournalError::io("delete stale files", panic_text(&*panic));
                state.failure = Some(error.to_string());
                return Err(error);
            }
            state.bytes_counted = self.count_bytes();
            state.bytes_appended = 0;
        }
        Ok(())
    }

    fn bytes(&self) -> u64 {
        let state = self.lock();
        state.bytes_counted + state.bytes_appended
    }

    fn sync_watermark(&self) -> Result<(), JournalError> {
        self.write_watermark(&mut self.lock())
    }

    fn verify(&self) -> Result<Verified, JournalError> {
        let mut verified = Verified::default();
        for shard in self.engine().raft_groups() {
            let (Some(first), Some(last)) = (self.first_index(shard), self.last_index(shard)) else { continue };
            let mut next = first;
            let mut previous_hash = None;
            while next <= last {
                for (entry, hash) in self.read_framed(shard, next, last + 1, 8 << 20)? {
                    if previous_hash.is_some_and(|previous| previous != entry.previous_hash) {
                        let place = format!("shard {shard}, entry {}", entry.index);
                        return Err(JournalError::damaged(place, "it does not follow the entry before it"));
                    }
                    previous_hash = Some(hash);
                    next = entry.index + 1;
                    verified.entries += 1;
                    verified.payload_bytes += entry.payload.len() as u64;
                }
            }
        }
        Ok(verified)
    }
}

impl<D: Disk> Drop for EngineFiles<D> {
    /// After a failed sync the engine below may panic again when it closes its files; nobody is told "durable" by that.
    fn drop(&mut self) {
        let engine = self.engine.take();
        let _ = catch_unwind(AssertUnwindSafe(|| drop(engine)));
    }
}

fn opening_error(directory: &Path, error: &raft_engine::Error) -> JournalError {
    match error {
        raft_engine::Error::Corruption(what) => JournalError::damaged(directory.display(), what),
        raft_engine::Error::Other(what) if what.to_string().contains("lock") => {
            JournalError::Locked { path: directory.display().to_string() }
        }
        other => JournalError::io("open", other),
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_else(|| "a panic".into())
}
