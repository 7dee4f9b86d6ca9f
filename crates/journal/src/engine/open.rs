//! Creating and opening a journal: checks what it finds against the watermark and makes it durable.
//!
//! Keeps: J3. A refused open has changed no file that holds an entry. Never: trusts an entry before it is durable, or a
//! directory before its entries are.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, Mutex};

use raft_engine::env::{Handle, Permission};
use raft_engine::internals::LogQueue;
use raft_engine::{Config, Engine, ReadableSize, RecoveryMode};

use crate::disk::Disk;
use crate::error::JournalError;
use crate::guard::Guard;
use crate::survey;
use crate::watermark::Watermark;

use super::read::on_own_thread;
use super::{EngineFiles, EngineOptions, State, Tail};

impl<D: Disk> EngineFiles<D> {
    /// [`create`](EngineFiles::create) on a given file system.
    pub fn create_on(disk: Arc<D>, directory: &Path, id: u64, options: &EngineOptions) -> Result<Self, JournalError> {
        // Checked before anything is written: the watermark of a journal with entries guards them. The remains of an
        // interrupted creation hold none.
        let guards_entries =
            Watermark::open(disk.clone(), directory, id).is_ok_and(|watermark| !watermark.known().marks.is_empty());
        let holds_entries = survey::holds_entries(&*disk, &directory.join("entries"))
            .map_err(|error| JournalError::io("look for a journal", error))?;
        if guards_entries || holds_entries {
            let what = "cannot create a journal here: this one holds entries";
            return Err(JournalError::damaged(directory.display(), what));
        }
        let watermark = Watermark::new(disk.clone(), directory, id);
        Self::open_engine(disk, directory, id, options, watermark)
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
        let header = survey::damaged_header(&*disk, &entries_directory);
        if let Some(file) = header.map_err(|error| JournalError::io("read file headers", error))? {
            return Err(JournalError::damaged(file.display(), "the file's header is foreign"));
        }
        let guard = Arc::new(Guard::new(disk.clone(), watermark.known().marks.clone(), id));
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
        let open = || Engine::open_with_file_system(config, guard.clone());
        let engine = match catch_unwind(AssertUnwindSafe(open)) {
            Ok(Ok(engine)) => engine,
            Ok(Err(error)) => {
                return Err(match guard.refusal() {
                    Some((file, reason)) => JournalError::damaged(file.display(), reason),
                    None => opening_error(&entries_directory, &error),
                });
            }
            Err(_) => {
                let what = "its files are inconsistent (the engine below panicked while reading them)";
                return Err(JournalError::damaged(entries_directory.display(), what));
            }
        };
        guard.opened();

        let active_file = engine.file_span(LogQueue::Append).1;
        let state = State {
            tails: Default::default(),
            watermark,
            kept: Default::default(),
            bytes_counted: 0,
            bytes_appended: 0,
            active_file,
            failure: None,
        };
        let files = Self { engine: Some(engine), guard, disk, entries_directory, seed: id, state: Mutex::new(state) };
        let recovered = files.recover(directory);
        if recovered.is_err() {
            // Closing must not touch what a refused open has found.
            files.guard.stop();
        }
        recovered.map(|()| files)
    }

    /// Finds each shard's end, compares it with the watermark, and makes everything found durable.
    fn recover(&self, directory: &Path) -> Result<(), JournalError> {
        let mut state = self.lock();
        let (file_first, file_last) = self.engine().file_span(LogQueue::Append);
        let mut shards = self.engine().raft_groups();
        shards.sort_unstable();
        let last_entries = on_own_thread(|| {
            let last = |shard| Some((shard, self.engine().last_index(shard)?));
            let read = |(shard, index)| Ok((shard, index, self.read_one(shard, index)?.1));
            shards.into_iter().filter_map(last).map(read).collect::<Result<Vec<_>, _>>()
        })?;
        for (shard, last_index, last_hash) in last_entries {
            state.tails.insert(shard, Tail { last_index, last_hash, has_entries: true });
            let first_index = self.engine().first_index(shard).unwrap_or(last_index);
            state.kept.recovered(shard, first_index..=last_index, file_first..=file_last);
        }
        let known = state.watermark.known();
        if known.first_file > 0 && known.first_file < file_first {
            let file = survey::append_file(&self.entries_directory, known.first_file);
            let what =
                format!("a file is missing: entries are kept from there on, but the files start at {file_first}");
            return Err(JournalError::damaged(file.display(), what));
        }
        for (shard, mark) in &known.marks {
            let last_index = state.tails.get(shard).map_or(0, |tail| tail.last_index);
            if last_index < *mark {
                let what = format!("entry {mark} was durable, but the entries end at {last_index}");
                return Err(JournalError::damaged(format!("shard {shard}"), what));
            }
        }
        // Bytes written by a killed process may be in memory only, and are about to be trusted. Only the last file can
        // hold such bytes. They are synced before anything is written after them: the engine checks only the entries of
        // the last batch, so no torn one may precede it.
        let last_file = survey::append_file(&self.entries_directory, file_last);
        let synced = self.disk.open(last_file, Permission::ReadOnly).and_then(|file| file.sync());
        synced.map_err(|error| JournalError::io("sync recovered entries", error))?;
        // The engine syncs neither the entry of its directory nor those of its first files, and a killed process may
        // not have synced those of a later one.
        self.sync_directory(&self.entries_directory)?;
        self.write_watermark(&mut state)?;
        self.sync_directory(directory)?;
        state.bytes_counted = self.count_bytes();
        Ok(())
    }

    fn sync_directory(&self, path: &Path) -> Result<(), JournalError> {
        let synced = self.disk.sync_directory(path);
        synced.map_err(|error| JournalError::io("sync the journal's directory", error))
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
