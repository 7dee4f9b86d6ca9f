//! Tests of runs: the kernel against a plain reference, readers that are never skipped, and projectors that are killed.
//!
//! `sim runs-model`, `sim runs-readers` and `sim projector-kills`; their results are of the topic `runs`.

mod projector;
mod readers;

pub(crate) use crate::model::runs::run as run_model;
pub(crate) use projector::{child as projector_child, run as run_projector_kills};
pub(crate) use readers::run as run_readers;
