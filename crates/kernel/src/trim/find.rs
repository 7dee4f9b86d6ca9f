//! What the walk finds in a view: the steps that are due, a bounded number at a time. Changes nothing.

use kv::{Bytes, KeyRange, Order, View};
use session::Halt;

use super::TRIM_STEPS_MAX;
use super::branch::buckets_to_erase;
use crate::catalogue::Catalogue;
use crate::cells::retention::may_be_due;
use crate::cells::row::Head;
use crate::command::trim_step::TrimStep;
use crate::keys::due::{Due, DueClock, DueOf, read_due_suffix};
use crate::keys::names::is_name_in_group;
use crate::keys::queues::{QueueId, read_lanes_key};
use crate::keys::things::OwnedId;
use crate::keys::{CellKey, Keys};
use crate::records::counts::count_ready;
use crate::records::erase::LANES_LOOKED_AT_MAX;
use crate::records::lanes::Lanes;
use crate::records::row::decode_numbers;

/// Examines up to `heads_max` cells and queues after the key `cursor` for due history and empty lanes, without changing
/// anything. With `forgets`, also for what is deleted: it goes before its time. Returns steps, and the key to continue
/// after; none when everything was examined.
pub fn find_due(
    view: &dyn View,
    catalogue: &Catalogue,
    keys: &Keys,
    now_us: u64,
    cursor: Option<&[u8]>,
    heads_max: usize,
    forgets: bool,
) -> Result<(Vec<TrimStep>, Option<Vec<u8>>), Halt> {
    let mut steps = Vec::new();
    let mut looked_at = 0;
    for bucket in 0..catalogue.buckets.count() {
        let mut range: KeyRange = keys.cell_heads_of_bucket(bucket);
        if let Some(cursor) = cursor {
            range = range.after(cursor);
        }
        for row in view.scan(&range, Order::Ascending) {
            let (key, row) = row?;
            looked_at += 1;
            if is_name_in_group(&key) {
                if looked_at == heads_max {
                    return Ok((steps, Some(key.to_vec())));
                }
                continue;
            }
            let cell = CellKey::decode(&key).ok_or_else(|| Halt::Inconsistent("a foreign key among cells".into()))?;
            let head = Head::decode(&row)?;
            if forgets && !head.exists() {
                steps.push(TrimStep::ForgetCell(cell));
            } else if is_due(catalogue, &cell, &head, now_us) {
                steps.push(TrimStep::Cell(cell));
            }
            if looked_at == heads_max || steps.len() == TRIM_STEPS_MAX {
                return Ok((steps, Some(key.to_vec())));
            }
        }
        // A deleted record is in the index of what is due, until it is forgotten.
        let due_prefix = keys.due_prefix(DueClock::Wall, bucket);
        let mut range = KeyRange::prefix(&due_prefix);
        if let Some(cursor) = cursor {
            range = range.after(cursor);
        }
        for row in view.scan(&range, Order::Ascending).take_while(|_| forgets) {
            let (key, _) = row?;
            looked_at += 1;
            steps.extend(deleted_record(view, keys, bucket, &key[due_prefix.len()..])?.map(TrimStep::ForgetRecord));
            if looked_at >= heads_max || steps.len() == TRIM_STEPS_MAX {
                return Ok((steps, Some(key.to_vec())));
            }
        }
    }
    let mut range = keys.all_lanes();
    if let Some(cursor) = cursor {
        range = range.after(cursor);
    }
    for row in view.scan(&range, Order::Ascending) {
        let (key, row) = row?;
        looked_at += 1;
        steps.extend(empty_lanes(view, catalogue, keys, &key, row)?);
        if looked_at >= heads_max || steps.len() >= TRIM_STEPS_MAX {
            steps.truncate(TRIM_STEPS_MAX);
            return Ok((steps, Some(key.to_vec())));
        }
    }
    for (space, found) in catalogue.spaces() {
        let deleted = || found.branches().filter(|(_, branch)| branch.deleted);
        for (branch, _) in deleted() {
            let buckets = buckets_to_erase(view, keys, catalogue, space, branch)?;
            steps.extend(buckets.into_iter().map(|bucket| TrimStep::Records { bucket, space, branch }));
        }
        steps.extend(deleted().map(|(branch, _)| TrimStep::Branch { space, branch }));
    }
    if !forgets {
        // Filling takes space.
        steps.extend(unfilled(catalogue));
    }
    steps.truncate(TRIM_STEPS_MAX);
    Ok((steps, None))
}

/// Steps for the types whose indexes are being filled.
pub fn unfilled(catalogue: &Catalogue) -> impl Iterator<Item = TrimStep> {
    catalogue.spaces().flat_map(|(space, found)| {
        let filling = found.types.iter().filter(|declared| declared.is_filling());
        filling.map(move |declared| TrimStep::FillIndexes { space, record_type: declared.id })
    })
}

/// The record of an entry of a due index, if it is deleted.
fn deleted_record(view: &dyn View, keys: &Keys, bucket: u16, suffix: &[u8]) -> Result<Option<CellKey>, Halt> {
    let Some((_, Due::Thing(DueOf::Expiry, id))) = read_due_suffix(suffix) else {
        return Ok(None);
    };
    let row = view.get(&keys.record(&id.in_bucket(bucket)))?;
    let is_deleted = row.map_or(Ok(false), |row| decode_numbers(&row).map(|numbers| numbers.deleted))?;
    let OwnedId { space, branch, group, name } = id;
    Ok(is_deleted.then_some(CellKey { bucket, space, branch, group, name }))
}

/// Steps for the lanes of a queue, if nothing in it is ready.
fn empty_lanes(
    view: &dyn View,
    catalogue: &Catalogue,
    keys: &Keys,
    key: &[u8],
    row: Bytes,
) -> Result<Vec<TrimStep>, Halt> {
    let (space, branch, name) =
        read_lanes_key(key).ok_or_else(|| Halt::Inconsistent("a foreign key among lanes".into()))?;
    let is_live = catalogue.space(space).is_ok_and(|found| found.live_branch(branch).is_ok());
    if !is_live || count_ready(view, keys, catalogue, QueueId { space, branch, name: &name })? > 0 {
        return Ok(Vec::new());
    }
    let lanes = Lanes::decode(Some(row))?;
    let firsts = lanes.iter().step_by(LANES_LOOKED_AT_MAX).map(|(bucket, _)| bucket);
    Ok(firsts.map(|bucket| TrimStep::Lanes { space, branch, queue: name.clone(), bucket }).collect())
}

fn is_due(catalogue: &Catalogue, cell: &CellKey, head: &Head<'_>, now_us: u64) -> bool {
    match catalogue.space(cell.space) {
        Err(_) => false,
        Ok(space) => space.live_branch(cell.branch).is_err() || may_be_due(head, space.retention, now_us),
    }
}
