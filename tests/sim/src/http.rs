//! The server as a separate process: the contracts' suites over HTTP, every route and every code.

mod codes;
mod commands;
mod hosted;
mod routes;
mod schemathesis;
mod suites;
mod surface;
mod tally_machine;

pub(crate) use commands::run as run_commands;
pub(crate) use hosted::serve as serve_machine;
pub(crate) use schemathesis::run as run_schemathesis;
pub(crate) use suites::run as run_suites;
pub(crate) use surface::run as run_surface;
pub(crate) use tally_machine::{PLANTED_KEY, TallyCommand, TallyMachine};
