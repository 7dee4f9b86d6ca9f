//! Where the keyed model writes: operators with few partitions, few maps and few keys, so that commands meet.

use contract::guards::GroupGuard;
use testkit::random::Random;

use crate::model::places::{GROUPS, PLACES};
use crate::model::reference::Reference;

/// The guarded groups of an operator: its partitions.
const PARTITIONS: [&str; 3] = ["op/0", "op/1", "op/open"];

/// Every group that guards are set for and removed from while a stretch lasts. Marked messages go to none of space 2.
const GUARDED_LATER: [&str; 4] = ["op/", "g", "h", "jobs.own"];

/// Which open names a guard has.
const OPEN: [&str; 4] = ["inbox", "plain", "jobs.", "r"];

/// Names of maps.
pub(super) const MAPS: [&str; 4] = ["counts", "m", "op", "r\u{0}é"];

/// Keys that are mostly put.
pub(super) const PUT_KEYS: [&[u8]; 9] =
    [b"a", b"a\0", b"ab", b"b", b"\0", &[0xff], &[0xff, 0xff, 0], b"word", &[0x61; 700]];

/// Keys that are mostly merged.
pub(super) const MERGED_KEYS: [&[u8]; 5] = [b"sum", b"sum.min", b"sum.max", b"b\0", &[0xfe]];

/// Inputs.
pub(super) const INPUTS: [&str; 4] = ["topic-a", "topic-b", "", "é"];

/// Spaces with the prefix of the guard that they have from the beginning.
pub(crate) fn guards() -> [(u32, &'static str, GroupGuard); 2] {
    [(1, "op/", GroupGuard::new()), (2, "op/o", GroupGuard::new().open("inbox").open("m"))]
}

/// A guard that is set or removed later.
pub(super) fn guard(random: &mut Random) -> (u32, &'static str, Option<GroupGuard>) {
    let mut guard = GroupGuard::new();
    for name in OPEN {
        if random.one_in(3) {
            guard = guard.open(name);
        }
    }
    (2, random.pick(&GUARDED_LATER), (!random.one_in(3)).then_some(guard))
}

/// A place and a group: mostly a partition of an operator.
pub(super) fn group(random: &mut Random, reference: &Reference) -> (u32, u32, &'static str) {
    let place = if random.one_in(4) { *random.choose(&reference.live_places()) } else { random.pick(&PLACES) };
    let group = if random.one_in(4) { random.pick(&GROUPS) } else { random.pick(&PARTITIONS) };
    (place.0, place.1, group)
}
