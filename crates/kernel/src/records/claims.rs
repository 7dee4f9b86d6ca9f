//! Claims of the next records of a queue, and of the queues below it.
//!
//! Keeps: R4, and the order of claims: what is first of everything below the queue, whichever queue it is in.
//!
//! A claim corrects the lanes that it meets ([`lanes`](super::lanes)). One correction costs a few rows, every record that
//! was claimed or deleted makes at most one necessary per level, and the claims of an entry do a bounded number; so a
//! claim costs the same on average however many queues there are, and never holds up others for long.

use contract::limits::QUEUE_DEPTH_MAX;
use contract::{RecordRejection, Rejection};
use session::Halt;

use super::attempt;
use super::lanes::{first_row, read_row};
use super::queue::queue_of;
use super::write::pass_over;
use crate::answer::{Answer, OpOutcome};
use crate::command::ClaimNext;
use crate::context::Applying;
use crate::damage;
use crate::keys::ThingId;
use crate::keys::queues::{QueueId, Ready, ReadyPlace};
use crate::keys::things::OwnedId;

/// Lanes that a claim may correct even if the others have used that up, so that each gets on.
pub const CORRECTIONS_MIN: usize = 1;

/// Lanes that may also be corrected for each record that was taken: those above that record.
const CORRECTIONS_PER_RECORD: usize = QUEUE_DEPTH_MAX;

/// What the search for the next record came to.
enum Next {
    /// A record: its bucket, its id, and its place in its queue.
    Record(u16, OwnedId, ReadyPlace),
    Nothing,
    /// It has corrected as many lanes as it may. There may be more.
    Unfinished,
}

/// Takes the first ready records for a worker.
pub(crate) fn claim_next(applying: &mut Applying<'_>, claim: &ClaimNext<'_>) -> Result<Answer, Halt> {
    #[cfg(feature = "canary")]
    crate::canary::panic_if_planted(claim.prefix);
    let live = applying.catalogue.space(claim.space).and_then(|space| space.live_branch(claim.branch));
    if let Err(rejection) = live {
        return Ok(Answer::Rejected(rejection));
    }
    let mut corrections = applying.budget.corrections.max(CORRECTIONS_MIN);
    let answer = take(applying, claim, &mut corrections);
    applying.budget.corrections = corrections;
    answer
}

/// Takes as many as the worker wants. One that nobody can read is passed over, and what was taken stays so if something
/// else cannot be read.
fn take(applying: &mut Applying<'_>, claim: &ClaimNext<'_>, corrections: &mut usize) -> Result<Answer, Halt> {
    let max = claim.records_max.min(applying.catalogue.limits.claim_records_max) as usize;
    let bytes_max = applying.catalogue.limits.claim_bytes_max as usize;
    let queue = QueueId { space: claim.space, branch: claim.branch, name: claim.prefix };
    let mut outcomes = Vec::new();
    let mut bytes = 0;
    let mut before = None;
    while outcomes.len() < max && bytes < bytes_max {
        applying.savepoint();
        let found = next_ready(applying, queue, corrections);
        let (bucket, id, place) = match applying.undo_if_damaged(found)? {
            Ok(Next::Record(bucket, id, place)) => (bucket, id, place),
            Ok(Next::Nothing) => break,
            Ok(Next::Unfinished) if outcomes.is_empty() => {
                outcomes.push(OpOutcome::Unfinished);
                break;
            }
            Ok(Next::Unfinished) => break,
            // The worker gets what it has; whoever claims next is told.
            Err(damaged) if outcomes.is_empty() => return Ok(damage::refused(&damaged, applying.catalogue)),
            Err(_) => break,
        };
        if before.as_ref() == Some(&id) {
            return Err(Halt::Inconsistent(format!("R5: {id:?} is still ready after it was claimed or has expired")));
        }
        let id = before.insert(id);
        let record = id.in_bucket(bucket);
        applying.savepoint();
        let claimed = take_one(applying, (&record, place), claim, *corrections > 0);
        match applying.undo_if_damaged(claimed)? {
            Ok(Taken::Claimed(outcome)) => {
                if let OpOutcome::Claimed(claimed) = &outcome {
                    bytes += claimed.row.len();
                }
                outcomes.push(outcome);
                *corrections += CORRECTIONS_PER_RECORD;
            }
            Ok(Taken::Expired) => {}
            Ok(Taken::PassedOver) => *corrections -= 1,
            Ok(Taken::Unfinished) if outcomes.is_empty() => {
                outcomes.push(OpOutcome::Unfinished);
                break;
            }
            Ok(Taken::Unfinished) => break,
            // Nobody can read it, and it must not keep the others from being claimed.
            Err(damaged) if damaged.range.contains(&applying.keys.record(&record)) && *corrections > 0 => {
                *corrections -= 1;
                applying.delete_ready(&record, place);
            }
            Err(damaged) if outcomes.is_empty() => return Ok(damage::refused(&damaged, applying.catalogue)),
            Err(_) => break,
        }
        // What was taken stays so, whatever the next one meets.
        applying.savepoint();
        if queue_of(&id.name) == queue.name {
            // Whoever claims from this queue next finds it without looking into every bucket.
            let noted = applying.note_beginning(bucket, queue);
            if applying.undo_if_damaged(noted)?.is_err() {
                break;
            }
        }
    }
    Ok(Answer::Done { commit: applying.call.commit, outcomes })
}

