//! Tests of records: the kernel against a plain reference, and no double effects with real workers.
//!
//! `sim records-model` and `sim doubles`; their results are of the topic `records`.

mod doubles;

pub(crate) use crate::model::records::{check_rows, run as run_model};
pub(crate) use doubles::run as run_doubles;
