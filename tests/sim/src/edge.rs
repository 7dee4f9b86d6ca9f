//! The edge: what reaches the store, what does not, and what is said of it.
//!
//! - `fidelity`: what was sent is what is stored and given back; `documents` makes what is sent.
//! - `files`: files are for their owner, and links are not followed.
//! - `gate`: other hosts and pages of other origins get nothing.
//! - `halts`: a panic while an entry is applied stops the store at once.
//! - `listings`: listings that nobody reads take no memory that is not there.
//! - `names`: hostile names reach neither the terminal nor the shell.
//! - `reuse`: a number of a session is bound to its command.
//! - `strictness`: a request means what it says, or is refused by name.

pub(crate) mod documents;
mod fidelity;
mod files;
mod gate;
mod halts;
mod listings;
mod names;
mod reuse;
mod strictness;

pub(crate) use fidelity::run as run_fidelity;
pub(crate) use files::run as run_files;
pub(crate) use gate::run as run_gate;
pub(crate) use halts::run as run_halts;
pub(crate) use listings::run as run_listings;
pub(crate) use names::run as run_names;
pub(crate) use reuse::run as run_reuse;
pub(crate) use strictness::run as run_strictness;
