//! The edge: what reaches the store, what does not, what is said of it, and what comes back.
//!
//! - `reuse`: a number of a session is bound to its command.
//! - `halts`: a panic while an entry is applied stops the store at once.
//! - `fidelity`: JSON comes back as the text that was sent; `documents` makes it.

pub(crate) mod documents;
mod fidelity;
mod halts;
mod reuse;

pub(crate) use fidelity::run as run_fidelity;
pub(crate) use halts::run as run_halts;
pub(crate) use reuse::run as run_reuse;
