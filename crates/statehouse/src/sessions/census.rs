//! How many sessions there are, and how those that are gone have ended.

/// How sessions have ended since the store was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EndedSessions {
    /// Their clients closed them.
    pub closed: u64,
    /// Their clients were not heard of in time.
    pub timed_out: u64,
    /// They did not take their pushes.
    pub overrun: u64,
}

/// How sessions are doing now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LivingSessions {
    /// Created, and their clients have not been seen yet.
    pub pending: u64,
    /// Their clients are there.
    pub connected: u64,
    /// Their clients are not there.
    pub disconnected: u64,
    /// Pushes that wait to be acknowledged.
    pub pushes_waiting: u64,
}
