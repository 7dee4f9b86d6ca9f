//! The edge: what reaches the store, what does not, and what is said of it.
//!
//! - `fidelity`: what was sent is what is stored and given back; `documents` makes what is sent.
//! - `reuse`: a number of a session is bound to its command.
//! - `halts`: a panic while an entry is applied stops the store at once.

pub(crate) mod documents;
mod fidelity;
mod halts;
mod reuse;

pub(crate) use fidelity::run as run_fidelity;
pub(crate) use halts::run as run_halts;
pub(crate) use reuse::run as run_reuse;
