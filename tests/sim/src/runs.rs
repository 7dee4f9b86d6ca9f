//! Tests of runs: the kernel against a plain reference, and readers that are never skipped.
//!
//! `sim runs-model` and `sim runs-readers`; their results are of the topic `runs`.

mod readers;

pub(crate) use crate::model::runs::run as run_model;
pub(crate) use readers::run as run_readers;
