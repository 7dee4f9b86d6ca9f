//! A shard that follows its log: it applies what others append, and answers nobody.
//!
//! It is also how a shard is opened: it follows to the end of the log, and then becomes the owner. Keeps: K1; what it has
//! applied is one history of the log, which it checks entry by entry.

use std::sync::Arc;
use std::time::Duration;

use contract::Error;
use journal::{Append, ENTRY_OVERHEAD_BYTES_MAX, Ends, Entry, EntryKind, JournalError, Position};
use kernel::{Applied, EntryHeader, EntryPlace};
use kv::{Overlay, Store};
use session::Halt;

use crate::apply::adoption::Adoption;
use crate::apply::copies::{ensure_copies, load_kernel};
use crate::apply::journal_cut::JournalCut;
use crate::apply::quarantine::Quarantine;
use crate::apply::{ApplyLoop, Notified};
use crate::clock::Time;
use crate::error::{from_halt, from_journal, from_kv};
use crate::image;
use crate::opening::Opening;
use crate::options::Options;
use crate::parts::Parts;
use crate::shard::{LOCAL_NODE, Shard};
use crate::tenure::Tenure;

/// Bytes of the log read at a time.
const CHUNK_BYTES: usize = 8 << 20;

/// A shard that follows its log.
pub struct Follower {
    pub(crate) apply: ApplyLoop,
    pub(crate) store: Arc<Overlay>,
    pub(crate) quarantine: Arc<Quarantine>,
    /// The applied index when the store was opened: its batches count from there.
    pub(crate) applied_at_open: u64,
    /// The last applied entry.
    pub(crate) at: Position,
    /// The history of the log's entries; none while it has none.
    history: Option<u64>,
    pub(crate) options: Options,
    /// Last: it holds the lock of the directory.
    pub(crate) parts: Parts,
}

impl Follower {
    /// Starts with what the store has.
    pub fn start(parts: Parts, options: &Options) -> Result<Self, Error> {
        let (keys, tree) = (parts.place.keys, parts.tree.clone());
        let buckets = parts.directory.identity().buckets;
        ensure_copies(&tree, &keys, buckets)?;
        let quarantine = Arc::new(Quarantine::open(parts.directory.path(), parts.directory.identity().id)?);
        // Before the overlay, which then sees what this writes again.
        let machines = options.machines.clone();
        let adoption = Adoption::begin(tree.clone(), quarantine.clone(), keys, buckets, machines.clone())?;
        let store = Overlay::new(tree, options.overlay.clone()).map_err(|error| from_kv(&error))?;
        let store = Arc::new(store);
        let view = store.view().map_err(|error| from_kv(&error))?;
        let kernel = load_kernel(&*view, &keys, machines).map_err(|halt| from_halt(&halt))?;
        let mut kernel = kernel.ok_or_else(|| inconsistent("the store holds no state".into()))?;
        kernel.expect_damage(adoption.has_parts());
        let applied_at_open = kernel.applied().index;
        let (at, history) = position_of(&parts, kernel.applied())?;
        let apply = ApplyLoop {
            notified: Notified::new(kernel.catalogue().clone()),
            kernel,
            store: store.clone(),
            adoption,
            replays: true,
            replay_bytes_max: options.replay_bytes_max,
            bytes_since_flush: 0,
            journal_cut: JournalCut::new(applied_at_open),
        };
        Ok(Self { apply, store, quarantine, applied_at_open, at, history, options: options.clone(), parts })
    }

    /// Goes on with what an owner has applied.
    pub(crate) fn resume(
        apply: ApplyLoop,
        quarantine: Arc<Quarantine>,
        applied_at_open: u64,
        options: Options,
        parts: Parts,
    ) -> Result<Self, Error> {
        let (at, history) = position_of(&parts, apply.kernel.applied())?;
        Ok(Self { store: apply.store.clone(), apply, quarantine, applied_at_open, at, history, options, parts })
    }

    /// The last applied entry.
    pub fn at(&self) -> Position {
        self.at
    }

    /// The history that an owner continues: that of the log, or its own if the log has no entry yet.
    pub(crate) fn history(&self) -> u64 {
        self.history.unwrap_or(self.parts.directory.identity().id)
    }

    /// The applied row: with it, two nodes can compare everything that they have applied.
    pub fn applied(&self) -> &Applied {
        self.apply.kernel.applied()
    }

    /// Writes everything that it has applied as one image. Returns the number of rows.
    pub fn write_image(&self, out: &mut dyn std::io::Write) -> Result<u64, Error> {
        let view = self.store.view().map_err(|error| from_kv(&error))?;
        image::write_view(&*view, &self.parts.place.keys, out)
    }

