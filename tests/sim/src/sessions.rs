//! Tests of sessions: workers that die with their sessions, and pushes over kills and reconnects.
//!
//! `sim dead-workers` and `sim push-kills`; their results are of the topic `sessions`.

mod dead_workers;
mod push_kills;

pub(crate) use dead_workers::run as run_dead_workers;
pub(crate) use push_kills::{child as push_kills_child, run as run_push_kills};
