//! The activity of an open shard, from everyone who counts.

use std::time::Duration;

use crate::meters::Counters;
use crate::shard::Shard;

impl Shard {
    /// Activity since the shard was opened. Takes a few short locks, and reads nothing.
    pub fn counters(&self) -> Counters {
        let mut counters = self.shared.meters.read();
        let now_us = self.now().wall_us;
        for claims in counters.claims.values_mut() {
            claims.last_ago = Duration::from_micros(now_us.saturating_sub(claims.last_us));
        }
        counters.sessions_ended = self.keeper.census().1;
        counters.stamps_ahead = Duration::from_micros(now_us.saturating_sub(self.clock().wall_us()));
        counters.journal = self.access.journal.meter();
        counters
    }
}
