//! The edge: what stands between a server and whoever sends it something.

mod gate;
mod listings;

pub(crate) use gate::run as run_gate;
pub(crate) use listings::run as run_listings;
