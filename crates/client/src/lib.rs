//! Statehouse from another process: every contract over HTTP, typed, asynchronous.
//!
//! - [`Client`]: a server, and a place in it: space, branch, group. [`ClientOptions`]: deadlines, retries, sessions.
//! - [`cells`], [`records`], [`runs`], [`keyed`], [`transactions`], [`sessions`], [`changes`], [`catalogue`],
//!   [`principals`], [`operations`]: the calls, one file for each contract. Their types are those of [`wire`].
//! - [`events`]: event streams that resume by themselves after an interruption.
//! - [`Error`]: the code, whether the write may have happened, and what to do next.
//! - [`token`]: where the token of a client comes from.
//! - [`tls`]: whom a client trusts at `https://`, and the certificate that shows who it is.
//! - [`transport`]: how requests travel; TCP by default, or your own.
//! - [`Call`]: any route, with the answer exactly as sent; see [`Client::call`].
//! - `retry`, `session`: when a call is retried, and under which number.
//!
//! The client opens a session on its first write and keeps it alive, so a write whose answer was lost is retried and
//! executed once. Jobs claimed through a client are released when the client is gone.
//!
//! ```no_run
//! use statehouse_client::{Client, wire::records::claims::Claim};
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
//! Never: retries a write that could then be executed twice, or opens a store: it compiles without the engine.

mod call;
pub mod catalogue;
pub mod cells;
pub mod changes;
mod client;
mod error;
pub mod events;
pub mod groups;
pub mod keyed;
mod letters;
pub mod operations;
pub mod principals;
pub mod records;
mod reply;
mod retry;
pub mod runs;
mod session;
pub mod sessions;
pub mod tls;
pub mod token;
pub mod transactions;
pub mod transport;

pub use call::Call;
pub use client::{Client, ClientOptions};
pub use contract::{Expected, HistoryPage, Moment, Outcome, SessionCredentials, SessionSecret, Value};
pub use error::{Error, Refusal};
pub use reply::Reply;
pub use wire;
