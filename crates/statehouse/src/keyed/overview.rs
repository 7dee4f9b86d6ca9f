//! Keyed state in an overview.

use std::time::Duration;

use contract::guards::OWNER_RECORD;
use contract::{Error, NameInGroup};
use kernel::keyed::list::{MapPage, list};
use kernel::names::InGroup;
use kernel::records::get::ViewRecords;

use super::listing::partition_in;
use crate::counters::Branch;
use crate::house::Statehouse;

/// The number of maps whose owners an overview looks for. Each costs two reads.
pub const PARTITIONS_LOOKED_AT_MAX: usize = 4_096;

/// Maps that are read at once.
const PAGE: usize = 512;

/// An owned partition in which nothing has changed for some time.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SilentPartition {
    /// Its space.
    pub space: String,
    /// Its branch.
    pub branch: String,
    /// The operator.
    pub operator: String,
    /// Its number.
    pub number: u32,
    /// For how long nothing has changed there.
    pub silent_for: Duration,
}

/// The keyed state of all spaces and branches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyedOverview {
    /// The owned partition that was changed longest ago.
    pub silent: Option<SilentPartition>,
    /// The number of maps that were looked at.
    looked_at: usize,
}

impl KeyedOverview {
    pub(crate) fn of(_: &Statehouse) -> Self {
        Self::default()
    }

    /// Adds the partitions of a branch. Returns 1 if there are more than can be looked at.
    pub(crate) fn add(&mut self, branch: &Branch<'_>) -> Result<usize, Error> {
        let Branch { view, keys, catalogue, place, .. } = branch;
        let mut after: Option<NameInGroup> = None;
        loop {
            let limit = PAGE.min(PARTITIONS_LOOKED_AT_MAX - self.looked_at);
            if limit == 0 {
                return Ok(1);
            }
            let page = MapPage { groups: InGroup::Any, prefix: "", after: after.as_ref(), limit };
            // A damaged map must not hide what else there is.
            let Ok(listed) = list(*view, keys, catalogue, *place, &page) else { return Ok(1) };
            self.looked_at += listed.maps.len();
            for (map, summary) in listed.maps {
                let silent_for = branch.since(summary.updated_at);
                let is_longest = self.silent.as_ref().is_none_or(|longest| silent_for > longest.silent_for);
                let Some(group) = map.group.filter(|_| is_longest) else { continue };
                if let Some(number) = partition_in(&map.name, &group)
                    && is_owned(branch, &group)?
                {
                    let (space, branch) = branch.names();
                    self.silent = Some(SilentPartition { space, branch, operator: map.name, number, silent_for });
                }
            }
            match listed.next_after {
                Some(last) => after = Some(last),
                None => return Ok(0),
            }
        }
    }
}

fn is_owned(branch: &Branch<'_>, group: &str) -> Result<bool, Error> {
    let Branch { view, keys, catalogue, place, .. } = branch;
    let owner = catalogue.thing(place.0, place.1, Some(group), OWNER_RECORD)?;
    let read = || ViewRecords::new(*view, *keys, catalogue)?.get(&owner);
    Ok(read().ok().flatten().is_some_and(|record| record.holder.is_some()))
}
