//! Tests of runs: the kernel against a plain reference.
//!
//! `sim runs-model`; its results are of the topic `runs`.

mod model;

pub(crate) use model::run as run_model;
