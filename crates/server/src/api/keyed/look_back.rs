//! When the partitions of a store had their last checkpoints, from the place where those lie: a server that was started just now has
//! taken none.
//!
//! Touches: the store and the place, reading only. Keeps: at most [`LOOKED_AT_MAX`] partitions are looked at. Never: delays a request.

use std::time::{Duration, SystemTime};

use contract::limits::PAGE_ROWS_MAX;
use statehouse::keyed::{CheckpointChoice, CheckpointError, Checkpoints, Partition};
use statehouse::{Space, Statehouse};

use super::server_checkpoints::PartitionName;

/// The number of partitions whose checkpoints are looked for; each takes a few requests to the place.
const LOOKED_AT_MAX: usize = 10_000;

/// Tells of each partition that has a checkpoint when it had the last one.
pub(super) fn look_back(
    house: &Statehouse,
    place: &Checkpoints,
    mut tell: impl FnMut(PartitionName, SystemTime),
) -> Result<(), CheckpointError> {
    let mut left = LOOKED_AT_MAX;
    for space in house.spaces()? {
        let space = house.space(&space);
        for branch in space.branches()? {
            let branch = space.branch(&branch);
            each_partition(&branch, |operator, partition| {
                // A store that is closed should not be held open by this.
                house.limits()?;
                if left == 0 {
                    return Ok(false);
                }
                left -= 1;
                if let Some(at) = last_of(&partition, place)? {
                    tell(PartitionName::new(&branch, operator, partition.number()), at);
                }
                Ok(true)
            })?;
        }
    }
    Ok(())
}

/// Calls `look` with the partitions of all operators, until it returns false.
fn each_partition(
    branch: &Space,
    mut look: impl FnMut(&str, Partition) -> Result<bool, CheckpointError>,
) -> Result<(), CheckpointError> {
    let mut after_operator = None;
    loop {
        let listed = branch.operators("", after_operator.as_ref(), PAGE_ROWS_MAX)?;
        for name in &listed.operators {
            let operator = branch.keyed(name.as_str());
            let mut after = None;
            loop {
                let found = operator.partitions(after.as_deref(), PAGE_ROWS_MAX)?;
                for (number, _) in &found.partitions {
                    if !look(name, operator.partition(*number))? {
                        return Ok(());
                    }
                }
                after = found.next_after;
                if after.is_none() {
                    break;
                }
            }
        }
        after_operator = listed.next_after;
        if after_operator.is_none() {
            return Ok(());
        }
    }
}

/// When it was committed, alone or with others.
fn last_of(partition: &Partition, place: &Checkpoints) -> Result<Option<SystemTime>, CheckpointError> {
    let mut last = None;
    for choice in [CheckpointChoice::latest(), CheckpointChoice::latest().together()] {
        let listed = partition.list_checkpoints(place, &choice, None, 1)?;
        last = last.max(listed.checkpoints.first().map(|info| info.made_us));
    }
    Ok(last.map(|made_us| SystemTime::UNIX_EPOCH + Duration::from_micros(made_us)))
}
