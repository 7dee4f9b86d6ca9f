//! What the apply loop has done since the directory was opened, counted.
//!
//! Keeps: the apply loop is the only writer; replayed entries are not counted. Never: decides anything.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use contract::Reason;
use journal::JournalMeter;
use kernel::{Kernel, Tally};
use session::Reply;

use crate::sessions::census::EndedSessions;

/// The number of types whose claims and conflicts are counted by name; further ones are counted as [`OTHER_TYPES`].
pub const TYPES_COUNTED_MAX: usize = 200;

/// The name under which the types beyond [`TYPES_COUNTED_MAX`] are counted together.
pub const OTHER_TYPES: &str = "other";

/// Activity since the directory was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counters {
    /// Entries replayed when it was opened.
    pub replayed_entries: u64,
    /// The duration of the replay.
    pub replay_took: Duration,
    /// Entries applied since.
    pub entries_applied: u64,
    /// The last applied entry.
    pub applied_index: u64,
    /// Their commands.
    pub commands_applied: u64,
    /// Claimed records, by type.
    pub claims: BTreeMap<String, Claims>,
    /// Commands refused because something was not as they expected, by contract and type.
    pub conflicts: BTreeMap<(&'static str, String), u64>,
    /// Records that their workers gave back, or failed and may try again.
    pub records_released: u64,
    /// Records whose attempts failed, and that are retried.
    pub records_failed: u64,
    /// Records that reached a terminal state.
    pub records_finished: u64,
    /// Records whose leases ended before their workers finished.
    pub records_rescued: u64,
    /// Records whose attempts are used up.
    pub records_exhausted: u64,
    /// Expired records.
    pub records_expired: u64,
    /// Records released or removed because their session ended.
    pub records_session_ended: u64,
    /// Messages applied in their groups.
    pub messages_delivered: u64,
    /// Messages that their groups refused.
    pub messages_refused: u64,
    /// Messages whose dead letters were dropped.
    pub messages_dropped: u64,
    /// Messages that were refused and could not be kept.
    pub messages_lost: u64,
    /// Appends answered by an existing event.
    pub repeated_appends: u64,
    /// Updates that were not applied, each with the word for what became of them.
    pub updates_not_applied: [(&'static str, u64); NOT_APPLIED],
    /// Requests of sessions that got the answer that they had got before.
    pub session_replays: u64,
    /// Ended sessions, by reason.
    pub sessions_ended: EndedSessions,
    /// How far the times of entries are ahead of the machine's clock; zero in sound conditions, or a few µs.
    pub stamps_ahead: Duration,
    /// The figures of the journal.
    pub journal: JournalMeter,
}

/// Claims of one type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Claims {
    /// The number of records.
    pub count: u64,
    /// The time since the last claim.
    pub last_ago: Duration,
    pub(crate) last_us: u64,
}

/// So many things can become of an update that is not applied.
const NOT_APPLIED: usize = 3;

/// The counters of the apply loop.
#[derive(Default)]
pub struct Meters {
    replayed_entries: AtomicU64,
    replay_took_us: AtomicU64,
    entries_applied: AtomicU64,
    applied_index: AtomicU64,
    commands_applied: AtomicU64,
    released: AtomicU64,
    failed: AtomicU64,
    finished: AtomicU64,
    rescued: AtomicU64,
    exhausted: AtomicU64,
    expired: AtomicU64,
    session_ended: AtomicU64,
    delivered: AtomicU64,
    refused: AtomicU64,
    dropped: AtomicU64,
    lost: AtomicU64,
    repeated_appends: AtomicU64,
    updates_not_applied: [AtomicU64; NOT_APPLIED],
    session_replays: AtomicU64,
    /// Locked once for an entry with claims or conflicts, and when somebody looks.
    by_type: Mutex<ByType>,
}

#[derive(Default)]
struct ByType {
    claims: BTreeMap<String, Claims>,
    conflicts: BTreeMap<(&'static str, String), u64>,
}

impl Meters {
    fn by_type(&self) -> MutexGuard<'_, ByType> {
        self.by_type.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The directory was opened.
    pub(crate) fn opened(&self, applied_index: u64, replayed_entries: u64, took: Duration) {
        self.applied_index.store(applied_index, Ordering::Relaxed);
        self.replayed_entries.store(replayed_entries, Ordering::Relaxed);
        self.replay_took_us.store(u64::try_from(took.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// An entry was applied.
    pub(crate) fn applied(&self, kernel: &Kernel, replies: &[Vec<u8>], tally: Tally) {
        let (applied, catalogue) = (kernel.applied(), kernel.catalogue());
        let add = |counter: &AtomicU64, by: u64| {
            if by > 0 {
                counter.fetch_add(by, Ordering::Relaxed);
            }
        };
        self.applied_index.store(applied.index, Ordering::Relaxed);
        add(&self.entries_applied, 1);
        add(&self.commands_applied, replies.len() as u64);
        add(&self.session_replays, replies.iter().filter(|reply| Reply::is_stored(reply)).count() as u64);
        let of_reasons = [
            (&self.released, Reason::Released),
            (&self.failed, Reason::Failed),
            (&self.finished, Reason::Finished),
            (&self.rescued, Reason::Rescued),
            (&self.exhausted, Reason::Exhausted),
            (&self.expired, Reason::Expired),
            (&self.session_ended, Reason::SessionEnded),
            (&self.delivered, Reason::Delivered),
            (&self.refused, Reason::Refused),
            (&self.dropped, Reason::Dropped),
            (&self.lost, Reason::Lost),
        ];
        for (counter, reason) in of_reasons {
            add(counter, tally.changes(reason));
        }
        add(&self.repeated_appends, tally.repeated_appends());
        for (counter, (_, count)) in self.updates_not_applied.iter().zip(tally.updates_not_applied()) {
            add(counter, count);
        }
        if tally.claimed.is_empty() && tally.conflicts.is_empty() {
            return;
        }
        let mut by_type = self.by_type();
        // Records claimed together are mostly of one type.
        for same in tally.claimed.chunk_by(|one, other| one == other) {
            let (space, number) = same[0];
            let name = catalogue.record_type(space, number).map_or("", |declared| declared.definition.name.as_str());
            let claims = claims_of(&mut by_type.claims, name);
            claims.count += same.len() as u64;
            claims.last_us = applied.stamp.wall_us;
        }
        for conflict in tally.conflicts {
            let known = by_type.conflicts.len() < TYPES_COUNTED_MAX
                || by_type.conflicts.contains_key(&(conflict.on, conflict.type_name.clone()));
            let type_name = if known { conflict.type_name } else { OTHER_TYPES.to_owned() };
            *by_type.conflicts.entry((conflict.on, type_name)).or_default() += 1;
        }
    }

    /// Without what others count.
    pub(crate) fn read(&self) -> Counters {
        let by_type = self.by_type();
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let mut updates_not_applied = Tally::default().updates_not_applied();
        for ((_, count), counter) in updates_not_applied.iter_mut().zip(&self.updates_not_applied) {
            *count = get(counter);
        }
        Counters {
            replayed_entries: get(&self.replayed_entries),
            replay_took: Duration::from_micros(get(&self.replay_took_us)),
            entries_applied: get(&self.entries_applied),
            applied_index: get(&self.applied_index),
            commands_applied: get(&self.commands_applied),
            claims: by_type.claims.clone(),
            conflicts: by_type.conflicts.clone(),
            records_released: get(&self.released),
            records_failed: get(&self.failed),
            records_finished: get(&self.finished),
            records_rescued: get(&self.rescued),
            records_exhausted: get(&self.exhausted),
            records_expired: get(&self.expired),
            records_session_ended: get(&self.session_ended),
            messages_delivered: get(&self.delivered),
            messages_refused: get(&self.refused),
            messages_dropped: get(&self.dropped),
            messages_lost: get(&self.lost),
            repeated_appends: get(&self.repeated_appends),
            updates_not_applied,
            session_replays: get(&self.session_replays),
            sessions_ended: EndedSessions::default(),
            stamps_ahead: Duration::ZERO,
            journal: JournalMeter::default(),
        }
    }
}

fn claims_of<'claims>(claims: &'claims mut BTreeMap<String, Claims>, name: &str) -> &'claims mut Claims {
    let known = claims.len() < TYPES_COUNTED_MAX || claims.contains_key(name);
    let name = if known { name } else { OTHER_TYPES };
    if !claims.contains_key(name) {
        claims.insert(name.to_owned(), Claims::default());
    }
    claims.get_mut(name).expect("it was put there if it was missing")
}
