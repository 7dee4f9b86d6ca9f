//! The apply loop: takes durable entries in order, applies them, makes them visible, answers.
//!
//! Keeps: K1, and J1 (an answer is delivered after its effects are visible). A failure here is fatal: the loop ends,
//! every later command is refused, and reopening replays from the journal. A read that fails may succeed a moment later,
//! so such an entry is tried again for some seconds first. Damage of a block is no such failure: the block is set
//! apart, and the entry is applied without it.

pub(crate) mod adoption;
pub(crate) mod answers;
pub mod copies;
pub(crate) mod journal_cut;
pub(crate) mod proposer;
pub mod quarantine;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use contract::Error;
use kernel::{Catalogue, EntryPlace, Kernel, Tally};
use kv::{Committed, Overlay, Store};
use session::Halt;
use session::user::panic_message;
use waiting::Waiters;

use crate::access::Access;
use crate::apply::adoption::Adoption;
use crate::apply::answers::Answers;
use crate::apply::copies::{load_kernel, with_copies};
use crate::apply::journal_cut::JournalCut;
use crate::apply::proposer::DurableEntry;
use crate::arrivals::{Arrived, StopsAtEnd, arrived};
use crate::background::timer::Agenda;
use crate::error::{from_halted_entry, from_panic};
use crate::publish::Outbox;
use crate::sessions::keeper::Keeper;
use crate::shared::Shared;

/// How long the loop waits for an entry before it checks whether the flush in progress has ended.
const FLUSH_POLL: Duration = Duration::from_millis(50);

/// How often an entry is tried while reads fail, and the pause between: five seconds in all.
const ATTEMPTS_MAX: u32 = 50;
const AGAIN_AFTER: Duration = Duration::from_millis(100);

/// The replies of an entry, and its totals.
type Applied = (Vec<Vec<u8>>, Tally);

/// Those who learn of every entry that was applied.
#[derive(Clone)]
pub(crate) struct Notified {
    pub(crate) shared: Arc<Shared>,
    pub(crate) agenda: Arc<Agenda>,
    pub(crate) outbox: Arc<Outbox>,
    pub(crate) waiters: Arc<Waiters>,
    /// Those who wait for one record, by its name.
    pub(crate) named_waiters: Arc<Waiters>,
    pub(crate) keeper: Arc<Keeper>,
}

impl Notified {
    /// Those of a shard with this catalogue.
    pub(crate) fn new(catalogue: Catalogue) -> Self {
        Self {
            shared: Arc::new(Shared::new(catalogue)),
            agenda: Arc::default(),
            outbox: Arc::default(),
            waiters: Arc::default(),
            named_waiters: Arc::default(),
            keeper: Arc::default(),
        }
    }
}

pub(crate) struct ApplyLoop {
    pub(crate) kernel: Kernel,
    pub(crate) store: Arc<Overlay>,
    pub(crate) notified: Notified,
    pub(crate) adoption: Adoption,
    /// Whether the entries at hand were acknowledged before, by whoever appended them.
    pub(crate) replays: bool,
    pub(crate) replay_bytes_max: u64,
    pub(crate) bytes_since_flush: u64,
    pub(crate) journal_cut: JournalCut,
}

impl ApplyLoop {
    /// Runs until the journal's side hangs up, and gives itself back; or until something fails.
    pub(crate) fn run(
        mut self,
        entries: &Receiver<DurableEntry>,
        access: &Access,
        answers: &Answers,
    ) -> Option<ApplyLoop> {
        let _stop = StopsAtEnd(self.notified.shared.clone());
        loop {
            // Asked before the truncation: a flush that ends in between is handled at the next turn.
            let flushing = self.store.is_flushing();
            self.cut_journal(access);
            let entry = if flushing {
                entries.recv_timeout(FLUSH_POLL)
            } else {
                entries.recv().map_err(|_| RecvTimeoutError::Disconnected)
            };
            let entry = match entry {
                Ok(entry) => entry,
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => return Some(self),
            };
            let DurableEntry { place, payload, responders } = entry;
            match self.apply_or_fail(&place, &payload) {
                Ok((replies, tally)) => {
                    self.notified.shared.meters.applied(&self.kernel, &replies, tally);
                    answers.give(replies, responders);
                }
                Err(error) => {
                    tracing::error!(%error, index = place.index, "cannot apply an entry; the store has stopped");
                    access.stop(&error);
                    return None;
                }
            }
        }
    }

