//! The thread that frees space while it is short.
//!
//! Deleting writes at first: a deletion goes into the journal and into memory. Space comes back when it has reached the
//! store, the journal was cut, and tables were merged. While space is short, nothing of that waits for its usual time.
//!
//! It is also who notices that the store below has failed for good, whether or not somebody writes.
//!
//! Touches: the store, the journal, the retention walk. Never: deletes what somebody could read.

use std::sync::Arc;
use std::time::Duration;

use contract::Error;
use journal::EntryLog;
use storage::SpaceState;

use crate::access::Access;
use crate::apply::journal_cut::JournalCut;
use crate::background::repeating::Repeating;
use crate::error::from_kv;

use super::disk::DiskSpace;

const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Looks between two retention walks while space is short: what was deleted meanwhile is forgotten then. A walk reads every
/// cell, so it is not done at every look.
const LOOKS_PER_WALK: u32 = 40;

/// Looks between two flushes while space is short: each flush is a table, and many small ones have to be merged.
const LOOKS_PER_FLUSH: u32 = 8;

/// Looks between two flushes in any case: deletions free space also if little follows them, and an opening has little
/// to replay.
const LOOKS_PER_FLUSH_AT_LEAST: u32 = 60;

/// Looks during which old views may hold too much. What reads a backup of a full disk quickly gets to its end.
const LOOKS_HELD_MAX: u32 = 80;

/// With less than this in the journal, there is nothing worth a flush.
const JOURNAL_BYTES_MIN: u64 = 64 << 10;

/// What the thread works on.
pub(crate) struct SpaceKeeper {
    pub(crate) access: Access,
    pub(crate) log: Arc<dyn EntryLog>,
    /// The applied index when the store was opened: its batches count from there.
    pub(crate) applied_at_open: u64,
}

impl SpaceKeeper {
    /// Starts the thread; `walk` begins a retention walk.
    pub(crate) fn start(self, walk: impl Fn() + Send + 'static) -> Result<Repeating, Error> {
        let journal_cut = JournalCut::new(self.applied_at_open);
        let mut state = State { is_short: false, looks: 0, looks_since_flush: 0, looks_held: 0, journal_cut };
        Repeating::start("space", LOOK_EVERY, move |_| self.look(&mut state, &walk))
    }

    fn look(&self, state: &mut State, walk: &impl Fn()) {
        if self.access.shared.failure().is_some() {
            return;
        }
        if let Some(error) = self.access.tree.failure() {
            // Otherwise nobody would notice before memory is full, and until then more and more would have to be replayed.
            let error = from_kv(&error);
            tracing::error!(%error, "the store has stopped");
            self.access.stop(&error);
            return;
        }
        let is_short = self.access.disk.is_short(self.access.clock());
        if is_short || state.is_short {
            self.tell_the_store(is_short);
        }
        if is_short != state.is_short {
            (state.is_short, state.looks) = (is_short, 0);
            self.tell_the_journal(is_short);
        }
        self.end_views_that_hold_too_much(state);
        // The apply loop cuts the journal after a flush when the next entry comes; here it is done without one.
        if let Some(first_kept) = state.journal_cut.next(&self.access.store) {
            self.access.journal.cut(first_kept);
        }
        let flush_every = if is_short { LOOKS_PER_FLUSH } else { LOOKS_PER_FLUSH_AT_LEAST };
        let is_worth_it = is_short || self.log.kept_bytes() >= JOURNAL_BYTES_MIN;
        if state.looks_since_flush >= flush_every && is_worth_it && !self.access.store.is_flushing() {
            state.looks_since_flush = 0;
            self.access.store.start_flush();
        }
        if is_short && state.looks.is_multiple_of(LOOKS_PER_WALK) {
            walk();
        }
        state.looks = state.looks.wrapping_add(1);
        state.looks_since_flush = state.looks_since_flush.saturating_add(1);
    }

    /// Ends old views if they hold more than the disk can spare, and for long: deleting cannot free it.
    fn end_views_that_hold_too_much(&self, state: &mut State) {
        let Some(space) = self.access.disk.space(self.access.clock()) else { return };
        let held_bytes = self.access.tree.held_bytes();
        state.looks_held = if space.cannot_spare(held_bytes) { state.looks_held + 1 } else { 0 };
        if state.looks_held >= LOOKS_HELD_MAX {
            let DiskSpace { free_bytes, reserve_bytes, .. } = space;
            tracing::warn!(
                held_bytes,
                free_bytes,
                reserve_bytes,
                "old views are ended: they hold more than the disk can spare"
            );
            self.access.tree.end_old_views();
        }
    }

    fn tell_the_store(&self, is_short: bool) {
        let unflushed_bytes = self.access.store.bytes_in_memory() as u64;
        self.access.tree.set_space(if is_short { SpaceState::Short { unflushed_bytes } } else { SpaceState::Enough });
    }

    fn tell_the_journal(&self, is_short: bool) {
        if let Err(error) = self.log.keep_spares(!is_short) {
            tracing::warn!(%error, "the journal's spare files stay as they are");
        }
    }
}

/// What the looks before have seen.
struct State {
    is_short: bool,
    /// Looks since that has changed.
    looks: u32,
    looks_since_flush: u32,
    /// Looks since views hold too much.
    looks_held: u32,
    journal_cut: JournalCut,
}
