//! Keyed state as one of the contracts.

use contract::keyed::Policy;
use contract::{KeyedRejection, RefusalReason, Rejection};
use session::{CommandDigest, Halt};

use super::changed_map::{ChangedMap, read_head};
use super::command::{KeyedAct, KeyedGuard};
use super::commit::{answered, commit, keep_answer, raise_seal};
use super::head::{Content, MapHead, UNUSED_MAX};
use super::sweep::sweep;
use super::trim::KeyedTrim;
use super::update::update;
use super::{guard, noting, restore, updates::Updates};
use crate::LEVEL_OF_KEYED;
use crate::answer::OpOutcome;
use crate::catalogue::FilledType;
use crate::changes::Reason;
use crate::context::Applying;
use crate::contract::{Contract, DueWork, Outcome};
use crate::counts::Counting;
use crate::keys::due::DueOf;
use crate::keys::{Kind, ThingId};
use crate::transact::scope::Scope;

/// Keyed state.
pub(crate) struct Keyed;

impl Contract for Keyed {
    type Act<'bytes> = KeyedAct<'bytes>;
    type Guard<'bytes> = KeyedGuard<'bytes>;
    type Rejection = KeyedRejection;
    type Trim = KeyedTrim;

    const NUMBER: u8 = 4;

    const HELD: &'static [Kind] = &[Kind::KeyedMap, Kind::KeyedEntry, Kind::KeyedPosition, Kind::KeyedWaiting];

    const ROWS: &'static [Kind] = &[
        Kind::KeyedMap,
        Kind::KeyedEntry,
        Kind::KeyedPosition,
        Kind::KeyedDeleted,
        Kind::KeyedGone,
        Kind::KeyedAnswer,
        Kind::KeyedWaiting,
    ];

    const DUE: &'static [DueOf] = &[DueOf::Sweep];

    fn exists(row: &[u8]) -> Result<bool, Halt> {
        Ok(!MapHead::decode(row)?.deleted)
    }

    fn is_there(applying: &Applying<'_>, map: &ThingId<'_>) -> Result<bool, Halt> {
        Ok(read_head(applying, map)?.is_some_and(|head| !head.deleted))
    }

    fn act(applying: &mut Applying<'_>, _: &Scope<'_>, map: &ThingId<'_>, act: &KeyedAct<'_>) -> Outcome {
        if applying.catalogue.level < LEVEL_OF_KEYED {
            let what = format!("map {:?}", map.name);
            return Ok(Err(Rejection::InvalidDeclaration { what, reason: RefusalReason::OlderLevel }));
        }
        match act {
            KeyedAct::Update(updates) => update_alone(applying, map, updates),
            KeyedAct::Commit(one) => commit(applying, map, one),
            KeyedAct::Seal(version) => {
                let mut changed = ChangedMap::open(applying, map)?;
                if raise_seal(applying, &mut changed, *version)? {
                    changed.store(applying, Reason::Written);
                    return Ok(Ok(OpOutcome::Written(applying.call.commit)));
                }
                Ok(Ok(OpOutcome::Existing(changed.head.commit)))
            }
            KeyedAct::Create(policy) => create(applying, map, *policy),
            KeyedAct::Delete => delete(applying, map),
            KeyedAct::BeginRestore(restored) => restore::begin(applying, map, restored),
            KeyedAct::RestoreRows(number, rows) => restore::put_rows(applying, map, *number, rows),
            KeyedAct::EndRestore(number, counts) => restore::end(applying, map, *number, counts),
            KeyedAct::AbandonRestore(number) => restore::abandon(applying, map, *number),
            KeyedAct::BeginCheckpoint => noting::begin(applying, map),
            KeyedAct::EndCheckpoint(begun) => noting::end(applying, map, *begun),
        }
    }

    fn number_of(act: &KeyedAct<'_>) -> Option<u64> {
        match act {
            KeyedAct::Commit(commit) => Some(commit.number),
            _ => None,
        }
    }

    fn answered(
        applying: &Applying<'_>,
        map: &ThingId<'_>,
        number: u64,
        digest: &CommandDigest,
    ) -> Result<Result<Option<Vec<u8>>, Rejection>, Halt> {
        answered(applying, map, number, digest)
    }

    fn keep_answer(
        applying: &mut Applying<'_>,
        map: &ThingId<'_>,
        number: u64,
        digest: &CommandDigest,
        answer: &[u8],
    ) -> Result<(), Halt> {
        keep_answer(applying, map, number, digest, answer)
    }

    fn check(
        applying: &Applying<'_>,
        scope: &Scope<'_>,
        guard: &KeyedGuard<'_>,
        looked_at: &mut usize,
    ) -> Result<Result<(), Rejection>, Halt> {
        guard::check(applying, scope, guard, looked_at)
    }

    fn when_due(applying: &mut Applying<'_>, work: &DueWork<'_>) -> Result<u32, Halt> {
        sweep(applying, work)
    }

    fn conflict(_: &Applying<'_>, _: &Scope<'_>, rejection: &KeyedRejection) -> Result<Option<String>, Halt> {
        // Maps have no type.
        let is_conflict =
            matches!(rejection, KeyedRejection::Conflict { .. } | KeyedRejection::PositionConflict { .. });
        Ok(is_conflict.then(String::new))
    }

    fn trim(_: &mut Applying<'_>, step: &KeyedTrim) -> Result<Option<FilledType>, Halt> {
        match *step {}
    }
}

