//! TLS: certificates, handshakes, and certificates that are replaced while the server runs.
//!
//! - [`files`]: a certificate, its key and the authorities of clients, read from files and checked. `names`: what is read in a
//!   certificate.
//! - `handshake`: a connection before its first request. `client_verifier`: the check of a client's certificate. `failures`: why
//!   handshakes fail, counted and logged.
//! - [`reload`]: the certificates in use, and the files that they are read from again.
//!
//! Keeps: TLS 1.3 and nothing older, no early data, and no session that outlives the check of its client's certificate: each
//! connection makes a whole handshake. A pair of files that cannot be used leaves the one that can in use.

mod client_verifier;
mod failures;
mod files;
mod handshake;
mod names;
mod reload;

use std::sync::Arc;

use rustls::crypto::CryptoProvider;

pub(crate) use failures::CAUSES;
pub use files::{TlsError, TlsFiles};
pub(crate) use handshake::{Refused, open};
pub use reload::Tls;
pub(crate) use reload::shown;

/// The cryptography of every handshake: ring. An ADR has the measurements.
fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}
