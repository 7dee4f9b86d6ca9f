//! Tests of sessions: the session machine against a plain reference, exactly once over a lossy line, workers that die with
//! their sessions, and pushes over kills and reconnects.
//!
//! `sim sessions-model`, `sim lossy`, `sim dead-workers` and `sim push-kills`; their results are of the topic `sessions`.

mod dead_workers;
mod lossy;
mod push_kills;

pub(crate) use crate::model::sessions::run as run_model;
pub(crate) use dead_workers::run as run_dead_workers;
pub(crate) use lossy::run as run_lossy;
pub(crate) use push_kills::{child as push_kills_child, run as run_push_kills};
