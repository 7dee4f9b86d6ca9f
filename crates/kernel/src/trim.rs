//! The bounded walk: discards expired history, removes the remains of deleted branches and of empty queues, and fills new
//! indexes.
//!
//! The node looks for due cells in a view, at its own pace, and proposes steps that name them; nothing is journaled
//! while nothing is due. Each step checks again when it is applied, so an outdated step does nothing.
//!
//! Touches: cells, deleted branches, lanes of empty queues. Keeps: K3, K8 (a name is removed with its thing), R7, and K6
//! (a branch is forgotten only when it has no rows left).

mod find;

use kv::{KeyRange, Order, Staging};
use session::{Call, Halt, Pushes};

use crate::answer::Answer;
use crate::catalogue::Catalogue;
use crate::cells::floor;
use crate::cells::retention::trim_cell;
use crate::cells::row::Head;
use crate::context::Applying;
use crate::keys::names::is_name_in_group;
use crate::keys::queues::QueueId;
use crate::keys::records::read_record_key;
use crate::keys::{Keys, Kind, ThingId};
use crate::machine::Contracts;
use crate::names;
use crate::records::fill::fill;
use crate::records::lanes::first_row;
use crate::records::queue::ALL_QUEUES;
use crate::records::row::Row;
use crate::records::write::{erase, forget, peek};

pub use crate::command::trim_step::TrimStep;
pub use find::{find_due, unfilled};

/// Steps in one command.
pub const TRIM_STEPS_MAX: usize = 256;

/// Old versions of a deleted branch's cell that one step removes.
const REMOVED_ROWS_MAX: u64 = 64;

/// Records of a deleted branch, or rows of its counts, that one step removes.
const ERASED_RECORDS_MAX: usize = 64;

/// Lanes of an empty queue that one step looks at.
const LANES_LOOKED_AT_MAX: usize = 64;

pub(crate) fn apply(
    contracts: &mut Contracts,
    state: &mut Staging,
    call: &Call<'_>,
    pushes: &mut Pushes,
    steps: &[TrimStep],
) -> Result<Answer, Halt> {
    for step in steps {
        contracts.applying(state, call, pushes).savepoint();
        let done = apply_step(contracts, state, call, pushes, step);
        // What cannot be read stays as it is; the other steps do not need it.
        let _ = contracts.applying(state, call, pushes).undo_if_damaged(done)?;
    }
    Ok(Answer::Done { commit: call.commit, outcomes: Vec::new() })
}

fn apply_step(
    contracts: &mut Contracts,
    state: &mut Staging,
    call: &Call<'_>,
    pushes: &mut Pushes,
    step: &TrimStep,
) -> Result<(), Halt> {
    match step {
        TrimStep::Cell(cell) => {
            trim_one(&mut contracts.applying(state, call, pushes), &cell.id())?;
        }
        TrimStep::ForgetCell(cell) => {
            floor::forget(&mut contracts.applying(state, call, pushes).cells(), &cell.id())?;
        }
        TrimStep::ForgetRecord(record) => {
            forget_record(&mut contracts.applying(state, call, pushes), &record.id())?;
        }
        TrimStep::Records { bucket, space, branch } => {
            erase_records(&mut contracts.applying(state, call, pushes), *bucket, *space, *branch)?;
        }
        TrimStep::Branch { space, branch } => {
            let (catalogue, keys) = (&mut contracts.catalogue, contracts.keys);
            if is_deleted(catalogue, *space, *branch) {
                remove_shard_rows(state, keys, *space, *branch)?;
            }
            if !has_rows(state, catalogue, &keys, *space, *branch)? {
                for floor in (0..catalogue.buckets.count()).map(|bucket| keys.cell_floor(bucket, *space, *branch)) {
                    if keys.get_either(&floor, |key| state.get(key))?.is_some() {
                        state.delete(floor);
                    }
                }
                catalogue.forget_branch(&keys, state, *space, *branch);
            }
        }
        TrimStep::Lanes { space, branch, queue, bucket } => {
            let queue = QueueId { space: *space, branch: *branch, name: queue };
            remove_lanes(&mut contracts.applying(state, call, pushes), queue, *bucket)?;
        }
        TrimStep::FillIndexes { space, record_type } => {
            if fill(&mut contracts.applying(state, call, pushes), *space, *record_type)? {
                contracts.catalogue.finish_filling(&contracts.keys, state, *space, *record_type);
            }
        }
    }
    Ok(())
}

fn trim_one(applying: &mut Applying<'_>, cell: &ThingId<'_>) -> Result<(), Halt> {
    let Ok(space) = applying.catalogue.space(cell.space) else {
        return Ok(());
    };
    if space.live_branch(cell.branch).is_err() {
        return remove_some(applying.state, applying.keys, cell);
    }
    let context = applying.cell_context(space);
    trim_cell(&mut applying.cells(), &context, cell)?;
    Ok(())
}

