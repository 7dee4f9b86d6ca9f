//! Commands that meet a damaged range: they are undone and refused, and everything else goes on.
//!
//! Only ranges that are set apart are met here; others halt the kernel, and its host sets them apart first, so that a
//! replay finds the same ranges damaged. Keeps: K7 (a refused command changes nothing).

use contract::Rejection;
use kv::{DamagedRange, Key};
use session::Halt;

use crate::answer::Answer;
use crate::catalogue::Catalogue;
use crate::context::Applying;
use crate::keys::readable::describe_range;

impl Applying<'_> {
    /// Ends a part of a command, which began at the last savepoint. If it has met a damaged range, or if what is
    /// written for it at the end of the entry would, the part is undone, and the range is returned.
    pub(crate) fn undo_if_damaged<T>(&mut self, result: Result<T, Halt>) -> Result<Result<T, Box<DamagedRange>>, Halt> {
        let result = result.and_then(|done| {
            if self.expects_damage {
                self.folded.check(self.state, &self.keys)?;
            }
            Ok(done)
        });
        match result {
            Ok(done) => Ok(Ok(done)),
            Err(halt) => match halt.set_apart() {
                None => Err(halt),
                Some(damaged) => {
                    self.undo();
                    Ok(Err(Box::new(damaged.clone())))
                }
            },
        }
    }

    /// Removes an entry from the due index, whatever it was.
    pub(crate) fn drop_due(&mut self, clock: crate::keys::due::DueClock, bucket: u16, suffix: Key) {
        self.change_due(clock, bucket, suffix, b"", false);
    }
}

/// The answer to a command that needs a damaged range.
pub(crate) fn refused(damaged: &DamagedRange, catalogue: &Catalogue) -> Answer {
    Answer::Rejected(refusal(damaged, catalogue))
}

/// Why a command that needs a damaged range is refused.
pub(crate) fn refusal(damaged: &DamagedRange, catalogue: &Catalogue) -> Rejection {
    let (from, to) = describe_range(&damaged.range, catalogue);
    Rejection::Damaged { from, to }
}
