//! Things that a session owns: its claims, the records that live as long as it does, and the machines that have seen
//! it.
//!
//! After a session has ended, ticks release what it owned, a bounded number of things each, until nothing is left for
//! its entry in the due index. The rows of a session are adjacent, so this is one scan.
//!
//! Touches: `Owned` rows. Keeps: E6 (a row of this index is exactly where a record says; everything an ended session
//! owned is released, and nothing else is).

use session::SessionEvent;

use crate::context::Applying;
use crate::keys::Keys;
use crate::keys::due::DueClock;

/// A session has ended: schedules the release of what it owns.
pub(crate) fn begin_to_give_back(applying: &mut Applying<'_>, event: &SessionEvent<'_>) {
    if event.owned {
        put_ended(applying, event.stamp.cluster_us, event.session);
    }
}

/// Schedules the release of what an ended session owns.
pub(crate) fn put_ended(applying: &mut Applying<'_>, at_us: u64, session: u64) {
    let bucket = ended_in(applying);
    applying.change_due(DueClock::Cluster, bucket, Keys::due_session_suffix(at_us, session), b"", true);
}

/// The bucket of the due entry: a session is in no bucket, and the shard has a first one.
pub(super) fn ended_in(applying: &Applying<'_>) -> u16 {
    applying.keys.buckets().first()
}
