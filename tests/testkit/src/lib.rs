//! Conformance suites: what every implementation of a Statehouse trait must pass.
//!
//! - [`arguments`], [`report`]: the command line and the result lines of the programs that test and measure.
//! - [`cargo`]: running cargo from a program that cargo has started.
//! - [`cells`]: the contract of cells.
//! - [`certificates`]: an authority, what it signs, and clients over TLS.
//! - [`commands`]: every command of `statehouse`, with exit codes and golden tables.
//! - [`entry_log`]: the duties of `journal::EntryLog`.
//! - [`http`]: a client of the HTTP API, with the contracts' traits on top.
//! - [`kv`]: the duties of `kv::Store` and `kv::View`.
//! - [`pages`]: the documentation, run as a reader would.
//! - [`random`]: the seeded random numbers that all randomised tests draw from.
//! - [`run_store`]: the contract of runs.
//! - [`server_process`]: a server in a separate process.
//! - [`session_store`]: the contract of sessions.
//! - [`state_backend`]: the contract of state backends.
//! - [`state_store`]: the portable contract of records.
//!
//! A suite panics with the broken duty. The tests of each implementation call it.

pub mod arguments;
pub mod cargo;
pub mod cells;
pub mod certificates;
pub mod commands;
pub mod entry_log;
pub mod http;
pub mod kv;
pub mod pages;
pub mod random;
pub mod report;
pub mod run_store;
pub mod server_process;
pub mod session_store;
pub mod state_backend;
pub mod state_store;
