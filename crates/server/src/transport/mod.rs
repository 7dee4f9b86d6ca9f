//! What connections come over: TCP, TLS over TCP, and sockets of this machine.
//!
//! - `listeners`: where a server listens, and what it refuses to listen on. `unix_socket`: a socket in the file system.
//! - `socket`: the stream of one connection, whatever it comes over. `peer`: what a connection says about its sender.
//! - [`tls`]: certificates, handshakes, and certificates that are replaced while the server runs.
//!
//! Keeps: a connection reaches HTTP only after its handshake. Never: decides what a sender may do; see `access`.

mod listeners;
mod peer;
mod socket;
pub mod tls;
mod unix_socket;

pub(crate) use listeners::Arrived;
pub use listeners::{Exposure, Listeners};
pub(crate) use peer::{ClientCertificate, Peer, UNMAPPED_USER};
pub(crate) use socket::{MeteredTcp, Socket};