/// Forgets a record that is deleted.
fn forget_record(applying: &mut Applying<'_>, record: &ThingId<'_>) -> Result<(), Halt> {
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
fn remove_lanes(applying: &mut Applying<'_>, queue: QueueId<'_>, bucket: u16) -> Result<(), Halt> {
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

/// Removes old versions of a cell whose branch was deleted, and the cell itself when none is left.
fn remove_some(state: &mut Staging, keys: Keys, cell: &ThingId<'_>) -> Result<(), Halt> {
    let head_key = keys.cell_head(cell);
    let Some(row) = state.get(&head_key)? else {
        return Ok(());
    };
    let head = Head::decode(&row)?;
    let removed = (head.version - head.oldest).min(REMOVED_ROWS_MAX);
    for version in head.oldest..head.oldest + removed {
        state.delete(keys.cell_old(cell, version));
    }
    if head.oldest + removed == head.version {
        if head.exists() {
            names::set_listed(state, &keys, Kind::CellHead, cell, false);
        }
        state.delete(head_key);
    } else {
        let trimmed = Head { oldest: head.oldest + removed, ..head };
        state.put_encoded(head_key, |writer| trimmed.encode(writer));
    }
    Ok(())
}

/// Removes some records of a deleted branch, with every row that follows from them.
fn erase_records(applying: &mut Applying<'_>, bucket: u16, space: u32, branch: u32) -> Result<(), Halt> {
    if !is_deleted(applying.catalogue, space, branch) {
        return Ok(());
    }
    let range = applying.keys.rows_of_branch(Kind::Record, bucket, space, branch);
    let rows = applying.state.scan(&range, Order::Ascending).take(ERASED_RECORDS_MAX);
    for row in rows.collect::<Result<Vec<_>, _>>()? {
        if is_name_in_group(&row.0) {
            // Names precede the records of groups. A step that skipped them would never reach those.
            applying.state.delete(row.0);
            continue;
        }
        let id = read_record_key(&row.0, space, branch)
            .ok_or_else(|| Halt::Inconsistent("a foreign key among records".into()))?;
        erase(applying, &id.in_bucket(bucket), &Row::decode(&row.1)?)?;
    }
    for kind in RUN_KINDS.into_iter().chain([Kind::Ready]) {
        let range = applying.keys.rows_of_branch(kind, bucket, space, branch);
        let rows = applying.state.scan(&range, Order::Ascending).take(ERASED_RECORDS_MAX);
        for (key, _) in rows.collect::<Result<Vec<_>, _>>()? {
            applying.state.delete(key);
        }
    }
    Ok(())
}

/// All kinds of rows of runs.
const RUN_KINDS: [Kind; 6] = [Kind::Run, Kind::RunEvent, Kind::RunKey, Kind::RunEventId, Kind::RunIndex, Kind::RunStep];

/// The kinds of rows that one step removes together.
fn kinds_of_records() -> impl Iterator<Item = Kind> {
    std::iter::once(Kind::Record).chain(RUN_KINDS).chain([Kind::Ready])
}

/// The rows of the shard that belong to a branch: counts, and the lanes of its queues.
fn shard_rows(keys: &Keys, space: u32, branch: u32) -> [KeyRange; 3] {
    [
        keys.counts_from_queue(space, branch, ALL_QUEUES),
        keys.all_run_counts(space, branch),
        keys.lanes_of_branch(space, branch),
    ]
}

fn remove_shard_rows(state: &mut Staging, keys: Keys, space: u32, branch: u32) -> Result<(), Halt> {
    for range in shard_rows(&keys, space, branch) {
        let rows = state.scan(&range, Order::Ascending).take(ERASED_RECORDS_MAX).collect::<Result<Vec<_>, _>>()?;
        for (key, _) in rows {
            state.delete(key);
        }
    }
    Ok(())
}

fn is_deleted(catalogue: &Catalogue, space: u32, branch: u32) -> bool {
    catalogue.space(space).is_ok_and(|space| space.live_branch(branch).is_err())
}

fn has_rows(state: &Staging, catalogue: &Catalogue, keys: &Keys, space: u32, branch: u32) -> Result<bool, Halt> {
    for bucket in 0..catalogue.buckets.count() {
        for kind in [Kind::CellHead, Kind::CellOld].into_iter().chain(kinds_of_records()) {
            let range = keys.rows_of_branch(kind, bucket, space, branch);
            if state.scan(&range, Order::Ascending).next().transpose()?.is_some() {
                return Ok(true);
            }
        }
    }
    for range in shard_rows(keys, space, branch) {
        if state.scan(&range, Order::Ascending).next().transpose()?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}
