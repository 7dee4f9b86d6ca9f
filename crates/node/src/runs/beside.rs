//! What a shard keeps for runs beside their rows.

use super::feed_looks::LooksAtFeed;
use super::findings::Findings;

/// What a shard keeps for runs beside their rows.
#[derive(Default)]
pub struct Beside {
    /// The findings of the verifier.
    pub findings: Findings,
    /// When each projector has last looked at the feed.
    pub looks_at_feed: LooksAtFeed,
}
