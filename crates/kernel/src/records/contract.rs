//! Records as one of the contracts.

use contract::{RecordRejection, Rejection};
use kv::KeyRange;
use session::Halt;

use super::command::{RecordAct, RecordGuard, TtlArgument};
use super::patch::no_such_record;
use super::queue::ALL_QUEUES;
use super::row::{Row, decode_numbers};
use super::trim::RecordTrim;
use super::{attempt, due, erase, fence, guard, held, owned, patch, trim, write};
use crate::answer::OpOutcome;
use crate::catalogue::{Catalogue, FilledType};
use crate::changes::Reason;
use crate::command::trim_step::TrimStep;
use crate::context::Applying;
use crate::contract::{Contract, DueWork, Holding, Outcome, OwnedThing};
use crate::keys::due::DueOf;
use crate::keys::sessions::OwnedOf;
use crate::keys::{Keys, Kind, ThingId};
use crate::transact::scope::Scope;
use crate::trim::finding::Finding;

/// Records.
pub(crate) struct Records;

impl Contract for Records {
    type Act<'bytes> = RecordAct<'bytes>;
    type Guard<'bytes> = RecordGuard<'bytes>;
    type Rejection = RecordRejection;
    type Trim = RecordTrim;

    const NUMBER: u8 = 2;

    const HELD: &'static [Kind] = &[Kind::Record, Kind::RecordField];

    const ROWS: &'static [Kind] = &[Kind::Record, Kind::Ready];

    const DUE: &'static [DueOf] = &[DueOf::Expiry, DueOf::Ready, DueOf::Lease];

    const OWNED: &'static [OwnedOf] = &[OwnedOf::Claim, OwnedOf::Life];

    fn exists(row: &[u8]) -> Result<bool, Halt> {
        Ok(!decode_numbers(row)?.deleted)
    }

    fn is_there(applying: &Applying<'_>, record: &ThingId<'_>) -> Result<bool, Halt> {
        let row = write::peek(applying, record)?;
        let wall_us = applying.call.stamp.wall_us;
        row.map_or(Ok(false), |row| Ok(decode_numbers(&row)?.exists_at(wall_us)))
    }

    fn holding(applying: &Applying<'_>, record: &ThingId<'_>) -> Result<Option<Holding>, Halt> {
        match write::peek(applying, record)? {
            Some(bytes) => held::holding(applying, record, &Row::decode(&bytes)?),
            None => Ok(None),
        }
    }

    fn act(applying: &mut Applying<'_>, scope: &Scope<'_>, record: &ThingId<'_>, act: &RecordAct<'_>) -> Outcome {
        // Whether the transaction belongs to the live attempt of this record.
        let fenced = scope.fences.iter().any(|fence| fence.record == record.name);
        if let Err(rejection) = held::check(applying, scope, record, act, fenced)? {
            return Ok(Err(rejection));
        }
        match act {
            RecordAct::Put { record_type, ttl, fields } => {
                patch::put(applying, record, *record_type, *ttl, fields, fenced)
            }
            RecordAct::Patch { must_exist, fields } => patch::patch(applying, record, *must_exist, fields),
            RecordAct::Swap { field, expected, new } => patch::swap(applying, record, field, *expected, *new),
            RecordAct::Increment { field, by } => patch::increment(applying, record, field, *by),
            RecordAct::Delete => delete(applying, record),
            RecordAct::Touch { ttl } => touch(applying, record, *ttl),
            RecordAct::Claim { worker, lease_us } => attempt::claim(applying, record, worker, *lease_us, scope.force),
            RecordAct::Extend { attempt, lease_us } => attempt::extend(applying, record, *attempt, *lease_us),
            RecordAct::Release { attempt } => attempt::release(applying, record, *attempt),
            RecordAct::Complete { attempt, fields } => attempt::complete(applying, record, *attempt, fields),
            RecordAct::Fail { attempt, fields } => attempt::fail(applying, record, *attempt, fields),
        }
    }

    fn check_scope(applying: &mut Applying<'_>, scope: &Scope<'_>) -> Result<Result<(), Rejection>, Halt> {
        fence::check_fences(applying, scope)
    }

    fn conflict(
        applying: &Applying<'_>,
        scope: &Scope<'_>,
        rejection: &RecordRejection,
    ) -> Result<Option<String>, Halt> {
        let (RecordRejection::Conflict { record, .. }
        | RecordRejection::FieldConflict { record, .. }
        | RecordRejection::Fenced { record, .. }) = rejection
        else {
            return Ok(None);
        };
        let Ok(record) = scope.thing(record) else {
            return Ok(Some(String::new()));
        };
        let row = applying.state.get(&applying.keys.record(&record))?;
        let number = row.map(|row| decode_numbers(&row)).transpose()?.map_or(0, |numbers| numbers.record_type);
        let declared = applying.catalogue.record_type(scope.space, number);
        Ok(Some(declared.map(|declared| declared.definition.name.clone()).unwrap_or_default()))
    }

    fn trim(applying: &mut Applying<'_>, step: &RecordTrim) -> Result<Option<FilledType>, Halt> {
        trim::apply(applying, step)
    }

    fn find_in_bucket(finding: &mut Finding<'_>, bucket: u16) -> Result<(), Halt> {
        trim::find_deleted(finding, bucket)
    }

    fn find_in_shard(finding: &mut Finding<'_>) -> Result<(), Halt> {
        trim::find_empty_lanes(finding)
    }

    fn find_in_catalogue(catalogue: &Catalogue) -> Vec<TrimStep> {
        trim::find_unfilled(catalogue)
    }

    fn give_back(applying: &mut Applying<'_>, ended: &OwnedThing<'_>) -> Result<(), Halt> {
        owned::give_back(applying, ended)
    }

    fn check(
        applying: &Applying<'_>,
        scope: &Scope<'_>,
        guard: &RecordGuard<'_>,
        _: &mut usize,
    ) -> Result<Result<(), Rejection>, Halt> {
        guard::check(applying, scope, guard)
    }

    fn when_due(applying: &mut Applying<'_>, work: &DueWork<'_>) -> Result<u32, Halt> {
        due::when_due(applying, work).map(|()| 1)
    }

    fn erase_some(applying: &mut Applying<'_>, bucket: u16, space: u32, branch: u32) -> Result<(), Halt> {
        erase::erase_some(applying, bucket, space, branch)
    }

    fn shard_rows(keys: &Keys, space: u32, branch: u32) -> Vec<KeyRange> {
        vec![keys.counts_from_queue(space, branch, ALL_QUEUES), keys.lanes_of_branch(space, branch)]
    }
}

fn delete(applying: &mut Applying<'_>, record: &ThingId<'_>) -> Outcome {
    let opened = write::open(applying, record)?;
    let before = opened.row()?;
    if before.numbers.deleted {
        return Ok(Ok(OpOutcome::Nothing));
    }
    Ok(Ok(OpOutcome::Written(write::remove(applying, record, &before, Reason::Deleted)?)))
}

/// Sets the time to live of the record. `Persist` here means forever, whatever its type says.
fn touch(applying: &mut Applying<'_>, record: &ThingId<'_>, ttl: TtlArgument) -> Outcome {
    let opened = write::open(applying, record)?;
    let before = opened.row()?;
    if before.numbers.deleted {
        return Ok(Err(no_such_record(record)));
    }
    let mut after = write::successor(applying, &before);
    if let Err(rejection) = patch::set_ttl(applying, &mut after, None, ttl, true) {
        return Ok(Err(rejection));
    }
    Ok(Ok(OpOutcome::Written(write::store(applying, record, &before, after, Reason::Written)?)))
}
