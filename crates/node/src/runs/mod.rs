//! What a shard does for runs besides applying their commands: it compares their projections with their events.

pub mod feed_looks;
pub mod findings;
pub mod replay;
pub(crate) mod verifier;
