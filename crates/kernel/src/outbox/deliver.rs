//! Delivering: what is due is applied in its group, or may be published.

use session::Halt;

use super::Stored;
use crate::changes::{Noted, Reason, Subject};
use crate::command::Body;
use crate::context::Applying;
use crate::keys::Keys;
use crate::keys::due::DueClock;
use crate::outbox::command::Target;
use crate::transact;

/// A message is due: applies its transaction, or lets it be published.
pub(crate) fn deliver(applying: &mut Applying<'_>, bucket: u16, at_us: u64, number: u64) -> Result<(), Halt> {
    let suffix = Keys::due_send_suffix(at_us, number);
    let mut key = applying.keys.due_prefix(DueClock::Wall, bucket);
    key.extend_from_slice(&suffix);
    let row = applying.state.get(&key)?;
    let row = row.ok_or_else(|| Halt::Inconsistent("R6: a message that is due has no row".into()))?;
    applying.change_due(DueClock::Wall, bucket, suffix, b"", false);
    applying.folded.count_messages(-1, 0);
    let stored = Stored::decode(&row)?;
    match stored.send.target {
        Target::Topic { .. } => {
            // Behind everything that waits already, because it was not due when those were.
            let number = applying.next_number(bucket)?;
            applying.state.put(applying.keys.publish(bucket, number), &*row);
            applying.folded.count_messages(0, 1);
        }
        Target::Transact(body) => {
            let Body::Transact(transact) = Body::decode(body)? else {
                return Err(Halt::Inconsistent("a message is not a transaction".into()));
            };
            applying.savepoint();
            applying.delivers = true;
            let tried = transact::try_transact(applying, &transact);
            applying.delivers = false;
            let refused = tried?.is_err();
            if refused {
                applying.undo();
            }
            let reason = if refused { Reason::Refused } else { Reason::Delivered };
            let change = Noted {
                subject: Subject::Message,
                reason,
                space: stored.space,
                branch: stored.branch,
                group: None,
                name: stored.source,
                version: number,
            };
            applying.folded.changes.note(applying.call.commit, &change);
        }
    }
    Ok(())
}
