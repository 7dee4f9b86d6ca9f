//! The record of each queue that has been ready longest: shows whether anybody claims.
//!
//! Touches: nothing; it reads a view. A queue whose type orders by a field returns the record that is next, which may
//! be younger than others. Paused records are not ready.

use std::collections::BTreeSet;

use contract::records::types::StateKind;
use kv::{KeyRange, Order, View};
use session::Halt;

use super::counts::decode;
use super::row::decode_numbers;
use crate::catalogue::Catalogue;
use crate::keys::Keys;
use crate::keys::records::{OwnedId, read_counts_key, read_ready_suffix};

/// The record of a queue that has been ready longest.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OldestReady {
    /// The queue.
    pub queue: String,
    /// The record.
    pub record: String,
    /// Its group, or none if it has none.
    pub group: Option<String>,
    /// Its space.
    pub space: String,
    /// Its branch.
    pub branch: String,
    /// Its type.
    pub record_type: String,
    /// Since when it can be claimed, wall time in µs.
    pub ready_us: u64,
}

/// The oldest ready record of each queue of a branch that has one, for at most `queues_max` queues; and how many queues
/// were left out.
pub fn oldest_ready(
    view: &dyn View,
    keys: &Keys,
    catalogue: &Catalogue,
    (space, branch): (u32, u32),
    queues_max: usize,
) -> Result<(Vec<OldestReady>, usize), Halt> {
    let Ok(found) = catalogue.space(space) else {
        return Ok((Vec::new(), 0));
    };
    let branch_name = found.branches().find(|(number, _)| *number == branch).map(|(_, found)| found.name.clone());
    let branch_name = branch_name.unwrap_or_default();
    let mut queues = BTreeSet::new();
    for row in view.scan(&keys.counts_with_prefix(space, branch, ""), Order::Ascending) {
        let (key, row) = row?;
        let (queue, number) =
            read_counts_key(&key).ok_or_else(|| Halt::Inconsistent("a foreign key among counts".into()))?;
        let Some(declared) = found.types.get(number) else {
            continue;
        };
        let mut counts = (0..).zip(decode(&row)?);
        if counts.any(|(state, count)| count > 0 && declared.kind(state) == StateKind::Ready) {
            queues.insert(queue);
        }
    }
    let left_out = queues.len().saturating_sub(queues_max);
    let mut oldest = Vec::new();
    for queue in queues.into_iter().take(queues_max) {
        let Some((ready_us, bucket, id)) = first(view, keys, catalogue, (space, branch), &queue)? else {
            continue;
        };
        let row = view.get(&keys.record(&id.in_bucket(bucket)))?;
        let number = row.map(|row| decode_numbers(&row)).transpose()?.map_or(0, |numbers| numbers.record_type);
        let record_type = found.types.get(number).map(|declared| declared.definition.name.clone());
        oldest.push(OldestReady {
            queue,
            record: id.name,
            group: id.group,
            space: found.name.clone(),
            branch: branch_name.clone(),
            record_type: record_type.unwrap_or_default(),
            ready_us,
        });
    }
    Ok((oldest, left_out))
}

/// Among the first entries of a queue in all buckets, the one that has been ready longest.
fn first(
    view: &dyn View,
    keys: &Keys,
    catalogue: &Catalogue,
    (space, branch): (u32, u32),
    queue: &str,
) -> Result<Option<(u64, u16, OwnedId)>, Halt> {
    let mut oldest: Option<(u64, u16, OwnedId)> = None;
    for bucket in 0..catalogue.buckets.count() {
        let prefix = keys.ready_prefix(bucket, space, branch, queue);
        let Some(row) = view.scan(&KeyRange::prefix(&prefix), Order::Ascending).next() else {
            continue;
        };
        let (key, _) = row?;
        let (ready_us, id) = read_ready_suffix(&key[prefix.len()..], space, branch)
            .ok_or_else(|| Halt::Inconsistent(format!("R5: an entry of the ready index of {queue:?}")))?;
        if oldest.as_ref().is_none_or(|(best_us, ..)| ready_us < *best_us) {
            oldest = Some((ready_us, bucket, id));
        }
    }
    Ok(oldest)
}
