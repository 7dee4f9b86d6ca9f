//! Clients of the HTTP API for tests, over `crates/client` and real sockets.
//!
//! - [`client`]: a blocking client that sends any request once. [`message`]: requests and responses. [`events`]:
//!   server-sent events as they arrive.
//! - [`transport`]: the transport below it and the typed client; it follows a server that moves. [`routes`]: which routes
//!   were called.
//! - [`cells`], [`records`], [`runs`], [`sessions`]: the contracts' traits over the typed client, so that their suites run
//!   over HTTP. [`refusals`]: turns refusals back into the contracts' errors.
//!
//! Keeps: a refusal becomes exactly the store's error. Never: retries a request that a test wrote itself.

pub mod cells;
pub mod client;
pub mod events;
pub mod message;
pub mod records;
pub mod refusals;
pub mod routes;
pub mod runs;
pub mod sessions;
pub mod transport;

pub use ::client::ClientOptions;
pub use client::{Client, block_on};
pub use message::{Request, Response};

/// A time in RFC 3339, as µs since 1970.
fn micros(text: &str) -> u64 {
    contract::time::parse_iso(text).unwrap_or_else(|| panic!("{text:?} is no time"))
}
