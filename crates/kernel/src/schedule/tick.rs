//! Work driven by time: the tick, proposed by the node when work is due.
//!
//! A tick does at most as many steps as the catalogue allows, so that a million things due at once neither stop writers
//! nor make one enormous entry. Each step is atomic in its own group.
//!
//! Touches: whatever is due. Keeps: R4 and R6.

use session::Halt;

use super::window::Entry;
use crate::answer::Answer;
use crate::context::Applying;
use crate::contract::{Contract, DueWork};
use crate::contracts::with_contracts;
use crate::keys::due::{Due, DueClock, read_due_suffix};
use crate::outbox::dead_letters::expire;
use crate::outbox::deliver::{deliver, give_up};
use crate::sessions::give_back::give_back;

/// Does due work.
pub(crate) fn tick(applying: &mut Applying<'_>) -> Result<Answer, Halt> {
    let stamp = applying.call.stamp;
    // At least one: ticks are proposed as long as work is due.
    let mut steps = applying.catalogue.limits.tick_steps_max.max(1);
    for (clock, now_us) in [(DueClock::Cluster, stamp.cluster_us), (DueClock::Wall, stamp.wall_us)] {
        while steps > 0 {
            let Some((entry, at_us, due)) = next_due(applying, clock)? else {
                break;
            };
            if at_us > now_us {
                break;
            }
            applying.savepoint();
            let done = step(applying, clock, entry.bucket, at_us, &due, steps);
            let done = match applying.undo_if_damaged(done)? {
                Ok(done) => done,
                Err(damaged) => {
                    // What it would change cannot be read by anybody, and it must not be due forever.
                    match due {
                        Due::Send { number } => give_up(applying, entry.bucket, at_us, number, &damaged)?,
                        Due::DeadLetter { space, .. } => applying.folded.count_dead_letters(space, -1),
                        Due::Thing(..) | Due::Session(_) => {}
                    }
                    applying.drop_due(clock, entry.bucket, entry.suffix);
                    1
                }
            };
            applying.savepoint();
            steps = steps.saturating_sub(done);
        }
    }
    Ok(Answer::Done { commit: applying.call.commit, outcomes: Vec::new() })
}

fn next_due(applying: &mut Applying<'_>, clock: DueClock) -> Result<Option<(Entry, u64, Due)>, Halt> {
    let buckets = applying.catalogue.buckets_here();
    let Some(entry) = applying.windows.first_due(applying.state, &applying.keys, buckets, clock)? else {
        return Ok(None);
    };
    let (at_us, due) = read_due_suffix(&entry.suffix)
        .ok_or_else(|| Halt::Inconsistent(format!("R5: {entry:?} is no entry of a due index")))?;
    Ok(Some((entry, at_us, due)))
}

/// Does one piece of due work, or up to `steps_max` for an ended session. Returns the number of steps: the sweep of a map takes
/// one for each row, so it may take more than are left.
fn step(
    applying: &mut Applying<'_>,
    clock: DueClock,
    bucket: u16,
    at_us: u64,
    due: &Due,
    steps_max: u32,
) -> Result<u32, Halt> {
    match due {
        Due::Send { number } => deliver(applying, bucket, at_us, *number).map(|()| 1),
        Due::DeadLetter { space, branch, number } => expire(applying, bucket, (*space, *branch), *number).map(|()| 1),
        Due::Session(session) => give_back(applying, bucket, at_us, *session, steps_max),
        Due::Thing(of, id) => when_due(applying, &DueWork { clock, at_us, of: *of, id, bucket }),
    }
}

macro_rules! dispatch {
    ($($folder:ident: $contract:ident { $kind:ident, $act:ident, $guard:ident, $item:ident, $trim:ident })*) => {
        /// Does what is due on a thing, as its contract does it. Returns the number of steps.
        fn when_due(applying: &mut Applying<'_>, work: &DueWork<'_>) -> Result<u32, Halt> {
            match work.of {
                $(of if crate::$folder::contract::$contract::DUE.contains(&of) => {
                    crate::$folder::contract::$contract::when_due(applying, work)
                })*
                of => Err(Halt::Inconsistent(format!("no contract does what is due: {of:?}"))),
            }
        }
    };
}

with_contracts!(dispatch);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::due::DueOf;

    macro_rules! lists {
        ($($folder:ident: $contract:ident { $kind:ident, $act:ident, $guard:ident, $item:ident, $trim:ident })*) => {
            [$(crate::$folder::contract::$contract::DUE),*]
        };
    }

    #[test]
    fn each_kind_of_work_belongs_to_one_contract() {
        for of in DueOf::ALL.iter().copied() {
            let does = with_contracts!(lists).into_iter().flatten().filter(|does| **does == of);
            assert_eq!(does.count(), 1, "{of:?}");
        }
    }
}
