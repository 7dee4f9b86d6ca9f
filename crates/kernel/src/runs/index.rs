//! Runs by status, type and time of their last event, and their number.
//!
//! An entry is moved when the status changes, and otherwise at most once a minute: most appends write no row for it,
//! and a search for stalled runs examines few that are not.
//!
//! Touches: `RunIndex` rows, and the index of names. Keeps: L4 (every existing run has one entry, with its status and
//! type, at or before its last event) and K8 (an existing run of a named group is in the index of names).

use kv::Key;

use super::contract::Runs;
use super::row::RunHead;
use crate::context::Applying;
use crate::counts::{CountKey, CountOf, Counted, Counting};
use crate::keys::{Keys, Kind, ThingId};
use crate::names;

/// How far an entry may be before its run's last event.
pub const INDEX_LAG_US_MAX: u64 = 60 * 1_000_000;

impl Counting for Runs {
    fn count_row(keys: &Keys, count: &CountKey) -> Option<Key> {
        Some(keys.run_counts(count.space, count.branch, &count.queue))
    }
}

/// Brings the index and the counts up to date with a run's head.
pub(crate) fn update(applying: &mut Applying<'_>, run: &ThingId<'_>, before: Option<&RunHead>, after: &mut RunHead) {
    let before = before.filter(|head| !head.deleted);
    let exists = !after.deleted;
    if before.is_some() != exists {
        names::set_listed(applying.state, &applying.keys, Kind::Run, run, exists);
    }
    let same_place = |head: &RunHead| head.status == after.status && exists;
    let lag = |head: &RunHead| after.last_event_us.saturating_sub(head.index_us);
    if let Some(head) = before
        && same_place(head)
        && lag(head) <= INDEX_LAG_US_MAX
    {
        after.index_us = head.index_us;
        return;
    }
    if let Some(head) = before {
        let key = applying.keys.run_index(run, head.status as u8, &head.run_type, head.index_us);
        applying.state.delete(key);
        count(applying, run, head, -1);
    }
    if exists {
        after.index_us = after.last_event_us;
        let key = applying.keys.run_index(run, after.status as u8, &after.run_type, after.index_us);
        applying.state.put(key, b"".as_slice());
        count(applying, run, after, 1);
    }
}

fn count(applying: &mut Applying<'_>, run: &ThingId<'_>, head: &RunHead, by: i64) {
    let counted = Counted {
        of: CountOf::Runs,
        space: run.space,
        branch: run.branch,
        queue: head.run_type.as_str(),
        record_type: 0,
        state: head.status as u8,
    };
    applying.folded.count(counted, by);
}
