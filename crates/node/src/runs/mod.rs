//! What a shard does for runs besides applying their commands: it compares their projections with their events.

pub mod beside;
pub mod feed_looks;
pub mod findings;
pub mod replay;
mod verifier;

pub(crate) use verifier::start;
