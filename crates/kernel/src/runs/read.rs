//! Reading runs from one view: events, projections and counts.

use contract::limits::PAGE_BYTES_MAX;
use contract::runs::snapshot::duration_ms;
use contract::runs::{Fetched, RunSnapshot, RunStatus, StoredEvent};
use contract::{Json, Rejection, RunRejection};
use kv::View;
use session::Halt;

use super::append::walk;
use super::row::{EventRow, RunHead, decode_step};
use crate::catalogue::Catalogue;
use crate::keys::names::is_name_in_group;
use crate::keys::things::{OwnedId, read_thing_key};
use crate::keys::{Keys, Kind, ThingId};
use crate::readable::Readable;

/// The head of a run, if it exists; otherwise the rejection says why not.
pub fn head(view: &dyn View, keys: &Keys, run: &ThingId<'_>) -> Result<Result<RunHead, Rejection>, Halt> {
    let name = || run.name.to_owned();
    Ok(match view.get(&keys.run(run))?.map(|row| RunHead::decode(&row)).transpose()? {
        None => Err(Rejection::Run(RunRejection::NoSuchRun { run: name() })),
        Some(head) if head.deleted => Err(Rejection::Run(RunRejection::Archived { run: name(), last: head.last_seq })),
        Some(head) => Ok(head),
    })
}

/// The events after a sequence, ascending, at most `limit`.
pub fn fetch(
    view: &dyn View,
    keys: &Keys,
    run: &ThingId<'_>,
    head: &RunHead,
    after: u64,
    limit: usize,
) -> Result<Fetched, Halt> {
    if after >= head.last_seq {
        return Ok(Fetched { events: Vec::new(), stable_seq: head.last_seq });
    }
    // From the run back to those whose events it shares, until one has the next event. Each comes before what was found so far,
    // of which the page then has less.
    let mut found: Vec<(usize, StoredEvent)> = Vec::new();
    walk(view, keys, run, head, head.last_seq, |of, upto| {
        let mut piece = Vec::new();
        let mut first = None;
        let mut bytes = 0;
        for row in view.rows(&keys.run_events_after(of, after)).take(limit) {
            let (key, row) = row?;
            let seq = u64::from_be_bytes(*key.last_chunk().expect("a sequence at the end"));
            if seq > upto {
                break;
            }
            first.get_or_insert(seq);
            if bytes >= PAGE_BYTES_MAX {
                break;
            }
            bytes += row.len();
            piece.push((row.len(), stored(run.name, head.created_us, seq, &row)?));
        }
        piece.append(&mut found);
        let fits = piece.iter().scan(0, |before, (bytes, _)| Some(std::mem::replace(before, *before + bytes)));
        piece.truncate(fits.take_while(|before| *before < PAGE_BYTES_MAX).count().min(limit));
        found = piece;
        // If the first event directly follows the cursor, no other run is needed.
        Ok(first.is_none_or(|first| first > after + 1))
    })?;
    let events = found.into_iter().map(|(_, event)| event).collect();
    Ok(Fetched { events, stable_seq: head.last_seq })
}

fn stored(run: &str, created_us: u64, seq: u64, row: &[u8]) -> Result<StoredEvent, Halt> {
    let EventRow { persisted_us, commit, prev_seq, event } = EventRow::decode(row)?;
    Ok(StoredEvent::new(run.to_owned(), created_us, seq, prev_seq, persisted_us, commit, event.to_new_event()))
}

/// The last event committed before a wall time, in µs; 0 if there is none.
pub fn seq_before(view: &dyn View, keys: &Keys, run: &ThingId<'_>, head: &RunHead, wall_us: u64) -> Result<u64, Halt> {
    // Stamps rise, so the events are sorted by time too.
    let (mut low, mut high) = (0, head.last_seq);
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        let event = fetch(view, keys, run, head, middle - 1, 1)?.events;
        let event = event.first().ok_or_else(|| Halt::Inconsistent(format!("L1: event {middle} is gone")))?;
        if event.persisted_at < wall_us { low = middle } else { high = middle - 1 }
    }
    Ok(low)
}

/// The stored projection.
pub fn snapshot(view: &dyn View, keys: &Keys, run: &ThingId<'_>, head: &RunHead) -> Result<RunSnapshot, Halt> {
    let prefix = keys.run_step(run, "").len();
    let mut steps = Vec::new();
    for row in view.rows(&keys.run_rows(Kind::RunStep, run)) {
        let (key, row) = row?;
        let step = std::str::from_utf8(&key[prefix..]);
        let step = step.map_err(|_| Halt::Inconsistent("L3: the name of a step is not text".into()))?;
        steps.push(decode_step(step, &row)?);
    }
    let total_duration_ms = duration_ms(head.started_at.as_deref(), head.completed_at.as_deref());
    Ok(RunSnapshot {
        run_id: run.name.to_owned(),
        status: head.status,
        last_event_seq: head.last_seq,
        steps,
        steps_left_out: head.steps_left_out,
        artifacts: head.artifacts.iter().cloned().map(Json::from_checked).collect(),
        started_at: head.started_at.clone(),
        completed_at: head.completed_at.clone(),
        total_duration_ms,
    })
}

/// Runs after a key, in key order, at most `limit` of them, with the key to continue after; none at the end.
pub fn all(
    view: &dyn View,
    keys: &Keys,
    catalogue: &Catalogue,
    (space, branch): (u32, u32),
    after: Option<&[u8]>,
    limit: usize,
) -> Result<(Vec<OwnedId>, Option<Vec<u8>>), Halt> {
    let mut found = Vec::new();
    for bucket in catalogue.buckets_here() {
        let range = keys.rows_of_branch(Kind::Run, bucket, space, branch);
        let range = match after {
            Some(after) => range.after(after),
            None => range,
        };
        for row in view.rows(&range) {
            let (key, row) = row?;
            if is_name_in_group(&key) {
                continue;
            }
            let id = read_thing_key(&key, space, branch);
            if !RunHead::decode(&row)?.deleted {
                found.push(id.ok_or_else(|| Halt::Inconsistent("L4: a foreign key among runs".into()))?);
            }
            if found.len() == limit {
                return Ok((found, Some(key.to_vec())));
            }
        }
    }
    Ok((found, None))
}

/// The number of runs of each kind and status.
pub fn counts(view: &dyn View, keys: &Keys, space: u32, branch: u32) -> Result<Vec<(String, RunStatus, u64)>, Halt> {
    let mut found = Vec::new();
    for row in view.rows(&keys.all_run_counts(space, branch)) {
        let (key, row) = row?;
        let run_type = keys.read_run_counts(&key, space, branch);
        let run_type = run_type.ok_or_else(|| Halt::Inconsistent("L4: a foreign key among counts of runs".into()))?;
        let counts = crate::counts::decode(&row)?;
        for (status, count) in RunStatus::ALL.into_iter().zip(counts).filter(|(_, count)| *count > 0) {
            found.push((run_type.clone(), status, count));
        }
    }
    Ok(found)
}
