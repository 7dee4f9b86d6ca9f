//! Tests of sessions: the session machine against a plain reference, and exactly once over a lossy line.
//!
//! `sim sessions-model` and `sim lossy`; their results are of the topic `sessions`.

mod lossy;
mod model;

pub(crate) use lossy::run as run_lossy;
pub(crate) use model::run as run_model;
