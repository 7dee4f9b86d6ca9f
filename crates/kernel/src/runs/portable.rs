//! Runs in exports and imports.
//!
//! Keeps: L1: a log with a hole is refused. A run with a damaged part is left out as a whole.

use contract::runs::StepSnapshot;
use session::Halt;

use super::append::{self, write_event};
use super::contract::Runs;
use super::index;
use super::item::RunItem;
use super::row::{EventRow, RunHead, decode_step, encode_step};
use crate::catalogue::{BranchId, SpaceId};
use crate::keys::Kind;
use crate::keys::due::{DueClock, DueOf};
use crate::keys::things::OwnedId;
use crate::portable::Item;
use crate::portable::new_shard::{BuildError, NewShard};
use crate::portable::part::Portable;
use crate::portable::walking::{Walking, foreign, id_of, last_number};

/// The run whose events are being put.
pub(crate) struct Log {
    run: OwnedId,
    last: u64,
    /// The last event that the run is to have itself; none if it was deleted, and may have any.
    upto: Option<u64>,
}

impl Portable for Runs {
    type Item<'row> = RunItem<'row>;
    type Begun = Option<Log>;

    fn walk<E: From<Halt>>(walk: &mut Walking<'_, E>, bucket: u16, space: SpaceId, branch: BranchId) -> Result<(), E> {
        walk.things(Kind::Run, bucket, space, branch, |walk, key, row| {
            let run = id_of(key, space, branch)?;
            let id = run.in_bucket(bucket);
            let events = walk.keys.run_events_after(&id, 0);
            let steps = walk.keys.run_rows(Kind::RunStep, &id);
            if !walk.is_whole(&events)? || !walk.is_whole(&steps)? {
                return Ok(());
            }
            (walk.take)(&Item::Run(RunItem::Head { run: &run, head: RunHead::decode(row)? }))?;
            walk.rows(&events, |walk, key, row| {
                let seq = last_number(key).ok_or_else(|| foreign("events"))?;
                (walk.take)(&Item::Run(RunItem::Event { run: &run, seq, event: EventRow::decode(row)? }))
            })?;
            let prefix = walk.keys.run_step(&id, "").len();
            walk.rows(&steps, |walk, key, row| {
                let name = std::str::from_utf8(&key[prefix..]).map_err(|_| foreign("steps"))?;
                let step: StepSnapshot = decode_step(name, row)?;
                (walk.take)(&Item::Run(RunItem::Step { run: &run, step }))
            })
        })
    }

    fn walk_due<E: From<Halt>>(walk: &mut Walking<'_, E>, of: DueOf, run: &OwnedId, at_us: u64) -> Result<(), E> {
        match of {
            DueOf::Removal => (walk.take)(&Item::Run(RunItem::Removal { run, at_us })),
            _ => Ok(()),
        }
    }

    fn put(shard: &mut NewShard<'_>, begun: &mut Self::Begun, item: &RunItem<'_>) -> Result<(), BuildError> {
        match item {
            RunItem::Head { run, head } => {
                Self::end(begun)?;
                put_head(shard, begun, run, head)
            }
            RunItem::Event { run, seq, event } => put_event(shard, begun, run, *seq, event),
            RunItem::Step { run, step } => {
                in_run(begun, run)?;
                let key = shard.keys.run_step(&shard.place(run)?, &step.step_id);
                shard.absent(&key, "a step of run", &run.name)?;
                shard.held().put(key, None, false, |writer| encode_step(writer, step));
                Ok(())
            }
            RunItem::Removal { run, at_us } => {
                Self::end(begun)?;
                let id = shard.place(run)?;
                shard.applying(|applying| {
                    applying.put_due(DueClock::Wall, *at_us, DueOf::Removal, &id);
                    Ok(())
                })
            }
        }
    }

    fn end(begun: &mut Self::Begun) -> Result<(), BuildError> {
        match begun.take() {
            Some(Log { run, last, upto: Some(upto) }) if last != upto => {
                Err(BuildError::Refused(format!("L1: event {} of run {:?} is missing", last + 1, run.name)))
            }
            _ => Ok(()),
        }
    }
}

fn put_head(
    shard: &mut NewShard<'_>,
    begun: &mut Option<Log>,
    run: &OwnedId,
    head: &RunHead,
) -> Result<(), BuildError> {
    let id = shard.place(run)?;
    let key = shard.keys.run(&id);
    shard.absent(&key, "run", &run.name)?;
    let shared = head.parent.as_ref().map_or(0, |(_, seq)| *seq);
    if shared > head.last_seq {
        return Err(BuildError::Refused(format!("L1: run {:?} shares more events than it has", run.name)));
    }
    let upto = (!head.deleted).then_some(head.last_seq);
    *begun = Some(Log { run: run.clone(), last: shared, upto });
    let mut head = head.clone();
    shard.applying(|applying| {
        index::update(applying, &id, None, &mut head);
        append::put_head(applying, &id, None, &head);
        Ok(())
    })
}

/// Checks that this is the run whose events are being put.
fn in_run<'log>(begun: &'log mut Option<Log>, run: &OwnedId) -> Result<&'log mut Log, BuildError> {
    let refused = || BuildError::Refused(format!("something of run {:?} does not follow it", run.name));
    begun.as_mut().filter(|log| log.run == *run).ok_or_else(refused)
}

fn put_event(
    shard: &mut NewShard<'_>,
    begun: &mut Option<Log>,
    run: &OwnedId,
    seq: u64,
    event: &EventRow<'_>,
) -> Result<(), BuildError> {
    let log = in_run(begun, run)?;
    if log.upto.is_some_and(|upto| seq != log.last + 1 || seq > upto) {
        let message = format!("L1: event {} of run {:?} is missing", log.last + 1, run.name);
        return Err(BuildError::Refused(message));
    }
    log.last = seq;
    let id = shard.place(run)?;
    shard.absent(&shard.keys.run_event(&id, seq), "an event of run", &run.name)?;
    shard.staged_bytes += event.event.data.len();
    shard.applying(|applying| {
        write_event(applying, &id, seq, event);
        Ok(())
    })
}
