//! Known bugs that a test can switch on, to show that it finds them. Only with the `canary` feature, which only the
//! simulator turns on.

use std::sync::atomic::{AtomicU8, Ordering};

/// A hole in the permissions, of a kind that another server had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Hole {
    /// What is sent to another group is not looked at: the nested transactions of etcd, CVE-2026-33343.
    Nested = 1,
    /// A condition is not taken for reading: the previous values of etcd, CVE-2026-44283.
    Conditions,
    /// What is of the whole store needs nothing: the maintenance of etcd, CVE-2026-33413.
    Maintenance,
    /// Who may read one name may follow all names from there: the watches of etcd, GHSA-xg4h-6gfc-h4m8.
    Ranges,
    /// Only the first operation is looked at: the nested operations of etcd, pull request 22140.
    FirstOperation,
    /// The space in the path is not that of the permission: the accounts of NATS, CVE-2025-30215.
    OtherSpaces,
    /// The name that something gets is not looked at: the restored names of NATS, CVE-2026-33222.
    OtherNames,
}

impl Hole {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Nested,
        Self::Conditions,
        Self::Maintenance,
        Self::Ranges,
        Self::FirstOperation,
        Self::OtherSpaces,
        Self::OtherNames,
    ];

    pub(crate) fn is_open(self) -> bool {
        OPEN.load(Ordering::Relaxed) == self as u8
    }
}

static OPEN: AtomicU8 = AtomicU8::new(0);

/// From now on permissions have this hole, and no other.
pub fn open(hole: Option<Hole>) {
    OPEN.store(hole.map_or(0, |hole| hole as u8), Ordering::SeqCst);
}
