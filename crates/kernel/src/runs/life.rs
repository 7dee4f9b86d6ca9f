//! Closing, deleting and forking runs.
//!
//! Deleting a run keeps its head, which answers late appends forever; ticks remove the rest in bounded steps. Events
//! shared by other runs remain until those runs are gone too.
//!
//! Touches: heads, and the rows of deleted runs. Keeps: L2 (a name is never used for a second run).

use contract::{Rejection, RunRejection};
use session::Halt;

use super::append::{put_head, read_head, sibling, store_head, walk};
use super::project;
use super::row::{EventRow, RunHead};
use crate::answer::OpOutcome;
use crate::changes::Reason;
use crate::context::Applying;
use crate::contract::Outcome;
use crate::keys::ThingId;
use crate::keys::due::{DueClock, DueOf};
use crate::keys::runs::RUN_ROWS;
use crate::readable::Readable;

/// The maximum number of events replayed to fork a run in its middle.
pub const FORK_EVENTS_MAX: u64 = 10_000;
/// Forks of forks.
pub const FORK_DEPTH_MAX: u32 = 16;
/// Rows of a deleted run that one step removes.
const REMOVED_ROWS_MAX: usize = 64;

/// The run, if it exists.
fn existing(applying: &Applying<'_>, run: &ThingId<'_>) -> Result<Result<RunHead, Rejection>, Halt> {
    let name = || run.name.to_owned();
    Ok(match read_head(applying, run)? {
        None => Err(Rejection::Run(RunRejection::NoSuchRun { run: name() })),
        Some(head) if head.deleted => Err(Rejection::Run(RunRejection::Archived { run: name(), last: head.last_seq })),
        Some(head) => Ok(head),
    })
}

/// Lets nothing more be appended.
pub(crate) fn close(applying: &mut Applying<'_>, run: &ThingId<'_>) -> Outcome {
    let before = match existing(applying, run)? {
        Ok(head) => head,
        Err(rejection) => return Ok(Err(rejection)),
    };
    let seq = before.last_seq;
    if !before.closed {
        let after = RunHead { closed: true, commit: applying.call.commit, ..before.clone() };
        store_head(applying, run, Some(&before), after, Reason::Finished);
    }
    Ok(Ok(OpOutcome::Written(seq)))
}

/// Deletes a run.
pub(crate) fn delete(applying: &mut Applying<'_>, run: &ThingId<'_>) -> Outcome {
    let before = match existing(applying, run)? {
        Ok(head) => head,
        Err(rejection) => return Ok(Err(rejection)),
    };
    let after = RunHead { deleted: true, commit: applying.call.commit, ..before.clone() };
    let (seq, shared) = (before.last_seq, before.forks > 0);
    store_head(applying, run, Some(&before), after, Reason::Deleted);
    if !shared {
        applying.put_due(DueClock::Wall, applying.call.stamp.wall_us, DueOf::Removal, run);
    }
    Ok(Ok(OpOutcome::Written(seq)))
}

/// Removes some rows of a deleted run. When none is left, continues with the run that it shared events with.
pub(crate) fn remove_some(applying: &mut Applying<'_>, run: &ThingId<'_>, at_us: u64) -> Result<(), Halt> {
    let mut removed = Vec::new();
    for kind in RUN_ROWS {
        let range = applying.keys.run_rows(kind, run);
        for row in applying.state.rows(&range).take(REMOVED_ROWS_MAX - removed.len()) {
            removed.push(row?);
        }
    }
    let done = removed.len() < REMOVED_ROWS_MAX;
    for (key, row) in removed {
        applying.held().delete_found(key, &row)?;
    }
    if !done {
        return Ok(());
    }
    applying.delete_due(DueClock::Wall, at_us, DueOf::Removal, run);
    let gone = || Halt::Inconsistent(format!("L2: the head of the deleted run {:?} is gone", run.name));
    let Some((name, _)) = read_head(applying, run)?.ok_or_else(gone)?.parent else {
        return Ok(());
    };
    let parent = sibling(run, &name);
    let before = read_head(applying, &parent)?.ok_or_else(gone)?;
    let forks = before.forks.checked_sub(1).ok_or_else(|| Halt::Inconsistent("L2: fewer than no forks".into()))?;
    let head = RunHead { forks, ..before.clone() };
    if head.deleted && head.forks == 0 {
        applying.put_due(DueClock::Wall, applying.call.stamp.wall_us, DueOf::Removal, &parent);
    }
    put_head(applying, &parent, Some(&before), &head);
    Ok(())
}

