//! A client of the HTTP API for tests: blocking, over real sockets, with the contracts' traits on top.
//!
//! - [`message`]: requests and responses. [`connection`]: one connection that is kept alive. [`events`]: server-sent events.
//! - [`client`]: a server's address with connections to it. [`session`]: requests by number, sent again until they are
//!   answered. [`routes`]: which routes were called.
//! - [`values`]: values as JSON. [`refusals`]: problems, as the errors that they were.
//! - [`cells`], [`records`], [`runs`], [`sessions`]: the traits of the contracts, so that their suites run over HTTP.
//!
//! Keeps: a refusal becomes the very error that the store gave. Never: sends anything again by itself, except in a
//! [`session`], where that is harmless.

pub mod cells;
pub mod client;
pub mod connection;
pub mod events;
pub mod message;
pub mod records;
pub mod refusals;
pub mod routes;
pub mod runs;
pub mod session;
pub mod sessions;
pub mod values;

pub use client::Client;
pub use message::{Request, Response};
pub use session::NumberedSession;
