//! Who sends a request, and what it needs.
//!
//! - [`caller`]: who it is, found from the head of a request and from its connection, before its body is read.
//! - [`permission`]: what a route needs: every row of the table of routes has one.
//! - [`rates`]: how many requests a principal may send in a second.
//! - [`denials`]: what was refused, in the audit.
//! - [`lasting`]: waits, streams and downloads, which end when their sender may not do any more what it was let in for.
//! - [`needs`]: what the decoded request would do, in full: each operation and each condition of a transaction, and what it sends
//!   to other groups.
//!
//! Keeps: a request is authorized whole, from names alone, before anything is looked up, so a refusal tells nothing about what is
//! stored. Never: asks again when a command is applied.

mod caller;
mod denials;
mod lasting;
mod needs;
mod permission;
mod rates;

pub(crate) use caller::{Caller, Identification, KnownBy, Stranger};
pub(crate) use denials::Denials;
pub(crate) use lasting::{Lasting, LastingRequest};
pub(crate) use needs::Needs;
pub(crate) use permission::{Asking, Permission};
pub(crate) use rates::Rates;

#[cfg(test)]
mod tests;
