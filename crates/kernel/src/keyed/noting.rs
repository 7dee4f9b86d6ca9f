//! What a checkpoint of changes needs to know beside the keys that have rows: which keys lost theirs.
//!
//! A checkpoint begins with a number, that of the command that begins it. From then on, keys whose rows go are noted under it.
//! When it has ended, what was noted under earlier numbers is not needed any more, and the sweep removes it.
//!
//! Touches: `KeyedGone` rows. Never: changes what readers see. When too much is noted, nothing is any more, and the next
//! checkpoint has to be one of everything.

use contract::KeyedRejection;
use kv::{Bytes, KeyRange};
use session::Halt;

use super::changed_map::ChangedMap;
use super::head::{Content, Noting};
use crate::answer::OpOutcome;
use crate::context::Applying;
use crate::contract::Outcome;
use crate::keys::{Kind, ThingId};

/// Keys that are noted at most.
pub(crate) const NOTED_MAX: u64 = 1_000_000;

/// Begins a checkpoint. Answers its number.
pub(super) fn begin(applying: &mut Applying<'_>, map: &ThingId<'_>) -> Outcome {
    let mut changed = match ChangedMap::existing(applying, map)? {
        Ok(changed) => changed,
        Err(rejection) => return Ok(Err(rejection.into())),
    };
    let (commit, noting) = (applying.call.commit, &mut changed.head.content.noting);
    noting.to = commit;
    if noting.from == 0 {
        noting.from = commit;
    }
    changed.store_unseen(applying);
    Ok(Ok(OpOutcome::Written(commit)))
}

/// Ends a checkpoint: those that follow are about what has changed since.
pub(super) fn end(applying: &mut Applying<'_>, map: &ThingId<'_>, begun: u64) -> Outcome {
    let mut changed = match ChangedMap::existing(applying, map)? {
        Ok(changed) => changed,
        Err(rejection) => return Ok(Err(rejection.into())),
    };
    let noting = &mut changed.head.content.noting;
    if begun <= noting.from {
        return Ok(Ok(OpOutcome::Existing(noting.from)));
    }
    if noting.from == 0 || begun > noting.to {
        let (map, number) = (map.name.to_owned(), begun);
        return Ok(Err(KeyedRejection::NoSuchCheckpoint { map, number }.into()));
    }
    noting.from = begun;
    if noting.count > 0 {
        changed.schedule_sweep(applying);
    }
    changed.store_unseen(applying);
    Ok(Ok(OpOutcome::Written(begun)))
}

/// Notes that a key has lost its row.
pub(super) fn note_gone(
    applying: &mut Applying<'_>,
    map: &ThingId<'_>,
    content: &mut Content,
    key: &[u8],
) -> Result<(), Halt> {
    let noting = &mut content.noting;
    if noting.from == 0 {
        return Ok(());
    }
    if noting.count >= NOTED_MAX {
        *noting = Noting { count: noting.count, ..Noting::default() };
        return Ok(());
    }
    let row = applying.keys.gone_key(map, content.number, noting.to, key);
    if applying.state.get(&row)?.is_none() {
        noting.count += 1;
        applying.state.put(row, Bytes::default());
    }
    Ok(())
}

/// The rows that are not needed any more.
pub(super) fn unneeded(applying: &Applying<'_>, map: &ThingId<'_>, content: &Content) -> Option<KeyRange> {
    let Noting { from, count, .. } = content.noting;
    let mut range = applying.keys.map_rows(Kind::KeyedGone, map, content.number);
    if from > 0 {
        range.end = Some(applying.keys.gone_prefix(map, content.number, from).to_vec());
    }
    (count > 0).then_some(range)
}
