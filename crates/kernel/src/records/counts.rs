//! The number of records of a queue in each state, maintained as they change, so that nothing has to be counted.
//!
//! Touches: the `Counts` rows of the shard, one for each queue and type: its number in each state, with those of all
//! queues below it.

use contract::Rejection;
use contract::records::Counts;
use contract::records::types::StateKind;
use kv::{Key, Order, View};
use session::Halt;

use super::contract::Records;
use super::queue::{above, queue_of};
use super::row::decode_numbers;
use crate::catalogue::Catalogue;
use crate::catalogue::types::{Declared, OWNER_ID};
use crate::counts::{CountKey, Counting, decode};
use crate::keys::queues::QueueId;
use crate::keys::records::read_counts_key;
use crate::keys::{Keys, Kind};
use crate::names::{InGroup, Listing, Things};

impl Counting for Records {
    fn count_row(keys: &Keys, count: &CountKey) -> Option<Key> {
        Some(keys.counts(count.space, count.branch, &count.queue, count.record_type))
    }

    fn counted_above(queue: &str) -> Option<&str> {
        above(queue)
    }
}

/// The number of records of each type and state, of a queue and all queues below it.
pub fn count_states(view: &dyn View, keys: &Keys, catalogue: &Catalogue, queue: QueueId<'_>) -> Result<Counts, Halt> {
    let mut counts = Counts::default();
    for_each_count(view, keys, catalogue, queue, |declared, state, count| {
        let place = (declared.definition.name.clone(), declared.state_name(state).to_owned());
        *counts.by_state.entry(place).or_default() += count;
    })?;
    Ok(counts)
}

/// How many records of a queue and of all queues below it are in a ready state, pausing or not.
pub fn count_ready(view: &dyn View, keys: &Keys, catalogue: &Catalogue, queue: QueueId<'_>) -> Result<u64, Halt> {
    let mut ready = 0;
    for_each_count(view, keys, catalogue, queue, |declared, state, count| {
        ready += if declared.kind(state) == StateKind::Ready { count } else { 0 };
    })?;
    Ok(ready)
}

/// Visits every type and state in which a queue and the queues below it have records.
fn for_each_count(
    view: &dyn View,
    keys: &Keys,
    catalogue: &Catalogue,
    queue: QueueId<'_>,
    mut visit: impl FnMut(&Declared, u8, u64),
) -> Result<(), Halt> {
    let QueueId { space, branch, name } = queue;
    let Ok(found) = catalogue.space(space) else {
        return Ok(());
    };
    for row in view.scan(&keys.counts_of_queue(space, branch, name), Order::Ascending) {
        let (key, row) = row?;
        let read = read_counts_key(&key).ok_or_else(|| Halt::Inconsistent("a foreign key among counts".into()))?;
        let Some(declared) = found.types.get(read.1) else {
            continue;
        };
        for (state, count) in (0..).zip(decode(&row)?).filter(|(_, count)| *count > 0) {
            visit(declared, state, count);
        }
    }
    Ok(())
}

/// The same for a group. Its records are counted one by one, so a group of more than `rows_max` is refused.
pub fn count_group(
    view: &dyn View,
    keys: &Keys,
    catalogue: &Catalogue,
    (space, branch): (u32, u32),
    group: &str,
    prefix: &str,
    rows_max: usize,
) -> Result<Result<Counts, Rejection>, Halt> {
    let mut counts = Counts::default();
    let found = match catalogue.space(space) {
        Ok(found) => found,
        Err(rejection) => return Ok(Err(rejection)),
    };
    let groups = InGroup::Named(group);
    let listing = Listing { kind: Kind::Record, space, branch, groups, prefix, after: None };
    let mut things = Things::new(view, *keys, catalogue, &listing)?;
    let mut looked_at = 0;
    while let Some(thing) = things.next()? {
        looked_at += 1;
        if let Err(rejection) = Rejection::check_limit("scan_rows_max", rows_max, looked_at) {
            return Ok(Err(rejection));
        }
        let Some(numbers) = thing.row.as_deref().map(decode_numbers).transpose()? else {
            continue;
        };
        // Owners are not counted anywhere.
        let is_counted = !numbers.deleted && numbers.record_type != OWNER_ID;
        let declared = found.types.get(numbers.record_type).filter(|_| is_counted);
        if let Some(declared) = declared.filter(|_| queue_of(&thing.id.name).starts_with(prefix)) {
            let place = (declared.definition.name.clone(), declared.state_name(numbers.state).to_owned());
            *counts.by_state.entry(place).or_default() += 1;
        }
    }
    Ok(Ok(counts))
}
