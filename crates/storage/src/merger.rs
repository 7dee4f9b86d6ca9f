//! The thread that merges tables and removes files that nobody needs.
//!
//! Keeps: S2 (a merge changes which tables hold the content, never the content). A merge that fails before a sync has
//! failed changes nothing, and is tried again later. Where a part of a table is damaged, that table is left alone; the rest
//! goes on.
//! Never: takes the space below the reserve, unless that frees space.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use kv::{Key, KvError};

use crate::Options;
use crate::failure::Failure;
use crate::piece::{self, Merging};
use crate::policy::{self, Piece, Room, Settings, Situation, SliceSize, StackSizes};
use crate::signal::Task;
use crate::status::SpaceState;
use crate::tree_state::TreeState;
use crate::version::Version;
use crate::version_edit::Made;
use crate::weigh::Weights;

/// A store that was not written to for this long is idle.
const IDLE_AFTER: Duration = Duration::from_secs(5);
/// The pause after a failed merge, doubled each time up to the second.
const BACK_OFF_MIN: Duration = Duration::from_millis(100);
const BACK_OFF_MAX: Duration = Duration::from_secs(10);
/// When a store in which nothing happens tries again to remove files that could not be removed, or looks for space.
const LOOK_AGAIN_AFTER: Duration = Duration::from_secs(2);
/// How far the thread stands back behind those that answer callers.
const NICENESS: i32 = 5;

pub(crate) struct Merger {
    shared: Arc<TreeState>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Merger {
    pub(crate) fn spawn(shared: Arc<TreeState>) -> Result<Self, KvError> {
        let thread = std::thread::Builder::new().name("store-merge".into()).spawn({
            let shared = shared.clone();
            move || {
                stand_back();
                run(&shared);
                shared.tables.remove_unneeded();
                shared.signal.stopped();
            }
        });
        let failed =
            |error: std::io::Error| KvError::Io { action: "start the merging thread", reason: error.to_string() };
        Ok(Self { shared, thread: Mutex::new(Some(thread.map_err(failed)?)) })
    }

    /// Ends the thread. A merge in progress leaves nothing behind.
    pub(crate) fn stop(&self) {
        self.shared.signal.close();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // A panic of a merge was already caught and has poisoned the store.
            let _ = thread.join();
        }
    }
}

