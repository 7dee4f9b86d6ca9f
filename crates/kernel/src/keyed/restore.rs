//! Restoring a map: what it will hold is put aside in steps, and takes the place of what it holds in one.
//!
//! Touches: rows of the content that is being built, and the map's head. Keeps: D4 (it is complete, or nothing changes), and that
//! whoever has looked at a key before must look again. Never:
//! touches what the map holds, before the last step.

use contract::keyed::limits::KEYED_UPDATES_MAX;
use contract::keyed::{InputPosition, LogicalTime, Policy, shown_key};
use contract::{KeyedRejection, Rejection};
use kv::Bytes;
use session::Halt;

use super::changed_map::{ChangedMap, next_content};
use super::entry::{Entry, KeyState, Waiting, decode_position, encode_position};
use super::head::{Building, Content, UNUSED_MAX};
use super::ordered::{WaitingUpdate, accept};
use super::rows::{ContentRow, ContentRows};
use crate::answer::OpOutcome;
use crate::changes::Reason;
use crate::context::Applying;
use crate::contract::Outcome;
use crate::held::Was;
use crate::keys::{Keys, ThingId};

/// How a restored map is as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RestoredMap {
    /// How its updates are applied.
    pub policy: Policy,
    /// The number of its last numbered commit.
    pub last_number: u64,
    /// The version up to which the source has finished.
    pub seal: Option<LogicalTime>,
}

/// How many rows a restored map has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RestoredCounts {
    /// Keys that have a value.
    pub keys: u64,
    /// Deleted keys whose versions are remembered.
    pub deleted: u64,
    /// Updates that wait for the seal.
    pub waiting: u64,
}

/// Begins to put a content aside; one that was begun before is abandoned. Answers its number. A map that does not exist is made.
pub(super) fn begin(applying: &mut Applying<'_>, map: &ThingId<'_>, restored: &RestoredMap) -> Outcome {
    let RestoredMap { policy, last_number, seal } = *restored;
    let mut changed = ChangedMap::open(applying, map)?;
    let made_by = match changed.is_new() {
        true => applying.call.commit,
        false => changed.head.building.map_or(0, |building| building.made_by),
    };
    if let Err(rejection) = abandon_building(applying, &mut changed)? {
        return Ok(Err(rejection));
    }
    if changed.is_new() {
        changed.head.policy = policy;
    }
    let number = next_content(&changed.head)?;
    changed.head.last_content = number;
    let content = Content { number, last_number, seal, ..Content::default() };
    changed.head.building = Some(Building { policy, made_by, content });
    changed.store_unseen(applying);
    Ok(Ok(OpOutcome::Assigned(number)))
}

/// Puts rows aside. The same rows again change nothing.
pub(super) fn put_rows(applying: &mut Applying<'_>, map: &ThingId<'_>, number: u32, rows: &ContentRows<'_>) -> Outcome {
    let count = rows.iter().count();
    if let Err(rejection) = Rejection::check_limit("keyed_updates_max", KEYED_UPDATES_MAX, count) {
        return Ok(Err(rejection));
    }
    let (mut changed, mut building) = match building_of(applying, map, number)? {
        Ok(found) => found,
        Err(rejection) => return Ok(Err(rejection)),
    };
    let mut aside = ChangedMap::aside(map, building.policy, building.content);
    // What waits is applied when the restored map is there, also what the seal has reached.
    let seal = aside.head.content.seal.take();
    for row in rows.iter() {
        if let Err(rejection) = put_row(applying, &mut aside, &row)? {
            return Ok(Err(rejection));
        }
    }
    building.content = Content { seal, ..aside.head.content };
    changed.head.building = Some(building);
    changed.store_unseen(applying);
    Ok(Ok(OpOutcome::Existing(applying.call.commit)))
}

/// Lets what was put aside take the place of what the map holds.
pub(super) fn end(applying: &mut Applying<'_>, map: &ThingId<'_>, number: u32, counts: &RestoredCounts) -> Outcome {
    let (mut changed, Building { policy, content: built, .. }) = match building_of(applying, map, number)? {
        Ok(found) => found,
        Err(rejection) => return Ok(Err(rejection)),
    };
    let found = RestoredCounts { keys: built.keys, deleted: built.deleted, waiting: built.waiting };
    let has_answer = applying.state.get(&applying.keys.keyed_answer(map, number))?.is_some();
    if found != *counts || has_answer != (built.last_number > 0) {
        return Ok(Err(KeyedRejection::RestoreIncomplete { map: map.name.to_owned(), number }.into()));
    }
    let unused = changed.head.unused.len() + 1;
    if let Err(rejection) = Rejection::check_limit("keyed_contents_max", UNUSED_MAX, unused) {
        return Ok(Err(rejection));
    }
    let commit = applying.call.commit;
    let before = changed.head.content.number;
    changed.head.unused.push(before);
    changed.head.building = None;
    changed.head.policy = policy;
    // Every key was changed, those included that are not there.
    changed.head.content = Content { since: commit, forgotten: commit, ..built };
    changed.schedule_sweep(applying);
    changed.store(applying, Reason::Written);
    Ok(Ok(OpOutcome::Written(commit)))
}