/// What came of the attempt to take one record.
enum Taken {
    Claimed(OpOutcome),
    /// It expired while it was ready: the expiry is committed now, and it is no longer ready.
    Expired,
    /// It cannot be claimed from a queue, and is in none any more. Whoever asks for it by name is told why.
    PassedOver,
    /// It would have to be passed over, and this claim has done enough.
    Unfinished,
}

fn take_one(
    applying: &mut Applying<'_>,
    (record, place): (&ThingId<'_>, ReadyPlace),
    claim: &ClaimNext<'_>,
    may_pass_over: bool,
) -> Result<Taken, Halt> {
    // Only the owner of a guarded group claims what is in it, by name.
    let guarded = applying.is_guarded(record);
    if !guarded {
        match attempt::claim(applying, record, claim.worker, claim.lease_us, false)? {
            Ok(outcome) => return Ok(Taken::Claimed(outcome)),
            Err(Rejection::Record(RecordRejection::NoSuchRecord { .. })) => return Ok(Taken::Expired),
            Err(_) => applying.undo(),
        }
    }
    if !may_pass_over {
        return Ok(Taken::Unfinished);
    }
    match guarded {
        true => pass_over(applying, record)?,
        // The record does not say that it is ready, so nothing else takes its row away.
        false => applying.delete_ready(record, place),
    }
    Ok(Taken::PassedOver)
}

/// The first record of a queue and of the queues below it. Corrects the lanes on the way.
fn next_ready(applying: &mut Applying<'_>, queue: QueueId<'_>, corrections: &mut usize) -> Result<Next, Halt> {
    while let Some(entry) = applying.first_ready(queue)? {
        let bucket = entry.bucket;
        let (place, mut ready) = read_row(&entry.suffix, queue)?;
        let mut name = queue.name.to_owned();
        // Down to a record, as long as every lane on the way stands where the first row of its queue is.
        loop {
            match ready {
                Ready::Thing(id) => return Ok(Next::Record(bucket, id, place)),
                Ready::Queue(rest) => name.push_str(&rest),
            }
            let below = QueueId { name: &name, ..queue };
            let first = match applying.lanes_in(bucket, below)?.1.begins {
                Some(begins) => first_row(applying.state, &applying.keys, bucket, below, begins)?,
                None => None,
            };
            match first {
                Some((first, found)) if first == place => ready = found,
                _ if *corrections == 0 => return Ok(Next::Unfinished),
                _ => {
                    *corrections -= 1;
                    applying.correct_lane(bucket, below, first.map(|(first, _)| first))?;
                    applying.savepoint();
                    break;
                }
            }
        }
    }
    Ok(Next::Nothing)
}
