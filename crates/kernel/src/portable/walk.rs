//! Every thing that a view holds, bucket by bucket.
//!
//! Touches: nothing. Keeps: K3 while it reads: a version missing from a cell's history is an error, never skipped. A thing
//! with a damaged part is left out as a whole; of a cell's history, what is older than the damage is. The damaged ranges
//! are returned.

use std::collections::BTreeSet;

use kv::{KeyRange, KvError, Order, View};
use session::Halt;

use super::Item;
use super::part::Portable;
use super::walking::{Walking, foreign, last_number};
use crate::catalogue::{BranchId, Catalogue, SpaceId};
use crate::contracts::with_contracts;
use crate::keys::Keys;
use crate::keys::due::{Due, DueClock, DueOf, read_due_suffix};
use crate::keys::messages::{read_dead_letter_key, read_received_key};
use crate::keys::sessions::{Owned, read_hosted_key, read_owned_suffix};
use crate::keys::things::OwnedId;
use crate::outbox::dead_letters::DeadLetter;
use crate::outbox::{MessageState, Stored, numbers};

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
    for number in catalogue.buckets_here() {
        bucket(&mut walk, number)?;
    }
    for number in catalogue.buckets_here() {
        members(&mut walk, number)?;
    }
    Ok(walk.damaged.into_iter().collect())
}

fn bucket<E: From<Halt>>(walk: &mut Walking<'_, E>, bucket: u16) -> Result<(), E> {
    (walk.take)(&Item::Bucket(bucket))?;
    outside_branches(walk, bucket)?;
    let (catalogue, only) = (walk.catalogue, walk.only);
    for (space, found) in catalogue.spaces_of_users().filter(|(space, _)| only.is_none_or(|only| only == *space)) {
        for (branch, _) in found.branches().filter(|(_, branch)| !branch.deleted) {
            things(walk, bucket, space, branch)?;
        }
    }
    let mut highest = 0;
    due(walk, bucket, &mut highest)?;
    released(walk, bucket, MessageState::Publish, &mut highest)?;
    released(walk, bucket, MessageState::Outgoing, &mut highest)?;
    dead_letters(walk, bucket, &mut highest)?;
    message_numbers(walk, bucket, highest)?;
    received(walk, bucket)?;
    machine_states(walk, bucket)
}

macro_rules! walks {
    ($($folder:ident: $contract:ident { $kind:ident, $act:ident, $guard:ident, $item:ident, $trim:ident })*) => {
        /// What the contracts have of a bucket that is in no branch.
        fn outside_branches<E: From<Halt>>(walk: &mut Walking<'_, E>, bucket: u16) -> Result<(), E> {
            $(crate::$folder::contract::$contract::walk_bucket(walk, bucket)?;)*
            Ok(())
        }

        /// What is due on things that no thing mentions.
        fn due_things<E: From<Halt>>(
            walk: &mut Walking<'_, E>,
            of: DueOf,
            id: &OwnedId,
            at_us: u64,
        ) -> Result<(), E> {
            $(crate::$folder::contract::$contract::walk_due(walk, of, id, at_us)?;)*
            Ok(())
        }

        /// The things of every contract.
        fn things<E: From<Halt>>(
            walk: &mut Walking<'_, E>,
            bucket: u16,
            space: SpaceId,
            branch: BranchId,
        ) -> Result<(), E> {
            $(crate::$folder::contract::$contract::walk(walk, bucket, space, branch)?;)*
            Ok(())
        }
    };
}

with_contracts!(walks);

/// Scheduled work that no thing mentions. Raises `highest` to the numbers of the messages in it.
fn due<E: From<Halt>>(walk: &mut Walking<'_, E>, bucket: u16, highest: &mut u64) -> Result<(), E> {
    let prefix = walk.keys.due_prefix(DueClock::Wall, bucket);
    walk.rows(&KeyRange::prefix(&prefix), |walk, key, row| {
        let (at_us, due) = read_due_suffix(&key[prefix.len()..]).ok_or_else(|| foreign("what is due"))?;
        match due {
            Due::Send { number } => message(walk, MessageState::Due(at_us), number, row, highest),
            Due::Thing(of, id) if walk.is_live(&id) => due_things(walk, of, &id, at_us),
            Due::Thing(..) | Due::Session(_) | Due::DeadLetter { .. } => Ok(()),
        }
    })
}

