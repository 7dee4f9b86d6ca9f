//! The edge: what reaches the store, what does not, what is said of it, and what comes back.
//!
//! - `strictness`: a request means what it says, or is refused by name.

mod strictness;

pub(crate) use strictness::run as run_strictness;
