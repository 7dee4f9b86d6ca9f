//! Where the model tests write: few places, so that commands meet.

/// Space and branch of everything: two branches of one space, and another space.
pub(crate) const PLACES: [(u32, u32); 3] = [(1, 1), (1, 3), (2, 2)];

/// The names of the spaces, which decide the buckets.
pub(crate) const SPACES: [(u32, &str); 2] = [(1, "default"), (2, "other")];

/// Groups: one is the beginning of another, some are names of records, one must be escaped in a key.
pub(crate) const GROUPS: [&str; 5] = ["g", "h", "g.h", "jobs.own", "r\u{0}é"];
