//! The edge: which requests reach the store, which do not, and how refusals are reported.
//!
//! - `fidelity`: data is stored and returned exactly as sent; `documents` generates it.
//! - `files`: files are readable by their owner only, and links are not followed.
//! - `gate`: other hosts and pages of other origins get nothing.
//! - `halts`: a panic while applying an entry stops the store at once.
//! - `listings`: listings that nobody reads stay within the memory limit.
//! - `names`: hostile names reach neither the terminal nor the shell.
//! - `reuse`: a session's request number is bound to its command.
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
