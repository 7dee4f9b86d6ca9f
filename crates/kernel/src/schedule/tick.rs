//! Work driven by time: the tick, proposed by the node when work is due.
//!
//! A tick does at most as many steps as the catalogue allows, so that a million things due at once neither stop writers
//! nor make one enormous entry. Each step is atomic in its own group.
//!
//! Touches: whatever is due. Keeps: R4 and R6.

use session::Halt;

use super::window::Entry;
use crate::answer::Answer;
use crate::changes::Reason;
use crate::context::Applying;
use crate::keys::ThingId;
use crate::keys::records::{Due, DueClock, DueOf, OwnedId, read_due_suffix};
use crate::outbox::deliver::deliver;
use crate::records::row::Row;
use crate::records::{attempt, write};
use crate::runs;
use crate::sessions::give_back::give_back;

/// Does due work.
pub(crate) fn tick(applying: &mut Applying<'_>) -> Result<Answer, Halt> {
    let stamp = applying.call.stamp;
    // At least one: ticks are proposed as long as work is due.
    let mut steps = applying.catalogue.limits.tick_steps_max.max(1);
    for (clock, now_us) in [(DueClock::Cluster, stamp.cluster_us), (DueClock::Wall, stamp.wall_us)] {
        while steps > 0 {
            let Some((entry, at_us, due)) = next_due(applying, clock)? else {
                break;
            };
            if at_us > now_us {
                break;
            }
            applying.savepoint();
            let done = step(applying, clock, entry.bucket, at_us, &due, steps);
            let done = match applying.undo_if_damaged(done)? {
                Ok(done) => done,
                Err(_) => {
                    // What it would change cannot be read by anybody, and it must not be due forever.
                    applying.drop_due(clock, entry.bucket, entry.suffix);
                    1
                }
            };
            applying.savepoint();
            steps = steps.saturating_sub(done);
        }
    }
    Ok(Answer::Done { commit: applying.call.commit, outcomes: Vec::new() })
}

fn next_due(applying: &mut Applying<'_>, clock: DueClock) -> Result<Option<(Entry, u64, Due)>, Halt> {
    let buckets = applying.catalogue.buckets.count();
    let Some(entry) = applying.windows.first_due(applying.state, &applying.keys, buckets, clock)? else {
        return Ok(None);
    };
    let (at_us, due) = read_due_suffix(&entry.suffix)
        .ok_or_else(|| Halt::Inconsistent(format!("R5: {entry:?} is no entry of a due index")))?;
    Ok(Some((entry, at_us, due)))
}

/// Does one piece of due work, or up to `steps_max` for an ended session. Returns the number of steps.
fn step(
    applying: &mut Applying<'_>,
    clock: DueClock,
    bucket: u16,
    at_us: u64,
    due: &Due,
    steps_max: u32,
) -> Result<u32, Halt> {
    let (id, of) = match due {
        Due::Send { commit, ordinal } => return deliver(applying, bucket, at_us, *commit, *ordinal).map(|()| 1),
        Due::Session(session) => return give_back(applying, at_us, *session, steps_max),
        Due::Expiry(id) => (id, DueOf::Expiry),
        Due::Ready(id) => (id, DueOf::Ready),
        Due::Lease(id) => (id, DueOf::Lease),
        Due::Run(id) => {
            let run = id.in_bucket(bucket);
            return match applying.is_live(id) {
                true => runs::life::remove_some(applying, &run, at_us).map(|()| 1),
                // Its rows go with its branch.
                false => {
                    applying.delete_due(clock, at_us, DueOf::Run, &run);
                    Ok(1)
                }
            };
        }
    };
    step_of_record(applying, clock, bucket, at_us, due, id, of).map(|()| 1)
}

fn step_of_record(
    applying: &mut Applying<'_>,
    clock: DueClock,
    bucket: u16,
    at_us: u64,
    due: &Due,
    id: &OwnedId,
    of: DueOf,
) -> Result<(), Halt> {
    let record = id.in_bucket(bucket);
    let Some(bytes) = applying.state.get(&applying.keys.record(&record))? else {
        return forget_entry(applying, clock, at_us, of, id, &record);
    };
    let row = Row::decode(&bytes)?;
    let stamp = applying.call.stamp;
    if !applying.is_live(id) {
        // Its counts may be gone already, so this is neither counted nor reported.
        return write::erase(applying, &record, &row);
    }
    match due {
        Due::Send { .. } | Due::Session(_) | Due::Run(_) => unreachable!("they were dealt with above"),
        Due::Expiry(_) if row.numbers.expires_us > stamp.wall_us => bring_up_to_date(applying, &record, &row),
        Due::Expiry(_) if row.numbers.deleted => write::forget(applying, &record, &row),
        Due::Expiry(_) => write::remove(applying, &record, &row, Reason::Expired).map(|_| ()),
        Due::Ready(_) => {
            let mut ready = row.clone();
            ready.numbers.waiting = false;
            write::rewrite(applying, &record, &row, ready)
        }
        Due::Lease(_) if row.numbers.lease_us > stamp.cluster_us && !row.numbers.expired_at(stamp.wall_us) => {
            bring_up_to_date(applying, &record, &row)
        }
        Due::Lease(_) => attempt::rescue(applying, &record, &row, Reason::Rescued),
    }
}

/// Moves the entries of an extended lease or TTL to their current times.
fn bring_up_to_date(applying: &mut Applying<'_>, record: &ThingId<'_>, row: &Row<'_>) -> Result<(), Halt> {
    let mut moved = row.clone();
    let stamp = applying.call.stamp;
    let numbers = &mut moved.numbers;
    if numbers.lease_entry_us != 0 && numbers.lease_entry_us <= stamp.cluster_us {
        applying.delete_due(DueClock::Cluster, numbers.lease_entry_us, DueOf::Lease, record);
        applying.put_due(DueClock::Cluster, numbers.lease_us, DueOf::Lease, record);
        numbers.lease_entry_us = numbers.lease_us;
    }
    if numbers.expires_entry_us != 0 && numbers.expires_entry_us <= stamp.wall_us && numbers.expires_us > stamp.wall_us
    {
        applying.delete_due(DueClock::Wall, numbers.expires_entry_us, DueOf::Expiry, record);
        applying.put_due(DueClock::Wall, numbers.expires_us, DueOf::Expiry, record);
        numbers.expires_entry_us = numbers.expires_us;
    }
    let key = applying.keys.record(record);
    applying.state.put_encoded(key, |writer| moved.encode(writer));
    Ok(())
}

/// The record of an entry is gone: with its branch, or the state contradicts itself.
fn forget_entry(
    applying: &mut Applying<'_>,
    clock: DueClock,
    at_us: u64,
    of: DueOf,
    id: &OwnedId,
    record: &ThingId<'_>,
) -> Result<(), Halt> {
    if applying.is_live(id) {
        return Err(Halt::Inconsistent(format!("R5: {of:?} at {at_us} of record {:?}, which has no row", id.name)));
    }
    applying.delete_due(clock, at_us, of, record);
    Ok(())
}
