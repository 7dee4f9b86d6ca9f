//! What is left of deleted records, of the records of a deleted branch, and of queues in which nothing is ready.
//!
//! Touches: every row of a record, and lanes. Keeps: R7, and K8 (a name is removed with its record).

use kv::Order;
use session::Halt;

use super::lanes::first_row;
use super::row::Row;
use super::write::{erase, forget, peek};
use crate::context::Applying;
use crate::contract::{ERASED_MAX, delete_some};
use crate::keys::names::is_name_in_group;
use crate::keys::queues::QueueId;
use crate::keys::things::read_thing_key;
use crate::keys::{Kind, ThingId};

/// Lanes of an empty queue that one step looks at.
pub(crate) const LANES_LOOKED_AT_MAX: usize = 64;

/// Forgets a record that is deleted.
pub(crate) fn forget_record(applying: &mut Applying<'_>, record: &ThingId<'_>) -> Result<(), Halt> {
    let Some(bytes) = peek(applying, record)? else {
        return Ok(());
    };
    let row = Row::decode(&bytes)?;
    match row.numbers.deleted {
        true => forget(applying, record, &row),
        false => Ok(()),
    }
}

/// Removes lanes of a queue that lead to nothing.
pub(crate) fn remove_lanes(applying: &mut Applying<'_>, queue: QueueId<'_>, bucket: u16) -> Result<(), Halt> {
    let lanes = applying.lanes(queue)?;
    for (bucket, lane) in lanes.iter().filter(|(lane, _)| *lane >= bucket).take(LANES_LOOKED_AT_MAX) {
        let first = match lane.begins {
            Some(begins) => first_row(applying.state, &applying.keys, bucket, queue, begins)?,
            None => None,
        };
        if first.is_none() {
            applying.correct_lane(bucket, queue, None)?;
        }
    }
    Ok(())
}

/// Removes some records of a branch in a bucket, with every row that follows from them.
pub(super) fn erase_some(applying: &mut Applying<'_>, bucket: u16, space: u32, branch: u32) -> Result<(), Halt> {
    let range = applying.keys.rows_of_branch(Kind::Record, bucket, space, branch);
    let rows = applying.state.scan(&range, Order::Ascending).take(ERASED_MAX);
    for row in rows.collect::<Result<Vec<_>, _>>()? {
        if is_name_in_group(&row.0) {
            // Names precede the records of groups. A step that skipped them would never reach those.
            applying.state.delete(row.0);
            continue;
        }
        let id = read_thing_key(&row.0, space, branch)
            .ok_or_else(|| Halt::Inconsistent("a foreign key among records".into()))?;
        erase(applying, &id.in_bucket(bucket), &Row::decode(&row.1)?)?;
    }
    let ready = applying.keys.rows_of_branch(Kind::Ready, bucket, space, branch);
    delete_some(&mut applying.held(), &ready)
}
