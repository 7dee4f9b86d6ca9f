//! Appending an event: the one place where a run grows.
//!
//! Touches: the run's head, the event, its key and id, its step, the index, counts and the change feed. Keeps: L1
//! (sequences rise by one, and every event names the one before) and L2 (a key or an id identifies one event for the
//! life of the run, and an append with a known one changes nothing).

use contract::runs::seq_of_derived_id;
use contract::time::iso;
use contract::{Rejection, RunRejection};
use session::Halt;

use super::row::{EventRow, Known, RunHead, digest};
use super::{index, project};
use crate::answer::OpOutcome;
use crate::changes::{Noted, Reason, Subject};
use crate::context::Applying;
use crate::contract::Outcome;
use crate::keys::ThingId;
use crate::readable::Readable;
use crate::runs::command::{Append, Duplicates, EventRef};

pub(crate) fn append(applying: &mut Applying<'_>, run: &ThingId<'_>, append: &Append<'_>) -> Outcome {
    let Append { expected_last, duplicates, run_type, event } = append;
    let before = read_head(applying, run)?;
    let last = before.as_ref().map_or(0, |head| head.last_seq);
    let name = || run.name.to_owned();
    if let Some(head) = &before {
        if head.deleted {
            return Ok(Err(Rejection::Run(RunRejection::Archived { run: name(), last })));
        }
        if let Some(known) = find(applying, run, head, event)? {
            let payload_mismatch = known.digest != digest(event);
            let refused = match duplicates {
                Duplicates::Answer => false,
                Duplicates::RefuseOthers => payload_mismatch,
                Duplicates::Refuse => true,
            };
            if refused {
                return Ok(Err(Rejection::Run(RunRejection::KeyReused { run: name(), seq: known.seq })));
            }
            let seq = known.seq;
            applying.folded.changes.tally.append_repeated();
            return Ok(Ok(OpOutcome::Appended { seq, idempotent: true, payload_mismatch }));
        }
        if head.closed {
            return Ok(Err(Rejection::Run(RunRejection::Closed { run: name(), last })));
        }
    }
    if let Some(expected) = *expected_last
        && expected != last
    {
        return Ok(Err(Rejection::Run(RunRejection::SequenceConflict { run: name(), expected, last })));
    }
    let stamp = applying.call.stamp;
    let mut after = before.clone().unwrap_or_else(|| RunHead {
        run_type: (*run_type).to_owned(),
        created_us: stamp.wall_us,
        ..RunHead::default()
    });
    if let Some(coming) = derived_seq(run, &after, event).filter(|seq| *seq > last) {
        return Ok(Err(Rejection::Run(RunRejection::KeyReused { run: name(), seq: coming })));
    }
    let seq = last + 1;
    after.last_seq = seq;
    after.last_event_us = stamp.wall_us;
    after.commit = applying.call.commit;
    // Filled in here and not by the proposer: a repeated command is then the same command.
    let emitted_at = event.emitted_at.is_none().then(|| iso(stamp.wall_us));
    let event = EventRef { emitted_at: event.emitted_at.or(emitted_at.as_deref()), ..*event };
    let row = EventRow { persisted_us: stamp.wall_us, commit: applying.call.commit, prev_seq: last, event };
    write_event(applying, run, seq, &row);
    project::apply(applying, run, &mut after, &event)?;
    store_head(applying, run, before.as_ref(), after, Reason::Written);
    Ok(Ok(OpOutcome::Appended { seq, idempotent: false, payload_mismatch: false }))
}

/// Writes an event, with the rows by which its key and its id are known.
pub(crate) fn write_event(applying: &mut Applying<'_>, run: &ThingId<'_>, seq: u64, row: &EventRow<'_>) {
    let event = &row.event;
    let key = applying.keys.run_event(run, seq);
    applying.held().put(key, None, false, |writer| row.encode(writer));
    let known = Known { seq, digest: digest(event) };
    let key = applying.keys.run_key(run, event.idempotency_key);
    applying.state.put_encoded(key, |writer| known.encode(writer));
    if let Some(event_id) = event.event_id {
        let key = applying.keys.run_event_id(run, event_id);
        applying.state.put_encoded(key, |writer| known.encode(writer));
    }
}

/// The head of a run, if the run exists or existed.
pub(crate) fn read_head(applying: &Applying<'_>, run: &ThingId<'_>) -> Result<Option<RunHead>, Halt> {
    applying.state.get(&applying.keys.run(run))?.map(|row| RunHead::decode(&row)).transpose()
}

