//! What Statehouse says over HTTP: a type for every body, query and answer, and every route by name.
//!
//! - [`routes`]: method, path and name of every route. Servers and clients spell them here only.
//! - [`cells`], [`state`], [`records`], [`claims`], [`transactions`], [`runs`], [`sessions`], [`changes`], [`catalogue`],
//!   [`operations`]: one file for each contract.
//! - [`forms`]: requests in which everything is left out that can be.
//! - [`values`]: JSON that callers own, and durations. [`opaque`]: texts that clients keep and hand back.
//! - [`reader`], [`query`]: from bytes to these types. [`error`]: which member was refused, and why.
//! - [`schema`]: what the types look like, as JSON Schema.
//!
//! Keeps: a request means what it says or is refused: members that are not known, that are there twice or that are of
//! another type are errors which name the member. JSON that callers own is kept as the text that was sent.
//!
//! Never: opens a socket, or knows a store.

pub mod catalogue;
pub mod cells;
pub mod changes;
pub mod claims;
pub mod error;
pub mod forms;
pub mod opaque;
pub mod operations;
pub mod query;
pub mod reader;
pub mod records;
pub mod routes;
pub mod runs;
mod scanner;
pub mod schema;
pub mod sessions;
pub mod state;
pub mod transactions;
pub mod values;

pub use error::{DecodeError, Reason};
pub use reader::{from_json, from_json_text};