impl Drop for Merger {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Lowers the priority of this thread; on Linux each thread has its own.
fn stand_back() {
    let lowered = rustix::process::setpriority_process(Some(rustix::thread::gettid()), NICENESS);
    if let Err(error) = lowered {
        tracing::debug!(%error, "merges keep the usual priority");
    }
}

fn run(shared: &TreeState) {
    let mut back_off = BACK_OFF_MIN;
    let mut met = BTreeSet::new();
    let mut weights = Weights::default();
    let mut next = shared.signal.task();
    while let Some(task) = next {
        let files_stay = shared.tables.remove_unneeded();
        let done = catch_unwind(AssertUnwindSafe(|| step(shared, &mut weights, task))).unwrap_or_else(|_| {
            Err(Failure::InDoubt(KvError::Io { action: "merge tables", reason: "the merge panicked".into() }))
        });
        next = match done {
            Ok(true) => {
                back_off = BACK_OFF_MIN;
                shared.signal.progressed(task)
            }
            Ok(false) => {
                back_off = BACK_OFF_MIN;
                // Space may come back from elsewhere, and nobody says so.
                let again = files_stay || task.space != SpaceState::Enough;
                shared.signal.rest(task, IDLE_AFTER, again.then_some(LOOK_AGAIN_AFTER))
            }
            Err(Failure::Stopped) => return,
            // It was noticed, so the next piece leaves it out. Known damage should not be met again; whatever it is, it
            // must not keep a core busy.
            Err(Failure::Damaged(damage)) => match met.insert((damage.table, damage.offset)) {
                true => shared.signal.progressed(task),
                false => shared.signal.back_off(task, (*damage).into(), BACK_OFF_MAX),
            },
            Err(Failure::InDoubt(error)) => {
                tracing::error!(%error, "a merge failed; the store accepts no more writes");
                shared.lock().fail(&error);
                return;
            }
            Err(failure @ (Failure::Retry(_) | Failure::OverRoom)) => {
                let error = KvError::from(failure);
                if back_off == BACK_OFF_MIN {
                    tracing::warn!(%error, "a merge waits");
                }
                let next = shared.signal.back_off(task, error, back_off);
                back_off = (back_off * 2).min(BACK_OFF_MAX);
                next
            }
        };
    }
}

/// Does the next piece of work; false if there is none.
fn step(shared: &TreeState, weights: &mut Weights, task: Task) -> Result<bool, Failure> {
    let version = shared.newest().version();
    if let Some((stack, key)) = border_of_a_part(&version) {
        cut(shared, stack, &key);
        return Ok(true);
    }
    let mut sizes = sizes_of(&version);
    let settings = settings(&shared.options);
    let available = shared.tables.files.bytes_available()?;
    let reserve = shared.options.space_reserve_bytes;
    let unflushed = match task.space {
        SpaceState::Short { unflushed_bytes } => Some(unflushed_bytes),
        SpaceState::Enough => None,
    };
    let room = Room::of(available, reserve, unflushed);
    let situation = match task.space {
        SpaceState::Short { .. } => Situation::Short(room),
        SpaceState::Enough if task.idle => Situation::Idle,
        SpaceState::Enough => Situation::Busy,
    };
    let weigh = |weights: &mut Weights, sizes: &mut Vec<StackSizes>| {
        weights.weigh(&version, sizes, available, &|| shared.signal.is_closing())
    };
    let mut all_weighed = true;
    // Where space is short, counts are not good enough: a merge that frees less than it should may take what is left.
    if matches!(situation, Situation::Short(_)) {
        all_weighed = weigh(weights, &mut sizes)?;
    }
    let mut next = policy::next_piece(&sizes, &settings, situation);
    if next.is_none() && situation == Situation::Idle {
        // By their counts nothing is due, and there is time for a closer look.
        all_weighed = weigh(weights, &mut sizes)?;
        next = policy::next_piece(&sizes, &settings, situation);
    }
    // Without a piece, what is left to weigh is the next thing to do.
    let Some(mut piece) = next else { return Ok(!all_weighed) };
    if let Some(key) = piece::cut_of(&version, &piece, settings.piece_bytes)? {
        cut(shared, piece.stacks.start, &key);
        return Ok(true);
    }
    if piece.bytes_needed > room.for_others() {
        piece = policy::next_piece(&sizes, &settings, Situation::Short(room)).ok_or_else(|| {
            let reason = format!("{available} bytes are free, and {reserve} of them are kept for flushes");
            let bytes_needed = piece.bytes_needed;
            Failure::Retry(KvError::NoSpace { action: "merge tables", bytes_needed, reason })
        })?;
    }
    let mut done = merge(shared, &version, &piece, room.for_freeing(piece.bytes_released));
    if matches!(done, Err(Failure::OverRoom)) && piece.stacks.len() > 1 {
        // One of them frees less than it seemed to.
        piece = policy::alone(&sizes, &settings, &piece, piece.stacks.start);
        done = merge(shared, &version, &piece, room.for_freeing(piece.bytes_released));
    }
    match done {
        // This one. The others may be better.
        Err(Failure::OverRoom) if weights.distrust(&version, piece.stacks.start, available) => Ok(true),
        done => done.map(|()| true),
    }
}

/// Cuts a stack. The content stays the same, so no manifest has to say it now.
fn cut(shared: &TreeState, stack: usize, key: &Key) {
    let _writer = shared.lock();
    let newest = shared.newest();
    newest.move_to(newest.version().with_cut(stack, key));
}

/// A border of a damaged part that lies inside a stack with its table. The stack is cut there, so that as little as
/// possible stays unmerged with the part.
fn border_of_a_part(version: &Version) -> Option<(usize, Key)> {
    for (stack, of_stack) in version.stacks.iter().enumerate() {
        let keys = version.keys_of(stack);
        let parts = of_stack.slices.iter().flat_map(|slice| slice.table.parts.all());
        for part in parts.filter(|part| part.keys.overlaps(&keys)) {
            let borders = [Some(part.keys.start), part.keys.end];
            let inside = |border: &Vec<u8>| keys.contains(border) && *border != keys.start;
            if let Some(border) = borders.into_iter().flatten().find(inside) {
                return Some((stack, border.into()));
            }
        }
    }
    None
}

fn merge(shared: &TreeState, version: &Version, piece: &Piece, room: u64) -> Result<(), Failure> {
    let merging = Merging {
        shared: &shared.tables,
        next_number: &|| shared.next_table.fetch_add(1, Ordering::Relaxed),
        stopped: &|| shared.signal.is_closing(),
        table_bytes_target: shared.options.table_bytes_target,
        room: Some(room),
    };
    let merged = piece::merge(version, piece, &merging)?;
    let written: u64 = match &merged.made {
        Made::Bottoms(tables) => tables.iter().map(|(_, table)| table.facts.file_bytes).sum(),
        Made::Middle { table, .. } => table.iter().map(|table| table.facts.file_bytes).sum(),
    };
    {
        // No table can be added while the lock is held, so the newest content stays the newest.
        let mut writer = shared.lock();
        if is_set_apart(version, piece) {
            // The merge has read it after all; but from now on it counts as damaged, also after a merge.
            return Ok(());
        }
        let newest = shared.newest();
        let next = newest.version().with_merge(&merged);
        shared.install(&mut writer, &next)?;
        newest.move_to(next);
    }
    shared.merges.fetch_add(1, Ordering::Relaxed);
    shared.merge_bytes_read.fetch_add(piece.bytes, Ordering::Relaxed);
    shared.merge_bytes_written.fetch_add(written, Ordering::Relaxed);
    tracing::debug!(stacks = ?piece.stacks, to_bottom = piece.to_bottom, read = piece.bytes, written, "tables merged");
    Ok(())
}

/// Whether something of a piece was set apart. The caller holds the lock.
fn is_set_apart(version: &Version, piece: &Piece) -> bool {
    piece.stacks.clone().zip(&piece.windows).any(|(stack, window)| {
        let keys = version.keys_of(stack);
        version.stacks[stack].slices[window.clone()].iter().any(|slice| slice.table.parts.is_set_apart_within(&keys))
    })
}

fn settings(options: &Options) -> Settings {
    Settings {
        similar_tables: options.unmerged_tables_max.max(2),
        piece_bytes: options.table_bytes_target,
        depth_max: options.unmerged_tables_stall * 3 / 4,
    }
}

/// The sizes that the policy decides by.
pub(crate) fn sizes_of(version: &Version) -> Vec<StackSizes> {
    let mut used = BTreeMap::<u64, (usize, u64)>::new();
    for slice in version.stacks.iter().flat_map(|stack| &stack.slices) {
        let (stacks, bytes) = used.entry(slice.table.number()).or_default();
        (*stacks, *bytes) = (*stacks + 1, *bytes + slice.rows.bytes());
    }
    let sizes = version.stacks.iter().enumerate().map(|(place, stack)| {
        let keys = version.keys_of(place);
        let sizes = stack.slices.iter().map(|slice| {
            let (stacks, bytes) = used[&slice.table.number()];
            SliceSize {
                rows: slice.rows,
                replaced_bytes: 0,
                looked_up: false,
                shared: stacks > 1,
                wasteful: bytes < slice.table.facts.rows.bytes() / 2,
                left_alone: slice.table.parts.overlap(&keys),
            }
        });
        sizes.collect()
    });
    sizes.collect()
}
