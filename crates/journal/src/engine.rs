//! Entries on `raft-engine`: one file set for all shards of a node, one sync for each batch.
//!
//! Touches: `entries/` and the watermark files in the journal's directory. Keeps: J1 to J4. Every write goes through
//! one lock, because a follower in `raft-engine`'s own group commit would be told "done" when its leader's sync failed.
//! Never: lets `raft-engine` compact old entries or reuse a file: all raw entries in a file were appended to that file.

mod open;
mod read;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use protobuf::well_known_types::BytesValue;
use raft_engine::internals::LogQueue;
use raft_engine::{Command, Engine, LogBatch, MessageExt};

use self::read::on_own_thread;
use crate::disk::{Disk, RealDisk};
use crate::error::JournalError;
use crate::files::{EntryFiles, Verified};
use crate::frame::{Entry, Place, ShardId};
use crate::guard::Guard;
use crate::kept::Kept;
use crate::survey;
use crate::watermark::{Known, Marks, Watermark};

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
    guard: Arc<Guard<D>>,
    disk: Arc<D>,
    entries_directory: PathBuf,
    seed: u64,
    state: Mutex<State<D>>,
}

struct State<D: Disk> {
    tails: BTreeMap<ShardId, Tail>,
    watermark: Watermark<D>,
    kept: Kept,
    /// Bytes of the files when last counted, plus what was appended since.
    bytes_counted: u64,
    bytes_appended: u64,
    active_file: u64,
    failure: Option<String>,
}

/// The end of a shard's entries, or where its first entry is going to follow.
#[derive(Clone, Copy, Default)]
struct Tail {
    last_index: u64,
    last_hash: u64,
    has_entries: bool,
}

impl EngineFiles<RealDisk> {
    /// Creates an empty journal in `directory`, which must exist. `id` becomes part of every hash.
    pub fn create(directory: &Path, id: u64, options: &EngineOptions) -> Result<Self, JournalError> {
        Self::create_on(Arc::new(RealDisk), directory, id, options)
    }

    /// Opens the journal in `directory`.
    pub fn open(directory: &Path, id: u64, options: &EngineOptions) -> Result<Self, JournalError> {
        Self::open_on(Arc::new(RealDisk), directory, id, options)
    }
}

impl<D: Disk> EngineFiles<D> {
    fn engine(&self) -> &Engine<Guard<D>> {
        self.engine.as_ref().expect("the engine lives until it is dropped")
    }

    fn lock(&self) -> MutexGuard<'_, State<D>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn first_file(&self) -> u64 {
        self.engine().file_span(LogQueue::Append).0
    }

    fn active_file(&self) -> u64 {
        self.engine().file_span(LogQueue::Append).1
    }

    /// Runs an operation that may sync; after the first failure nothing more is done. The engine reports a failed sync
    /// by a panic.
    fn attempt<T>(
        &self,
        state: &mut State<D>,
        action: &'static str,
        attempt: impl FnOnce(&mut State<D>) -> Result<T, JournalError>,
    ) -> Result<T, JournalError> {
        state.refuse_if_failed()?;
        let result = catch_unwind(AssertUnwindSafe(|| attempt(state)))
            .unwrap_or_else(|panic| Err(JournalError::io(action, panic_text(&*panic))));
        if let Err(error) = &result {
            state.failure = Some(error.to_string());
            self.guard.stop();
        }
        result
    }

    /// Writes and syncs a batch.
    fn write(&self, state: &mut State<D>, batch: &mut LogBatch) -> Result<(), JournalError> {
        let bytes = self.attempt(state, "sync", |_| {
            self.engine().write(batch, true).map_err(|error| JournalError::io("append", error))
        })?;
        state.bytes_appended += bytes as u64;
        Ok(())
    }

    fn write_watermark(&self, state: &mut State<D>) -> Result<(), JournalError> {
        let known = Known { first_file: self.first_file(), marks: state.marks() };
        self.attempt(state, "write the watermark", |state| state.watermark.write(known))
    }

    /// Deletes the files that no shard needs any more.
    fn delete_stale_files(&self, state: &mut State<D>) -> Result<(), JournalError> {
        self.attempt(state, "delete stale files", |state| {
            // The number of deleted files is known only afterwards, and until then no file may be missed.
            state.watermark.write(Known { first_file: 0, marks: state.marks() })?;
            self.engine().purge_manager().must_purge_all_stale();
            // After a power failure, a deleted file may be back. If a younger one is not, the engine ignores it, so
            // nobody else would delete it.
            let files = survey::files_in(&self.entries_directory);
            for file in files.map_err(|error| JournalError::io("list files", error))? {
                if survey::append_file_number(&file).is_some_and(|file| file < self.first_file()) {
                    let deleted = self.disk.delete(&file);
                    deleted.map_err(|error| JournalError::io("delete a stale file", error))?;
                }
            }
            Ok(())
        })?;
        self.write_watermark(state)?;
        state.kept.deleted(self.first_file());
        state.bytes_counted = self.count_bytes();
        state.bytes_appended = 0;
        Ok(())
    }

    /// Writes the last entry of a shard again, so that its old file can be deleted.
    fn move_last(&self, state: &mut State<D>, shard: ShardId, index: u64) -> Result<(), JournalError> {
        let (entry, _) = on_own_thread(|| self.read_one(shard, index))?;
        let mut framed = BytesValue::new();
        framed.value = entry.encode(self.seed).0;
        let mut batch = LogBatch::default();
        let added = batch.add_entries::<Framed>(shard, &[framed]);
        added.map_err(|error| JournalError::io("move an entry", error))?;
        self.write(state, &mut batch)?;
        state.kept.moved(shard, self.active_file());
        Ok(())
    }

    /// The size of the files on disk.
    fn count_bytes(&self) -> u64 {
        let Ok(listed) = std::fs::read_dir(&self.entries_directory) else {
            return 0;
        };
        listed.filter_map(|file| file.ok()?.metadata().ok()).map(|metadata| metadata.len()).sum()
    }
}