/// Creates a run that shares the events of another, up to one of them.
pub(crate) fn fork(applying: &mut Applying<'_>, run: &ThingId<'_>, from: &str, at: u64) -> Outcome {
    if let Some(head) = read_head(applying, run)? {
        let name = run.name.to_owned();
        return Ok(Err(match head.deleted {
            true => Rejection::Run(RunRejection::Archived { run: name, last: head.last_seq }),
            false => Rejection::AlreadyExists { what: "run", name },
        }));
    }
    let parent = sibling(run, from);
    let head = match existing(applying, &parent)? {
        Ok(head) => head,
        Err(rejection) => return Ok(Err(rejection)),
    };
    if at == 0 || at > head.last_seq {
        return Ok(Err(Rejection::Run(RunRejection::SequenceConflict {
            run: from.to_owned(),
            expected: at,
            last: head.last_seq,
        })));
    }
    if head.depth >= FORK_DEPTH_MAX {
        return Ok(Err(Rejection::too_large("run_fork_depth_max", FORK_DEPTH_MAX as usize, head.depth as usize + 1)));
    }
    if at < head.last_seq && at > FORK_EVENTS_MAX {
        let (max, got) = (FORK_EVENTS_MAX, at);
        return Ok(Err(Rejection::LimitExceeded { limit: "run_fork_events_max", max, got }));
    }
    let stamp = applying.call.stamp;
    let mut forked = RunHead {
        run_type: head.run_type.clone(),
        created_us: stamp.wall_us,
        last_event_us: stamp.wall_us,
        commit: applying.call.commit,
        last_seq: at,
        parent: Some((from.to_owned(), at)),
        depth: head.depth + 1,
        ..RunHead::default()
    };
    if at == head.last_seq {
        forked.status = head.status;
        forked.started_at = head.started_at.clone();
        forked.completed_at = head.completed_at.clone();
        forked.artifacts = head.artifacts.clone();
        (forked.steps, forked.steps_left_out) = (head.steps, head.steps_left_out);
        copy_steps(applying, &parent, run)?;
    } else {
        for (_, row) in events_upto(applying, &parent, &head, at)? {
            let event = EventRow::decode(&row)?.event;
            project::apply(applying, run, &mut forked, &event)?;
        }
    }
    let shared = RunHead { forks: head.forks + 1, ..head.clone() };
    put_head(applying, &parent, Some(&head), &shared);
    store_head(applying, run, None, forked, Reason::Written);
    Ok(Ok(OpOutcome::Written(at)))
}

fn copy_steps(applying: &mut Applying<'_>, from: &ThingId<'_>, to: &ThingId<'_>) -> Result<(), Halt> {
    let prefix = applying.keys.run_step(from, "").len();
    let range = applying.keys.run_rows(crate::keys::Kind::RunStep, from);
    let rows = applying.state.rows(&range).collect::<Result<Vec<_>, _>>()?;
    for (key, row) in rows {
        let step = std::str::from_utf8(&key[prefix..]);
        let step = step.map_err(|_| Halt::Inconsistent("L3: the name of a step is not text".into()))?;
        let key = applying.keys.run_step(to, step);
        applying.held().put(key, None, false, |writer| {
            writer.raw(&row);
        });
    }
    Ok(())
}

/// The events of a run up to a sequence, those that it shares included, ascending.
fn events_upto(
    applying: &Applying<'_>,
    run: &ThingId<'_>,
    head: &RunHead,
    upto: u64,
) -> Result<Vec<(u64, kv::Bytes)>, Halt> {
    let mut pieces = Vec::new();
    let (state, keys) = (&*applying.state, applying.keys);
    walk(state, &keys, run, head, upto, |run, upto| {
        let mut piece = Vec::new();
        for row in state.rows(&keys.run_events_after(run, 0)) {
            let (key, row) = row?;
            let seq = u64::from_be_bytes(*key.last_chunk().expect("a sequence at the end"));
            if seq > upto {
                break;
            }
            piece.push((seq, row));
        }
        pieces.push(piece);
        Ok(true)
    })?;
    Ok(pieces.into_iter().rev().flatten().collect())
}
