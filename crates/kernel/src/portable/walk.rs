//! Every thing that a view holds, bucket by bucket.
//!
//! Touches: nothing. Keeps: K3 while it reads: a version missing from a cell's history is an error, never skipped. A thing
//! with a damaged part is left out as a whole; of a cell's history, what is older than the damage is. The damaged ranges
//! are returned.

use std::collections::BTreeSet;

use kv::{KeyRange, View};
use session::Halt;

use super::Item;
use super::part::Portable;
use super::walking::{Walking, foreign};
use crate::catalogue::{BranchId, Catalogue, SpaceId};
use crate::contracts::with_contracts;
use crate::keys::Keys;
use crate::keys::due::{Due, DueClock, DueOf, read_due_suffix};
use crate::keys::messages::read_publish_key;
use crate::keys::sessions::{Owned, read_hosted_key, read_owned_suffix};
use crate::outbox::Stored;
use crate::records::write::decode_floor;
use crate::runs::item::RunItem;
use crate::{cells, records, runs};

/// Passes every thing of a view, or of one space, to `take`. Deleted branches are left out. Returns the damaged ranges
/// that it met: things in them are missing.
pub fn walk<E: From<Halt>>(
    view: &dyn View,
    keys: &Keys,
    catalogue: &Catalogue,
    space: Option<SpaceId>,
    take: &mut dyn FnMut(&Item<'_>) -> Result<(), E>,
) -> Result<Vec<KeyRange>, E> {
    let mut walk = Walking { view, keys, catalogue, only: space, take, damaged: BTreeSet::new() };
    for number in 0..catalogue.buckets.count() {
        bucket(&mut walk, number)?;
    }
    members(&mut walk)?;
    Ok(walk.damaged.into_iter().collect())
}

fn bucket<E: From<Halt>>(walk: &mut Walking<'_, E>, bucket: u16) -> Result<(), E> {
    let floor = walk.floor(&walk.keys.record_floor(bucket))?;
    let floor = floor.map(|row| decode_floor(&row)).transpose()?.unwrap_or_default();
    let (version, attempt, commit) = (floor.version, floor.attempt, floor.commit);
    (walk.take)(&Item::Bucket { bucket, version, attempt, commit })?;
    let (catalogue, only) = (walk.catalogue, walk.only);
    for (space, found) in catalogue.spaces().filter(|(space, _)| only.is_none_or(|only| only == *space)) {
        for (branch, _) in found.branches().filter(|(_, branch)| !branch.deleted) {
            things(walk, bucket, space, branch)?;
        }
    }
    due(walk, bucket)?;
    published(walk, bucket)?;
    machine_states(walk, bucket)
}

macro_rules! walks {
    ($($folder:ident: $contract:ident { $kind:ident, $act:ident, $guard:ident })*) => {
        /// The things of every contract.
        fn things<E: From<Halt>>(
            walk: &mut Walking<'_, E>,
            bucket: u16,
            space: SpaceId,
            branch: BranchId,
        ) -> Result<(), E> {
            $($folder::contract::$contract::walk(walk, bucket, space, branch)?;)*
            Ok(())
        }
    };
}

with_contracts!(walks);

/// Scheduled things that no record mentions.
fn due<E: From<Halt>>(walk: &mut Walking<'_, E>, bucket: u16) -> Result<(), E> {
    let prefix = walk.keys.due_prefix(DueClock::Wall, bucket);
    walk.rows(&KeyRange::prefix(&prefix), |walk, key, row| {
        let (at_us, due) = read_due_suffix(&key[prefix.len()..]).ok_or_else(|| foreign("what is due"))?;
        match due {
            Due::Send { commit, ordinal } => message(walk, Some(at_us), commit, ordinal, row),
            Due::Thing(DueOf::Run, run) if walk.is_live(&run) => {
                (walk.take)(&Item::Run(RunItem::Removal { run: &run, at_us }))
            }
            _ => Ok(()),
        }
    })
}

fn published<E: From<Halt>>(walk: &mut Walking<'_, E>, bucket: u16) -> Result<(), E> {
    walk.rows(&KeyRange::prefix(&walk.keys.publish_prefix(bucket)), |walk, key, row| {
        let (_, commit, ordinal) = read_publish_key(key).ok_or_else(|| foreign("messages"))?;
        message(walk, None, commit, ordinal, row)
    })
}

fn message<E: From<Halt>>(
    walk: &mut Walking<'_, E>,
    due_us: Option<u64>,
    commit: u64,
    ordinal: u32,
    row: &[u8],
) -> Result<(), E> {
    let message = Stored::decode(row)?;
    if !walk.includes(message.space) {
        return Ok(());
    }
    (walk.take)(&Item::Message { due_us, commit, ordinal, message })
}

fn machine_states<E: From<Halt>>(walk: &mut Walking<'_, E>, bucket: u16) -> Result<(), E> {
    walk.rows(&walk.keys.hosted_of_bucket(bucket), |walk, key, value| {
        let (space, machine, group, key) = read_hosted_key(key).ok_or_else(|| foreign("machines"))?;
        if !walk.includes(space) {
            return Ok(());
        }
        (walk.take)(&Item::MachineState { space, machine, group: &group, key, value })
    })
}

fn members<E: From<Halt>>(walk: &mut Walking<'_, E>) -> Result<(), E> {
    let prefix = walk.keys.all_owned();
    walk.rows(&KeyRange::prefix(&prefix), |walk, key, _| {
        let (session, suffix) = key[prefix.len()..].split_first_chunk().ok_or_else(|| foreign("what is owned"))?;
        let (_, owned) = read_owned_suffix(suffix).ok_or_else(|| foreign("what is owned"))?;
        match owned {
            Owned::Member { space, machine, group } if walk.includes(space) => {
                let session = u64::from_be_bytes(*session);
                (walk.take)(&Item::MachineMember { session, space, machine, group: &group })
            }
            _ => Ok(()),
        }
    })
}
