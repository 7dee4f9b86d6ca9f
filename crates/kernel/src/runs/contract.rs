//! Runs as one of the contracts.

use contract::{Rejection, RunRejection};
use kv::KeyRange;
use session::Halt;

use super::append::{append, read_head};
use super::command::{RunAct, RunGuard};
use super::life;
use super::row::RunHead;
use super::trim::RunTrim;
use crate::catalogue::FilledType;
use crate::context::Applying;
use crate::contract::{Contract, DueWork, Outcome};
use crate::keys::due::DueOf;
use crate::keys::{Keys, Kind, ThingId};
use crate::transact::scope::Scope;

/// Runs.
pub(crate) struct Runs;

impl Contract for Runs {
    type Act<'bytes> = RunAct<'bytes>;
    type Guard<'bytes> = RunGuard<'bytes>;
    type Rejection = RunRejection;
    type Trim = RunTrim;

    const NUMBER: u8 = 3;

    const HELD: &'static [Kind] = &[Kind::Run, Kind::RunEvent, Kind::RunStep];

    const ROWS: &'static [Kind] =
        &[Kind::Run, Kind::RunEvent, Kind::RunKey, Kind::RunEventId, Kind::RunIndex, Kind::RunStep];

    const DUE: &'static [DueOf] = &[DueOf::Removal];

    fn exists(row: &[u8]) -> Result<bool, Halt> {
        Ok(!RunHead::decode(row)?.deleted)
    }

    fn is_there(applying: &Applying<'_>, run: &ThingId<'_>) -> Result<bool, Halt> {
        applying.state.get(&applying.keys.run(run))?.map_or(Ok(false), |row| Self::exists(&row))
    }

    fn act(applying: &mut Applying<'_>, _: &Scope<'_>, run: &ThingId<'_>, act: &RunAct<'_>) -> Outcome {
        match act {
            RunAct::Append(event) => append(applying, run, event),
            RunAct::Close => life::close(applying, run),
            RunAct::Delete => life::delete(applying, run),
            RunAct::Fork { from, at } => life::fork(applying, run, from, *at),
        }
    }

    fn conflict(applying: &Applying<'_>, scope: &Scope<'_>, rejection: &RunRejection) -> Result<Option<String>, Halt> {
        let RunRejection::SequenceConflict { run, .. } = rejection else {
            return Ok(None);
        };
        let head = match scope.thing(run) {
            Ok(run) => read_head(applying, &run)?,
            Err(_) => None,
        };
        Ok(Some(head.map(|head| head.run_type).unwrap_or_default()))
    }

    fn trim(_: &mut Applying<'_>, step: &RunTrim) -> Result<Option<FilledType>, Halt> {
        match *step {}
    }

    fn check(
        applying: &Applying<'_>,
        scope: &Scope<'_>,
        guard: &RunGuard<'_>,
        _: &mut usize,
    ) -> Result<Result<(), Rejection>, Halt> {
        let RunGuard::LastIs(name, expected) = *guard;
        let run = match scope.thing(name) {
            Ok(run) => run,
            Err(rejection) => return Ok(Err(rejection)),
        };
        let head = read_head(applying, &run)?;
        let (last, run) = (head.as_ref().map_or(0, |head| head.last_seq), || name.to_owned());
        Ok(match head {
            Some(head) if head.deleted => Err(Rejection::Run(RunRejection::Archived { run: run(), last })),
            _ if last != expected => Err(Rejection::Run(RunRejection::SequenceConflict { run: run(), expected, last })),
            _ => Ok(()),
        })
    }

    fn when_due(applying: &mut Applying<'_>, work: &DueWork<'_>) -> Result<u32, Halt> {
        let run = work.thing();
        if applying.is_live(work.id) {
            life::remove_some(applying, &run, work.at_us)?;
        } else {
            // Its rows go with its branch.
            applying.delete_due(work.clock, work.at_us, work.of, &run);
        }
        Ok(1)
    }

    fn shard_rows(keys: &Keys, space: u32, branch: u32) -> Vec<KeyRange> {
        vec![keys.all_run_counts(space, branch)]
    }
}
