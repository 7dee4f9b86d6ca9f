//! TLS against a real server process: certificates that are replaced under load, handshakes that fail, and what scanners find.
//!
//! - [`server`]: the server, its authority, and what it says of itself.
//! - [`rotations`]: certificates that are replaced, and those that must not be used.
//! - [`handshakes`]: broken handshakes, one or more for each cause.
//! - [`scanners`]: `sslscan` and `testssl.sh`.

mod handshakes;
mod rotations;
mod scanners;
mod server;

pub(crate) use handshakes::run as run_handshakes;
pub(crate) use rotations::run as run_rotations;
pub(crate) use scanners::run as run_scanners;
