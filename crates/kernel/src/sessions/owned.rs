//! Things that a session owns: its claims, the records that live as long as it does, and the machines that have seen
//! it.
//!
//! The rows are in the bucket of what is owned, and the session knows in which buckets there are any. After it has ended,
//! ticks release what it owned, a bounded number of things each, until nothing is left for its entry in the due index of a
//! bucket.
//!
//! Touches: `Owned` rows. Keeps: E6 (a row of this index is exactly where a record says; everything an ended session
//! owned is released, and nothing else is).

use session::{OwnedIn, SessionEvent};

use crate::context::Applying;
use crate::keys::Keys;
use crate::keys::due::DueClock;

/// A session has ended: schedules the release of what it owns.
pub(crate) fn begin_to_give_back(applying: &mut Applying<'_>, event: &SessionEvent<'_>) {
    let (at_us, session) = (event.stamp.cluster_us, event.session);
    match &event.owned {
        OwnedIn::Places(buckets) => buckets.iter().for_each(|bucket| put_ended(applying, *bucket, at_us, session)),
        OwnedIn::Anywhere => {
            applying.catalogue.buckets_here().for_each(|bucket| put_ended(applying, bucket, at_us, session));
        }
    }
}

/// Schedules the release of what an ended session owns in a bucket.
pub(crate) fn put_ended(applying: &mut Applying<'_>, bucket: u16, at_us: u64, session: u64) {
    applying.change_due(DueClock::Cluster, bucket, Keys::due_session_suffix(at_us, session), b"", true);
}
