//! Claims and records that end with a session.
//!
//! Touches: `Owned` rows. Keeps: E6 (a row of this index is exactly where a record says).

use session::Halt;

use super::row::{Numbers, Row};
use super::{attempt, write};
use crate::changes::Reason;
use crate::context::Applying;
use crate::contract::OwnedThing;
use crate::keys::ThingId;
use crate::keys::sessions::OwnedOf;

/// Updates the index for a written record.
pub(super) fn update(applying: &mut Applying<'_>, record: &ThingId<'_>, before: &Numbers, after: &Numbers) {
    let claims = (OwnedOf::Claim, before.holder_session, after.holder_session);
    let lives = (OwnedOf::Life, before.life_session, after.life_session);
    for (of, before, after) in [claims, lives] {
        if before == after {
            continue;
        }
        if before != 0 {
            let key = applying.keys.owned(before, of, record);
            applying.state.delete(key);
        }
        if after != 0 {
            let key = applying.keys.owned(after, of, record);
            applying.state.put(key, b"".as_slice());
            applying.owned.push(record.bucket);
        }
    }
}

/// The session that owned something of a record has ended.
pub(super) fn give_back(applying: &mut Applying<'_>, ended: &OwnedThing<'_>) -> Result<(), Halt> {
    let OwnedThing { session, of, id, bucket } = *ended;
    let record = id.in_bucket(bucket);
    let row = applying.state.get(&applying.keys.record(&record))?;
    let row = row.ok_or_else(|| Halt::Inconsistent(format!("E6: session {session} owns {id:?}, not there")))?;
    let row = Row::decode(&row)?;
    if !applying.is_live(id) {
        return write::erase(applying, &record, &row);
    }
    match of {
        OwnedOf::Claim => attempt::rescue(applying, &record, &row, Reason::SessionEnded),
        OwnedOf::Life => {
            // One whose own time was over before did not end with its session.
            let expired = row.numbers.expired_at(applying.call.stamp.wall_us);
            let reason = if expired { Reason::Expired } else { Reason::SessionEnded };
            write::remove(applying, &record, &row, reason).map(|_| ())
        }
    }
}