    /// Applies what the log has and the store has not. Returns how many entries. After an error it must not be used again.
    pub fn follow(&mut self) -> Result<u64, Error> {
        self.follow_until(u64::MAX)
    }

    /// The same, at most up to an entry.
    pub fn follow_until(&mut self, index: u64) -> Result<u64, Error> {
        self.apply_until(index, &Opening::default())
    }

    fn apply_until(&mut self, index: u64, opening: &Opening) -> Result<u64, Error> {
        let from = self.at.index;
        let last = self.ends()?.last;
        if last.index < from {
            return Err(from_journal(&JournalError::TailLost {
                shard: self.parts.place.id,
                acknowledged: self.at,
                found: last,
            }));
        }
        let upto = last.index.min(index).max(from);
        let bytes_left = |at: u64| self.parts.log.bytes_from(self.parts.place.id, at + 1);
        let bytes = bytes_left(from);
        opening.begin(upto - from, bytes);
        while self.at.index < upto {
            // In the files, entries take more than they are counted as.
            if let (Some(bytes), Some(left)) = (bytes, bytes_left(self.at.index)) {
                opening.at_least(bytes.saturating_sub(left));
            }
            let entries = self.parts.log.read(self.parts.place.id, self.at.index + 1, CHUNK_BYTES);
            let entries = entries.map_err(|error| from_journal(&error))?;
            if entries.is_empty() {
                let (shard, found) = (self.parts.place.id, self.ends()?.last);
                return Err(from_journal(&JournalError::TailLost { shard, acknowledged: last, found }));
            }
            for (entry, position) in entries {
                if entry.index > upto {
                    break;
                }
                self.check(&entry)?;
                self.history = Some(entry.history);
                let Entry { index, term, history, .. } = entry;
                let place = EntryPlace { index, term, history, hash: position.hash };
                self.apply.apply_or_fail(&place, &entry.payload)?;
                self.at = position;
                opening.at(entry.index - from, (entry.payload.len() + ENTRY_OVERHEAD_BYTES_MAX) as u64);
            }
        }
        Ok(upto - from)
    }

    /// An entry can be applied if it is the next one of the same history, and of a kind that this release knows.
    fn check(&self, entry: &Entry) -> Result<(), Error> {
        let (applied, index) = (self.at, entry.index);
        if entry.previous_hash != applied.hash {
            let what = "of the log is behind another one";
            return Err(inconsistent(format!("the store has applied entry {applied}, and entry {index} {what}")));
        }
        if let Some(history) = self.history.filter(|history| *history != entry.history) {
            return Err(inconsistent(format!(
                "the store has applied entry {applied} of history {history:016x}, and entry {index} of the log is of history \
                 {:016x}",
                entry.history
            )));
        }
        match entry.kind {
            EntryKind::COMMANDS | EntryKind::FENCE => Ok(()),
            kind => Err(inconsistent(format!(
                "entry {index} of the log is of kind {}, which this release does not know; use the release that wrote it",
                kind.byte()
            ))),
        }
    }

    fn ends(&self) -> Result<Ends, Error> {
        self.parts.log.ends(self.parts.place.id).map_err(|error| from_journal(&error))
    }

    /// Takes the shard for a term: appends an entry without commands behind what it has applied, after which whoever owned it
    /// can append no more. `false` if somebody else has appended meanwhile, or nobody knows: follow, and try again if that is
    /// still wanted.
    pub fn fence(&mut self, term: u64) -> Result<bool, Error> {
        let time = Time::new(self.options.clock.clone(), self.applied().stamp);
        let payload = EntryHeader::new(time.stamp()).encode(std::iter::empty());
        let fence = Append {
            shard: self.parts.place.id,
            after: self.at,
            kind: EntryKind::FENCE,
            term,
            node: LOCAL_NODE,
            history: self.history(),
            payload: &payload,
        };
        let appended = self.parts.log.append_behind(&[fence]).pop();
        match appended.expect("one outcome for one entry") {
            Ok(position) => {
                self.follow_until(position.index)?;
                Ok(true)
            }
            Err(JournalError::Deposed { .. } | JournalError::Unanswered { .. }) => Ok(false),
            Err(error) => Err(from_journal(&error)),
        }
    }

