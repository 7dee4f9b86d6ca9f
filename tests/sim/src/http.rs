//! The server as a process of its own: the contracts' suites over HTTP, every route and every code, and what a killed
//! server leaves.

mod hosted;
mod kills;
mod suites;
mod tally_machine;

pub(crate) use hosted::serve as serve_machine;
pub(crate) use kills::run as run_kills;
pub(crate) use suites::run as run_suites;
