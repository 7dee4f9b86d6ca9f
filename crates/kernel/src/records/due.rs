//! What is due on records: the end of a lease, of a pause, of a time to live, and of a deleted record's row.
//!
//! Touches: every row of a record. Keeps: R4, and R5 for the schedule.

use session::Halt;

use super::row::Row;
use super::{attempt, write};
use crate::changes::Reason;
use crate::context::Applying;
use crate::contract::DueWork;
use crate::keys::ThingId;
use crate::keys::due::{DueClock, DueOf};

/// Does what is due on a record.
pub(super) fn when_due(applying: &mut Applying<'_>, work: &DueWork<'_>) -> Result<(), Halt> {
    let record = work.thing();
    let is_live = applying.is_live(work.id);
    let Some(bytes) = applying.state.get(&applying.keys.record(&record))? else {
        if is_live {
            let DueWork { of, at_us, id, .. } = work;
            return Err(Halt::Inconsistent(format!("R5: {of:?} at {at_us} of record {:?}, which has no row", id.name)));
        }
        applying.delete_due(work.clock, work.at_us, work.of, &record);
        return Ok(());
    };
    let row = Row::decode(&bytes)?;
    let stamp = applying.call.stamp;
    if !is_live {
        // Its counts may be gone already, so this is neither counted nor reported.
        return write::erase(applying, &record, &row);
    }
    match work.of {
        DueOf::Expiry if row.numbers.expires_us > stamp.wall_us => bring_up_to_date(applying, &record, &row),
        DueOf::Expiry if row.numbers.deleted => write::forget(applying, &record, &row),
        DueOf::Expiry => write::remove(applying, &record, &row, Reason::Expired).map(|_| ()),
        DueOf::Ready => {
            let mut ready = row.clone();
            ready.numbers.waiting = false;
            write::rewrite(applying, &record, &row, ready)
        }
        DueOf::Lease if row.numbers.lease_us > stamp.cluster_us && !row.numbers.expired_at(stamp.wall_us) => {
            bring_up_to_date(applying, &record, &row)
        }
        DueOf::Lease => attempt::rescue(applying, &record, &row, Reason::Rescued),
        _ => unreachable!("records do not have this in their list"),
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
    write::put_row(applying, record, row, &moved);
    Ok(())
}
