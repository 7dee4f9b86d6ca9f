//! Clients of the HTTP API for tests, over `crates/client` and real sockets.
//!
//! - [`client`]: a blocking client that sends any request once. [`message`]: requests and responses. [`events`]:
//!   server-sent events, each as it comes.
//! - [`transport`]: what lies below it and below the typed client; it follows a server that moves. [`routes`]: which
//!   routes were called.
//! - [`cells`], [`records`], [`runs`], [`sessions`]: the traits of the contracts over the typed client, so that their suites
//!   run over HTTP. [`refusals`]: refusals, as the errors that they were.
//!
//! Keeps: a refusal becomes the very error that the store gave. Never: sends a request of a test's own again.

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

/// The time that RFC 3339 text says, in µs since 1970.
fn micros(text: &str) -> u64 {
    contract::time::parse_iso(text).unwrap_or_else(|| panic!("{text:?} is no time"))
}