    /// Applies one entry and makes it visible; returns the replies and totals. Also used for replay. A failure here,
    /// including a panic, is final: the loop must not be used again.
    pub(crate) fn apply_or_fail(&mut self, place: &EntryPlace, payload: &[u8]) -> Result<Applied, Error> {
        let index = place.index;
        if self.adoption.has_news() {
            self.set_apart_found(index - 1)?;
        }
        let mut failed_attempts = 0;
        loop {
            let halt = match self.attempt(place, payload, failed_attempts > 0)? {
                Ok(applied) => return Ok(applied),
                Err(halt) => halt,
            };
            // If the entry has met damage, it is applied again without what is damaged. There may be more of it.
            if self.adoption.has_news() && self.set_apart_found(index - 1)? {
                continue;
            }
            failed_attempts += 1;
            let may_pass = matches!(&halt, Halt::Store(error) if error.may_retry());
            if !may_pass || failed_attempts == ATTEMPTS_MAX {
                return Err(from_halted_entry(index, &halt));
            }
            if failed_attempts == 1 {
                tracing::warn!(error = %halt, index, "an entry cannot be applied now; it will be tried again");
            }
            std::thread::sleep(AGAIN_AFTER);
        }
    }

    /// Applies an entry once. `again`: an attempt has failed before, and what it has left in memory is forgotten first.
    fn attempt(&mut self, place: &EntryPlace, payload: &[u8], again: bool) -> Result<Result<Applied, Halt>, Error> {
        let attempt = || {
            if again {
                self.reload()?;
            }
            self.apply(place, payload)
        };
        // The half-finished work of a panic is never used: nothing is applied after it.
        catch_unwind(AssertUnwindSafe(attempt)).map_err(|panic| from_panic(place.index, &panic_message(&*panic)))
    }

    /// Loads the kernel as it was after the last entry.
    fn reload(&mut self) -> Result<(), Halt> {
        let view = self.store.view()?;
        let loaded = load_kernel(&*view, &self.kernel.keys(), self.adoption.hosted.clone())?;
        self.kernel = loaded.ok_or_else(|| Halt::Inconsistent("an open store is empty".into()))?;
        self.kernel.expect_damage(self.adoption.has_parts());
        Ok(())
    }

    /// Sets apart what was found damaged, after the entry `applied`. Returns whether there was anything.
    pub(crate) fn set_apart_found(&mut self, applied: u64) -> Result<bool, Error> {
        let kernel = self.adoption.adopt(&self.store, applied, self.replays)?;
        let found = kernel.is_some();
        if let Some(kernel) = kernel {
            self.kernel = kernel;
            self.kernel.expect_damage(true);
        }
        Ok(found)
    }

    fn apply(&mut self, place: &EntryPlace, payload: &[u8]) -> Result<Applied, Halt> {
        let (revision, before) = (self.kernel.catalogue().revision, self.kernel.applied().commit);
        let effects = self.kernel.apply(self.store.view()?, place, payload)?;
        let commits = (before + 1, self.kernel.applied().commit);
        let changes = effects.batch.value(&self.kernel.keys().changes(commits.1)).cloned();
        match self.store.commit(with_copies(&self.kernel.keys(), effects.batch))? {
            Committed::Applied(_) => {}
            Committed::ConditionFailed => {
                return Err(Halt::Inconsistent("the batch of an entry carries no condition, and one failed".into()));
            }
        }
        self.notified.shared.command_rows.fetch_add(effects.command_rows as u64, Ordering::Relaxed);
        self.notified.agenda.set(effects.next_due);
        self.notified
            .waiters
            .ready(effects.readied.iter().map(|queue| ((queue.space, queue.branch), queue.name.as_str())));
        let freed: Vec<_> = effects.freed.iter().map(|freed| (freed, freed.waited_for())).collect();
        let named = freed.iter().map(|(freed, waited_for)| ((freed.space, freed.branch), waited_for.as_str()));
        self.notified.named_waiters.ready(named);
        self.notified.keeper.changed(&effects.sessions, self.kernel.applied().stamp);
        if effects.publishes {
            self.notified.outbox.wake();
        }
        let catalogue_changed = self.kernel.catalogue().revision != revision;
        if catalogue_changed {
            self.notified.shared.publish_catalogue(self.kernel.catalogue().clone());
        }
        let entry = Arrived { commits, changes, readied: &effects.readied, freed: &effects.freed, catalogue_changed };
        arrived(&self.notified.shared.arrivals, &entry);
        self.notified.shared.entry_bytes.fetch_add(payload.len() as u64, Ordering::Relaxed);
        self.bytes_since_flush += payload.len() as u64;
        if self.bytes_since_flush >= self.replay_bytes_max {
            self.store.start_flush();
            self.bytes_since_flush = 0;
        }
        Ok((effects.replies, effects.tally))
    }

    /// Truncates the journal up to what the store has made durable.
    fn cut_journal(&mut self, access: &Access) {
        if let Some(first_kept) = self.journal_cut.next(&self.store) {
            access.journal.cut(first_kept);
        }
    }
}
