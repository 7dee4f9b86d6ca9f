//! Tests of sessions: the session machine against a plain reference, exactly once over a lossy line, and workers that
//! die with their sessions.
//!
//! `sim sessions-model`, `sim lossy` and `sim dead-workers`; their results are of the topic `sessions`.

mod dead_workers;
mod lossy;

pub(crate) use crate::model::sessions::run as run_model;
pub(crate) use dead_workers::run as run_dead_workers;
pub(crate) use lossy::run as run_lossy;
