//! The edge: what reaches the store, what does not, and what is said of it.
//!
//! - `reuse`: a number of a session is bound to its command.
//! - `halts`: a panic while an entry is applied stops the store at once.

mod halts;
mod reuse;

pub(crate) use halts::run as run_halts;
pub(crate) use reuse::run as run_reuse;
