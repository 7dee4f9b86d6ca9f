//! Things that a session owns: its claims, the records that live as long as it does, and the machines that have seen
//! it.
//!
//! After a session has ended, ticks release what it owned, a bounded number of things each, until nothing is left for
//! its entry in the due index. The rows of a session are adjacent, so this is one scan.
//!
//! Touches: `Owned` rows. Keeps: E6 (a row of this index is exactly where a record says; everything an ended session
//! owned is released, and nothing else is).

use kv::{Key, KeyRange, Order, skip_set_apart};
use session::{Halt, SessionEvent};

use super::hosted;
use crate::changes::Reason;
use crate::keys::records::DueClock;
use crate::keys::sessions::{Owned, OwnedOf, read_owned_suffix};
use crate::keys::{Keys, ThingId};
use crate::machine::Applying;
use crate::records::row::{Numbers, Row};
use crate::records::tick::is_live;
use crate::records::{attempt, write};

/// Releasing one thing counts as this many steps of a tick: it reads and writes as much as that many other steps, and
/// others wait meanwhile.
const STEPS_FOR_ONE: u32 = 3;

/// Updates the index for a written record.
pub(crate) fn update(applying: &mut Applying<'_>, record: &ThingId<'_>, before: &Numbers, after: &Numbers) {
    let claims = (OwnedOf::Claim, before.holder_session, after.holder_session);
    let lives = (OwnedOf::Life, before.life_session, after.life_session);
    for (of, before, after) in [claims, lives] {
        if before == after {
            continue;
        }
        if before != 0 {
            let key = applying.keys.owned(before, of, record);
            applying.state.delete(key);
        }
        if after != 0 {
            let key = applying.keys.owned(after, of, record);
            applying.state.put(key, b"".as_slice());
            applying.owned = true;
        }
    }
}

/// A session has ended: schedules the release of what it owns.
pub(crate) fn begin_to_give_back(applying: &mut Applying<'_>, event: &SessionEvent<'_>) {
    if event.owned {
        put_ended(applying, event.stamp.cluster_us, event.session);
    }
}

/// Schedules the release of what an ended session owns.
pub(crate) fn put_ended(applying: &mut Applying<'_>, at_us: u64, session: u64) {
    applying.change_due(DueClock::Cluster, FIRST_BUCKET, Keys::due_session_suffix(at_us, session), b"", true);
}

/// The bucket of the due entry: a session is in no bucket.
const FIRST_BUCKET: u16 = 0;

/// Releases some of what a session owned. Returns the number of steps.
pub(crate) fn give_back(applying: &mut Applying<'_>, at_us: u64, session: u64, steps_max: u32) -> Result<u32, Halt> {
    let limit = (steps_max / STEPS_FOR_ONE).max(1);
    let found = owned_by(applying, session, limit as usize)?;
    for (bucket, owned, key) in &found {
        applying.savepoint();
        let ended = end(applying, *bucket, session, owned);
        if applying.undo_if_damaged(ended)?.is_err() {
            // It cannot be released, and must not keep the others from it.
            applying.state.delete(key.clone());
        }
    }
    applying.savepoint();
    let given_back = u32::try_from(found.len()).expect("bounded by the steps");
    if given_back < limit {
        applying.change_due(DueClock::Cluster, FIRST_BUCKET, Keys::due_session_suffix(at_us, session), b"", false);
    }
    Ok((given_back * STEPS_FOR_ONE).max(1))
}

fn owned_by(applying: &Applying<'_>, session: u64, limit: usize) -> Result<Vec<(u16, Owned, Key)>, Halt> {
    let prefix = applying.keys.owned_prefix(session);
    let mut found = Vec::new();
    for row in skip_set_apart(applying.state.scan(&KeyRange::prefix(&prefix), Order::Ascending)).take(limit) {
        let (key, _) = row?;
        let owned = read_owned_suffix(&key[prefix.len()..]);
        let unknown = || Halt::Inconsistent(format!("E6: session {session} owns an unknown thing"));
        let (bucket, owned) = owned.ok_or_else(unknown)?;
        found.push((bucket, owned, key));
    }
    Ok(found)
}

fn end(applying: &mut Applying<'_>, bucket: u16, session: u64, owned: &Owned) -> Result<(), Halt> {
    match owned {
        Owned::Member { space, machine, group } => {
            hosted::expired(applying, bucket, session, (*space, *machine, group))
        }
        Owned::Claim(id) | Owned::Life(id) => {
            let record = id.in_bucket(bucket);
            let row = applying.state.get(&applying.keys.record(&record))?;
            let row = row.ok_or_else(|| Halt::Inconsistent(format!("E6: session {session} owns {id:?}, not there")))?;
            let row = Row::decode(&row)?;
            if !is_live(applying, id) {
                return write::erase(applying, &record, &row);
            }
            if matches!(owned, Owned::Claim(_)) {
                attempt::rescue(applying, &record, &row, Reason::SessionEnded)
            } else {
                // One whose own time was over before did not end with its session.
                let expired = row.numbers.expired_at(applying.call.stamp.wall_us);
                let reason = if expired { Reason::Expired } else { Reason::SessionEnded };
                write::remove(applying, &record, &row, reason).map(|_| ())
            }
        }
    }
}
