//! The number of sessions, and how ended sessions have ended.

/// Ended sessions since the store was opened, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EndedSessions {
    /// Their clients closed them.
    pub closed: u64,
    /// Their clients were silent for their timeout.
    pub timed_out: u64,
    /// They did not acknowledge their pushes.
    pub overrun: u64,
}

/// Live sessions, by state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LivingSessions {
    /// Created, and their clients have not been seen yet.
    pub pending: u64,
    /// Their clients are connected.
    pub connected: u64,
    /// Their clients are not there.
    pub disconnected: u64,
    /// Pushes that wait to be acknowledged.
    pub pushes_waiting: u64,
}