impl<D: Disk> State<D> {
    fn refuse_if_failed(&self) -> Result<(), JournalError> {
        match &self.failure {
            Some(first) => Err(JournalError::Poisoned { first: first.clone() }),
            None => Ok(()),
        }
    }

    /// The newest durable entry of each shard that has one.
    fn marks(&self) -> Marks {
        let tails = self.tails.iter().filter(|(_, tail)| tail.has_entries);
        tails.map(|(shard, tail)| (*shard, tail.last_index)).collect()
    }
}

impl<D: Disk> EntryFiles for EngineFiles<D> {
    fn append(&self, shard: ShardId, term: u64, payloads: &[&[u8]]) -> Result<u64, JournalError> {
        let mut state = self.lock();
        let mut tail = state.tails.get(&shard).copied().unwrap_or_default();
        let durable = if tail.has_entries { tail.last_index } else { 0 };
        let first_index = tail.last_index + 1;
        if payloads.is_empty() {
            return Ok(first_index);
        }
        let mut framed = Vec::with_capacity(payloads.len());
        for payload in payloads {
            let index = tail.last_index + 1;
            let place = Place { index, shard, term, durable, previous_hash: tail.last_hash };
            let (bytes, hash) = place.encode(payload, self.seed);
            tail = Tail { last_index: index, last_hash: hash, has_entries: true };
            let mut value = BytesValue::new();
            value.value = bytes;
            framed.push(value);
        }
        // A hole would make the directory impossible to open, so it is ruled out here (J2).
        let engine_last = self.engine().last_index(shard);
        let follows = engine_last.is_none_or(|last| last + 1 == first_index);
        assert!(follows, "J2: {engine_last:?} then {first_index}");
        let mut batch = LogBatch::default();
        let added = batch.add_entries::<Framed>(shard, &framed);
        added.map_err(|error| JournalError::io("append", error))?;
        self.write(&mut state, &mut batch)?;
        state.tails.insert(shard, tail);
        let active_file = self.active_file();
        state.kept.appended(shard, active_file, first_index..=tail.last_index);
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
        let entries = on_own_thread(|| self.read_framed(shard, first, end, bytes_max))?;
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
        if state.tails.get(&shard).is_some_and(|tail| tail.has_entries) {
            let what = "cannot set the start of a shard that already has entries";
            return Err(JournalError::damaged(format!("shard {shard}"), what));
        }
        state.tails.insert(shard, Tail { last_index: index, ..Tail::default() });
        Ok(())
    }

    fn cut(&self, shard: ShardId, first_kept: u64) -> Result<(), JournalError> {
        let mut state = self.lock();
        let Some(last_index) = self.engine().last_index(shard) else {
            return Ok(());
        };
        // The last entry stays: it holds the shard's place, and the hash that the next entry refers to.
        let first_kept = first_kept.min(last_index);
        if self.engine().first_index(shard).is_some_and(|first| first >= first_kept) {
            return Ok(());
        }
        // Discarding leaves no entry in the file that could vouch for the earlier ones, so the watermark does.
        self.write_watermark(&mut state)?;
        let mut batch = LogBatch::default();
        batch.add_command(shard, Command::Compact { index: first_kept });
        self.write(&mut state, &mut batch)?;
        state.kept.cut(shard, first_kept);
        if let Some((shard, index)) = state.kept.laggard(self.active_file()) {
            self.move_last(&mut state, shard, index)?;
        }
        if state.kept.should_delete(self.first_file()) {
            self.delete_stale_files(&mut state)?;
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
        self.verify_all()
    }
}

impl<D: Disk> Drop for EngineFiles<D> {
    /// Everything acknowledged has been synced, so nothing here affects any caller.
    fn drop(&mut self) {
        self.guard.closing();
        let engine = self.engine.take();
        let _ = catch_unwind(AssertUnwindSafe(|| drop(engine)));
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_else(|| "a panic".into())
}