/// Maps are not counted.
impl Counting for Keyed {}

/// Updates keys in no numbered commit. If none was changed, neither is the map.
fn update_alone(applying: &mut Applying<'_>, map: &ThingId<'_>, updates: &Updates<'_>) -> Outcome {
    let mut changed = ChangedMap::open(applying, map)?;
    Ok(match update(applying, &mut changed, updates, false)? {
        Ok(updated) => {
            if updated.applied() > 0 {
                changed.store(applying, Reason::Written);
            }
            Ok(OpOutcome::Updated(updated))
        }
        Err(rejection) => Err(rejection),
    })
}

/// Creates a map, unless it exists with this policy.
fn create(applying: &mut Applying<'_>, map: &ThingId<'_>, policy: Policy) -> Outcome {
    if let Ok(existing) = ChangedMap::existing(applying, map)? {
        let MapHead { policy: known, commit, .. } = existing.head;
        return Ok(match known == policy {
            true => Ok(OpOutcome::Existing(commit)),
            false => {
                let (map, is_ordered) = (map.name.to_owned(), known == Policy::Ordered);
                Err(KeyedRejection::OtherPolicy { map, is_ordered }.into())
            }
        });
    }
    let mut changed = ChangedMap::open(applying, map)?;
    changed.head.policy = policy;
    changed.store(applying, Reason::Written);
    Ok(Ok(OpOutcome::Written(applying.call.commit)))
}

/// Deletes a map in one step; its rows are removed later.
fn delete(applying: &mut Applying<'_>, map: &ThingId<'_>) -> Outcome {
    let Ok(mut changed) = ChangedMap::existing(applying, map)? else { return Ok(Ok(OpOutcome::Nothing)) };
    if let Err(rejection) = restore::abandon_building(applying, &mut changed)? {
        return Ok(Err(rejection));
    }
    let unused = changed.head.unused.len() + 1;
    if let Err(rejection) = Rejection::check_limit("keyed_contents_max", UNUSED_MAX, unused) {
        return Ok(Err(rejection));
    }
    changed.head.unused.push(changed.head.content.number);
    changed.head.content = Content::default();
    changed.head.deleted = true;
    changed.schedule_sweep(applying);
    changed.store(applying, Reason::Deleted);
    Ok(Ok(OpOutcome::Written(applying.call.commit)))
}