/// Messages that wait to be published, or for other shards.
fn released<E: From<Halt>>(
    walk: &mut Walking<'_, E>,
    bucket: u16,
    state: MessageState,
    highest: &mut u64,
) -> Result<(), E> {
    let prefix = match state {
        MessageState::Outgoing => walk.keys.outgoing_prefix(bucket),
        _ => walk.keys.publish_prefix(bucket),
    };
    walk.rows(&KeyRange::prefix(&prefix), |walk, key, row| {
        let number = last_number(key).filter(|_| key.len() == prefix.len() + 8).ok_or_else(|| foreign("messages"))?;
        message(walk, state, number, row, highest)
    })
}

/// Messages that groups of a bucket refused.
fn dead_letters<E: From<Halt>>(walk: &mut Walking<'_, E>, bucket: u16, highest: &mut u64) -> Result<(), E> {
    walk.rows(&KeyRange::prefix(&walk.keys.dead_letter_prefix(bucket)), |walk, key, row| {
        let (_, number) = read_dead_letter_key(key).ok_or_else(|| foreign("dead letters"))?;
        let letter = DeadLetter::decode(row)?;
        if !walk.includes(letter.space) || !walk.includes(letter.message.space) {
            return Ok(());
        }
        let space = walk.catalogue.space(letter.space);
        if !space.is_ok_and(|space| space.live_branch(letter.branch).is_ok()) {
            return Ok(());
        }
        *highest = number.max(*highest);
        (walk.take)(&Item::DeadLetter { number, letter })
    })
}

/// What a bucket has received, from its rows or, if those are damaged, from their copies.
fn received<E: From<Halt>>(walk: &mut Walking<'_, E>, bucket: u16) -> Result<(), E> {
    let range = walk.keys.received_of_bucket(bucket);
    let mut sources = Vec::new();
    for row in walk.view.scan(&range, Order::Ascending) {
        match row {
            Ok((key, _)) => sources.push(read_received_key(&key).ok_or_else(|| foreign("received messages"))?.1),
            Err(KvError::Damaged(_)) => {
                sources = (0..walk.catalogue.buckets.count()).collect();
                break;
            }
            Err(other) => return Err(Halt::from(other).into()),
        }
    }
    for source in sources {
        if let Some(row) = walk.floor(&walk.keys.received(bucket, source))? {
            (walk.take)(&Item::Received { bucket, source, last: numbers::decode(&row)? })?;
        }
    }
    Ok(())
}

/// The last number of a bucket, unless its messages show it.
fn message_numbers<E: From<Halt>>(walk: &mut Walking<'_, E>, bucket: u16, highest: u64) -> Result<(), E> {
    let row = walk.floor(&walk.keys.message_numbers(bucket))?;
    match row.map_or(Ok(0), |row| numbers::decode(&row))? {
        last if last > highest => (walk.take)(&Item::MessageNumbers { bucket, last }),
        _ => Ok(()),
    }
}

fn message<E: From<Halt>>(
    walk: &mut Walking<'_, E>,
    state: MessageState,
    number: u64,
    row: &[u8],
    highest: &mut u64,
) -> Result<(), E> {
    let message = Stored::decode(row)?;
    if !walk.includes(message.space) {
        return Ok(());
    }
    *highest = number.max(*highest);
    (walk.take)(&Item::Message { state, number, message })
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

fn members<E: From<Halt>>(walk: &mut Walking<'_, E>, bucket: u16) -> Result<(), E> {
    let prefix = walk.keys.owned_of_bucket(bucket);
    walk.rows(&KeyRange::prefix(&prefix), |walk, key, _| {
        let (session, suffix) = key[prefix.len()..].split_first_chunk().ok_or_else(|| foreign("what is owned"))?;
        match read_owned_suffix(suffix).ok_or_else(|| foreign("what is owned"))? {
            Owned::Member { space, machine, group } if walk.includes(space) => {
                let session = u64::from_be_bytes(*session);
                (walk.take)(&Item::MachineMember { session, space, machine, group: &group })
            }
            _ => Ok(()),
        }
    })
}