/// Writes a run's head and what follows from it.
pub(crate) fn store_head(
    applying: &mut Applying<'_>,
    run: &ThingId<'_>,
    before: Option<&RunHead>,
    mut after: RunHead,
    reason: Reason,
) {
    let rises = before.is_none_or(|before| after.last_seq >= before.last_seq);
    assert!(rises, "L1: {before:?} then {after:?}");
    index::update(applying, run, before, &mut after);
    put_head(applying, run, before, &after);
    let ThingId { space, branch, group, name, .. } = *run;
    let change = Noted { subject: Subject::Run, reason, space, branch, group, name, version: after.last_seq };
    applying.folded.changes.note(applying.call.commit, &change);
}

/// Writes a run's head alone.
pub(crate) fn put_head(applying: &mut Applying<'_>, run: &ThingId<'_>, before: Option<&RunHead>, after: &RunHead) {
    let key = applying.keys.run(run);
    applying.held().put(key, before.map(RunHead::counted), !after.deleted, |writer| after.encode(writer));
}

/// The event with this key, or else with this id, in the run or in the events it shares.
fn find(
    applying: &Applying<'_>,
    run: &ThingId<'_>,
    head: &RunHead,
    event: &EventRef<'_>,
) -> Result<Option<Known>, Halt> {
    let keys = applying.keys;
    // The key is looked up everywhere first: the answer is the same, whatever id comes with it.
    let by_key = find_by(applying, run, head, |run| keys.run_key(run, event.idempotency_key))?;
    let Some(event_id) = event.event_id.filter(|_| by_key.is_none()) else {
        return Ok(by_key);
    };
    let by_id = find_by(applying, run, head, |run| keys.run_event_id(run, event_id))?;
    match derived_seq(run, head, event).filter(|seq| by_id.is_none() && *seq <= head.last_seq) {
        Some(seq) => find_without_id(applying, run, head, seq),
        None => Ok(by_id),
    }
}

/// The sequence of the event, there or to come, that gets this event's id if it has none of its own.
fn derived_seq(run: &ThingId<'_>, head: &RunHead, event: &EventRef<'_>) -> Option<u64> {
    seq_of_derived_id(run.name, head.created_us, event.event_id?)
}

/// The event at a sequence, if it came without an id.
fn find_without_id(
    applying: &Applying<'_>,
    run: &ThingId<'_>,
    head: &RunHead,
    seq: u64,
) -> Result<Option<Known>, Halt> {
    let state = &*applying.state;
    let mut found = None;
    walk(state, &applying.keys, run, head, head.last_seq, |run, upto| {
        let row = if seq <= upto { state.get(&applying.keys.run_event(run, seq))? } else { None };
        let Some(row) = row else { return Ok(true) };
        let event = EventRow::decode(&row)?.event;
        found = event.event_id.is_none().then(|| Known { seq, digest: digest(&event) });
        Ok(false)
    })?;
    Ok(found)
}

fn find_by(
    applying: &Applying<'_>,
    run: &ThingId<'_>,
    head: &RunHead,
    row_key: impl Fn(&ThingId<'_>) -> kv::Key,
) -> Result<Option<Known>, Halt> {
    let state = &*applying.state;
    let mut found = None;
    walk(state, &applying.keys, run, head, head.last_seq, |run, upto| {
        let known = state.get(&row_key(run))?.map(|row| Known::decode(&row)).transpose()?;
        // Events of another run after the fork are not shared.
        found = known.filter(|known| known.seq <= upto);
        Ok(found.is_none())
    })?;
    Ok(found)
}

/// Walks from a run to those whose events it shares, each with the last shared event, while `look` returns true.
pub(crate) fn walk(
    state: &(impl Readable + ?Sized),
    keys: &crate::keys::Keys,
    run: &ThingId<'_>,
    head: &RunHead,
    upto: u64,
    mut look: impl FnMut(&ThingId<'_>, u64) -> Result<bool, Halt>,
) -> Result<(), Halt> {
    if !look(run, upto)? {
        return Ok(());
    }
    let mut parent = head.parent.clone();
    let mut upto = upto;
    while let Some((name, shared)) = parent {
        upto = upto.min(shared);
        let other = sibling(run, &name);
        if !look(&other, upto)? {
            return Ok(());
        }
        let row = state.read(&keys.run(&other))?;
        let row = row.ok_or_else(|| Halt::Inconsistent(format!("L1: run {name:?} is shared and gone")))?;
        parent = RunHead::decode(&row)?.parent;
    }
    Ok(())
}

/// Another run of the same group.
pub(crate) fn sibling<'name>(run: &ThingId<'name>, name: &'name str) -> ThingId<'name> {
    let group = run.group.unwrap_or(run.name);
    ThingId { group: (group != name).then_some(group), name, ..*run }
}
