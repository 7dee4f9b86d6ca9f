//! What the edge promises: what was sent is what is stored and given back.

pub(crate) mod documents;
mod fidelity;

pub(crate) use fidelity::run as run_fidelity;