/// Gives up what was put aside, and the map if that was made for it and never held anything.
pub(super) fn abandon(applying: &mut Applying<'_>, map: &ThingId<'_>, number: u32) -> Outcome {
    let (mut changed, building) = match building_of(applying, map, number)? {
        Ok(found) => found,
        Err(_) => return Ok(Ok(OpOutcome::Nothing)),
    };
    changed.head.building = Some(building);
    if let Err(rejection) = abandon_building(applying, &mut changed)? {
        return Ok(Err(rejection));
    }
    if building.made_by == changed.head.commit && holds_nothing(&changed.head.content) {
        changed.head.content = Content::default();
        changed.head.deleted = true;
        changed.store(applying, Reason::Deleted);
    } else {
        changed.store_unseen(applying);
    }
    Ok(Ok(OpOutcome::Existing(applying.call.commit)))
}

/// Whether a content has no rows, as far as its numbers tell, and no commit has changed it.
fn holds_nothing(content: &Content) -> bool {
    let Content { keys, deleted, waiting, last_number, seal, .. } = *content;
    (keys, deleted, waiting, last_number, seal) == (0, 0, 0, 0, None)
}

type Found<'map> = Result<(ChangedMap<'map>, Building), Rejection>;

/// The map, without what is being put aside, and that.
fn building_of<'map>(applying: &Applying<'_>, map: &'map ThingId<'map>, number: u32) -> Result<Found<'map>, Halt> {
    let lost = || KeyedRejection::RestoreLost { map: map.name.to_owned(), number };
    let Ok(mut changed) = ChangedMap::existing(applying, map)? else { return Ok(Err(lost().into())) };
    let building = changed.head.building.take().filter(|building| building.content.number == number);
    Ok(building.map_or_else(|| Err(lost().into()), |building| Ok((changed, building))))
}

/// Leaves what is being put aside to the sweep, if there is something.
pub(super) fn abandon_building(
    applying: &mut Applying<'_>,
    changed: &mut ChangedMap<'_>,
) -> Result<Result<(), Rejection>, Halt> {
    let Some(building) = changed.head.building.take() else { return Ok(Ok(())) };
    let unused = changed.head.unused.len() + 1;
    if let Err(rejection) = Rejection::check_limit("keyed_contents_max", UNUSED_MAX, unused) {
        return Ok(Err(rejection));
    }
    changed.head.unused.push(building.content.number);
    changed.schedule_sweep(applying);
    Ok(Ok(()))
}

fn put_row(
    applying: &mut Applying<'_>,
    aside: &mut ChangedMap<'_>,
    row: &ContentRow<'_>,
) -> Result<Result<(), Rejection>, Halt> {
    let (map, number, policy) = (aside.map, aside.head.content.number, aside.head.policy);
    match *row {
        ContentRow::Key(key, row) => {
            let entry = Entry::decode(row)?;
            let is_ordered = policy == Policy::Ordered;
            if is_ordered && matches!(entry.state, KeyState::Deleted(_)) {
                return Ok(Err(wrong_policy(map, key, is_ordered)));
            }
            put_key(applying, aside, key, entry.state)?;
        }
        ContentRow::Waiting(version, key, row) => {
            if policy != Policy::Ordered {
                return Ok(Err(wrong_policy(map, key, false)));
            }
            return Ok(accept(applying, aside, key, version, &WaitingUpdate::decode(row)?)?.map(drop));
        }
        ContentRow::Gone(_) => {}
        ContentRow::Position(input, row) => {
            let key = applying.keys.input_position(map, number, input);
            let was = applying.state.get(&key)?.map(|row| Was::part(row.len()));
            let InputPosition { position, updated_at, .. } = decode_position(row)?;
            let position = InputPosition::new(position, applying.call.commit, updated_at);
            applying.held().put(key, was, false, |writer| encode_position(writer, &position));
        }
        ContentRow::Answer(row) => applying.state.put(applying.keys.keyed_answer(map, number), kv::copied(row)),
    }
    Ok(Ok(()))
}

fn put_key(
    applying: &mut Applying<'_>,
    aside: &mut ChangedMap<'_>,
    key: &[u8],
    state: KeyState<'_>,
) -> Result<(), Halt> {
    let (map, content) = (aside.map, &mut aside.head.content);
    let row_key = Keys::entry_at(&applying.keys.entry_prefix(map, content.number), key);
    // Sent again, or by a key that only updates wait for: those make their entries themselves.
    if matches!(state, KeyState::Nothing(_)) || applying.state.get(&row_key)?.is_some() {
        return Ok(());
    }
    if let KeyState::Deleted(version) = state {
        applying.state.put(applying.keys.deleted_key(map, content.number, version, key), Bytes::default());
        content.deleted += 1;
    } else {
        content.keys += 1;
    }
    let entry = Entry { commit: 0, waiting: Waiting::default(), state };
    applying.held().put(row_key, None, false, |writer| entry.encode(writer));
    Ok(())
}

fn wrong_policy(map: &ThingId<'_>, key: &[u8], is_ordered: bool) -> Rejection {
    KeyedRejection::WrongPolicy { map: map.name.to_owned(), key: shown_key(key), is_ordered }.into()
}