    /// Becomes the owner of a shard that it has taken with [`fence`](Self::fence), in the same term, until `tenure` ends.
    ///
    /// # Errors
    /// If somebody else has appended since: `NotOwner`.
    pub fn own_fenced(mut self, term: u64, tenure: Tenure) -> Result<Arc<Shard>, Error> {
        let last = self.ends()?.last;
        if last != self.at {
            let deposed = JournalError::Deposed { shard: self.parts.place.id, after: self.at };
            return Err(from_journal(&deposed));
        }
        self.parts.tenure = Arc::new(tenure);
        // Whatever is appended from now on is behind this entry, or refused.
        self.start_owning(term)
    }

    /// Becomes the owner in a term: applies what is left, and then proposes, answers, and does what is due. For a log that
    /// nobody else can append to.
    pub fn own(mut self, term: u64) -> Result<Arc<Shard>, Error> {
        let began_us = self.options.clock.monotonic_us();
        let opening = self.options.opening.clone().unwrap_or_default();
        // It has an end, and without it nothing can be read.
        self.store.accept_unflushed(true);
        let replayed = self.apply_until(u64::MAX, &opening)?;
        self.store.accept_unflushed(false);
        let took = Duration::from_micros(self.options.clock.monotonic_us().saturating_sub(began_us));
        let meters = &self.apply.notified.shared.meters;
        meters.opened(self.applied().index, replayed, took);
        self.start_owning(term)
    }

    fn start_owning(mut self, term: u64) -> Result<Arc<Shard>, Error> {
        self.apply.replays = false;
        self.set_agenda()?;
        Shard::start(self, term)
    }

    fn set_agenda(&mut self) -> Result<(), Error> {
        let next_due = |apply: &mut ApplyLoop, store: &Overlay| {
            let view = store.view().map_err(|error| from_kv(&error))?;
            apply.kernel.next_due(view).map_err(|halt| from_halt(&halt))
        };
        let (apply, store) = (&mut self.apply, &self.store);
        let mut due = next_due(apply, store);
        while due.is_err() && apply.set_apart_found(apply.kernel.applied().index)? {
            due = next_due(apply, store);
        }
        apply.notified.agenda.set(due?);
        Ok(())
    }
}

/// Where the last entry that a store has applied is in the log, and the history of the log.
fn position_of(parts: &Parts, applied: &Applied) -> Result<(Position, Option<u64>), Error> {
    let (log, shard) = (&parts.log, parts.place.id);
    let Ends { first_kept, last, history } = log.ends(shard).map_err(|error| from_journal(&error))?;
    let here = Position { index: applied.index, hash: applied.entry_hash };
    let Some(first) = first_kept else {
        // The first entry of all decides the history of its shard, and others may be about to append it as well. Where an
        // empty log begins already, nobody moves it.
        if last == Position::START {
            if here.index == 0 {
                return Ok((here, history));
            }
            let history = parts.directory.identity().id;
            log.start_after(shard, here, history).map_err(|error| from_journal(&error))?;
            return Ok((here, Some(history)));
        }
        return match last.index == here.index {
            true => Ok((agreed(here, last)?, history)),
            false => Err(inconsistent(format!(
                "the store has applied entry {}, but the journal is empty and begins behind entry {}",
                here.index, last.index
            ))),
        };
    };
    if last.index < here.index {
        return Err(inconsistent(format!(
            "the store has applied entry {}, but the journal holds entries {first} to {}: entries are lost; use the journal that \
             belongs to the store, or restore both from a backup",
            here.index, last.index
        )));
    }
    if first > here.index + 1 {
        return Err(inconsistent(format!(
            "the store has applied entry {}, and the journal no longer has the next ones: it holds entries {first} to {}; make \
             the store again from an image or a backup that has applied entry {} or a later one",
            here.index,
            last.index,
            first - 1
        )));
    }
    // The next entry says what it is behind. Without one, the last one is what was applied.
    let index = last.index.min(here.index + 1);
    let read = log.read(shard, index, 0).map_err(|error| from_journal(&error))?;
    let (entry, _) = read.first().ok_or_else(|| inconsistent(format!("entry {index} of the log is gone")))?;
    let found = if index == here.index { last } else { Position { index: here.index, hash: entry.previous_hash } };
    Ok((agreed(here, found)?, Some(entry.history)))
}

/// The entry that a store has applied, as the log has it. The entry of a store that was imported has no hash, and the first entry
/// of its own log is behind none.
fn agreed(applied: Position, found: Position) -> Result<Position, Error> {
    match applied.hash == found.hash {
        true => Ok(found),
        false => Err(inconsistent(format!(
            "the store has applied entry {applied}, and the journal has another one there, {found}: they do not belong together; \
             open the store with its own journal, or make it again from an image or a backup"
        ))),
    }
}

pub(crate) fn inconsistent(reason: String) -> Error {
    from_halt(&Halt::Inconsistent(reason))
}
