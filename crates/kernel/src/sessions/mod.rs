//! Sessions as the contracts see them, and users' machines.
//!
//! - `owned`: things that end with a session, found by an index. `give_back`: ends them.
//! - [`brought`]: the machines that users brought. `hosted`: applies their commands, on the same journal as the contracts.
//!
//! Keeps: E3 and E6 of `ARCHITECTURE.md`.

pub mod brought;
pub(crate) mod give_back;
pub(crate) mod hosted;
pub(crate) mod owned;

use contract::limits::SESSION_COMMIT_MAX;
use session::SessionNumber;

const _: () = assert!(SESSION_COMMIT_MAX == SessionNumber::COMMIT_MAX, "a refusal names the limit of the numbers");
