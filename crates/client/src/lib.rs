//! Statehouse from another process: every contract over HTTP, typed, asynchronous.
//!
//! - [`Client`]: a server, and a place in it: space, branch, group. [`ClientOptions`]: deadlines, retries, sessions.
//! - [`cells`], [`records`], [`runs`], [`transactions`], [`sessions`], [`changes`], [`catalogue`], [`operations`]: the
//!   calls, one file for each contract. Their types are those of [`wire`].
//! - [`events`]: what follows, as a stream that resumes by itself where it was cut.
//! - [`Error`]: what went wrong: code, whether the write may have happened, and what to do next.
//! - [`transport`]: how a request travels; another way than TCP can be brought.
//! - [`Call`]: any route, for whoever wants the answer as it was sent; [`Client::call`].
//! - `retry`, `session`: when a call is sent again, and under which number.
//!
//! Writes are sent in a session that the client opens with the first of them and keeps alive, so a write whose answer was
//! lost is sent again and executed once. Jobs that are claimed through a client come back when the client is gone.
//!
//! ```no_run
//! use statehouse_client::{Client, wire::claims::Claim};
//!
//! # async fn work() -> Result<(), statehouse_client::Error> {
//! let client = Client::connect("http://127.0.0.1:7420")?;
//! client.cells().set("greeting", "hello").await?;
//!
//! let claim = Claim { prefix: Some("jobs.".into()), worker: Some("w1".into()), ..Claim::default() };
//! for job in client.records().claim(&claim).await? {
//!     println!("{} is ours for {} ms", job.record, job.lease_ms);
//!     client.records().complete(&job.token, [("result", "sent")]).await?;
//! }
//! client.close().await
//! # }
//! ```
//!
//! Never: sends a write again that could then be executed twice, or opens a store: it compiles without the engine.

mod call;
pub mod catalogue;
pub mod cells;
pub mod changes;
mod client;
mod error;
pub mod events;
pub mod operations;
pub mod records;
mod reply;
mod retry;
pub mod runs;
mod session;
pub mod sessions;
pub mod transactions;
pub mod transport;

pub use call::Call;
pub use client::{Client, ClientOptions};
pub use contract::{Expected, HistoryPage, Moment, Outcome, Value};
pub use error::{Error, Refusal};
pub use reply::Reply;
pub use wire;
